//===- Passes.td - the plan-memory stage ----------------------------------===//
include "mlir/Pass/PassBase.td"

def PlanMemory : Pass<"ptc-plan-memory", "::mlir::ModuleOp"> {
  let summary = "gives every intermediate buffer an offset in one arena";
  let dependentDialects = ["::ptc::loop::LoopDialect"];
}
