//===- Passes.td - variants of functions ----------------------------------===//
include "mlir/Pass/PassBase.td"

def SpecializeFunctions : Pass<"ptc-specialize-functions", "::mlir::ModuleOp"> {
  let summary = "gives each combination of the sizes that `prim.buckets` names a variant of its own";
  let dependentDialects = ["::ptc::prim::PrimDialect"];
}
