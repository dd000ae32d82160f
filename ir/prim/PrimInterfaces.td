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

def Prim_SymbolBinderInterface : OpInterface<"SymbolBinderOpInterface"> {
  let cppNamespace = "::ptc::prim";
  let description = "An op that gives a symbol a value while the program runs.";
  let methods = [
    InterfaceMethod<[{
      For each such symbol: its name; the most that it can be, over symbols bound earlier (null: no bound is known); whether
      it is bound in the op's regions, or else behind the op.
    }], "void", "forEachBinding", (ins "::llvm::function_ref<void(::llvm::StringRef, ::ptc::Expr, bool)>":$visit)>];
}

#endif // PTC_IR_PRIM_PRIMINTERFACES
