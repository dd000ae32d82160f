//===- PrimInterfaces.td - op interfaces of the prim dialect --------------===//
#ifndef PTC_IR_PRIM_PRIMINTERFACES
#define PTC_IR_PRIM_PRIMINTERFACES

include "ir/prim/PrimDialect.td"

def Prim_PointwiseInterface : OpInterface<"PointwiseOpInterface"> {
  let cppNamespace = "::ptc::prim";
  let description = "An op whose result at an index depends on its operands at that index alone.";
  let methods = [
    InterfaceMethod<"Emits the scalar body; `x` are signless scalars.",
      "::mlir::Value", "emitScalar",
      (ins "::ptc::prim::ScalarBuilder &":$s,
           "::llvm::ArrayRef<::mlir::Value>":$x)>];
}

#endif // PTC_IR_PRIM_PRIMINTERFACES
