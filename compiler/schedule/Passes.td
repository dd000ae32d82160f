//===- Passes.td - from loop nodes to kernels -----------------------------===//
include "mlir/Pass/PassBase.td"

def NarrowNodes : Pass<"ptc-narrow-nodes", "::mlir::ModuleOp"> {
  let summary = "nodes run over the points alone whose results are read";
  let dependentDialects = ["::ptc::loop::LoopDialect"];
}

def LinearizeAccesses : Pass<"ptc-linearize-accesses", "::mlir::ModuleOp"> {
  let summary = "turns logical indices into positions in memory, by the buffers' layouts";
  let dependentDialects = ["::ptc::loop::LoopDialect"];
  let options = [Option<"pointerAlignment", "pointer-alignment", "int64_t", "1",
                        "bytes that the addresses of a kernel's buffers are multiples of">];
}

def SumSingleColumns : Pass<"ptc-sum-single-columns", "::mlir::ModuleOp"> {
  let summary = "products of one column by what is no weight in panels become sums";
  let dependentDialects = ["::ptc::loop::LoopDialect", "::mlir::arith::ArithDialect"];
}

def SumOfParts : Pass<"ptc-sum-of-parts", "::mlir::ModuleOp"> {
  let summary = "a sum over what several nodes write side by side is taken part by part";
  let dependentDialects = ["::ptc::loop::LoopDialect", "::mlir::arith::ArithDialect"];
}

def SumInStages : Pass<"ptc-sum-in-stages", "::mlir::ModuleOp"> {
  let summary = "sums over parts of many rows are taken over whole rows first";
  let dependentDialects = ["::ptc::loop::LoopDialect"];
}

def SpreadGroups : Pass<"ptc-spread-groups", "::mlir::ModuleOp"> {
  let summary = "what many rows read by groups of columns is stored for each column";
  let dependentDialects = ["::ptc::loop::LoopDialect"];
}

def RecomputeNodes : Pass<"ptc-recompute-nodes", "::mlir::ModuleOp"> {
  let summary = "differences of long rows that lie in memory are computed where they are read";
  let dependentDialects = ["::ptc::loop::LoopDialect"];
}

def NormalizeNodes : Pass<"ptc-normalize-nodes", "::mlir::ModuleOp"> {
  let summary = "orders each node's dims as memory runs, drops dims of 1 and merges adjacent dims";
  let dependentDialects = ["::ptc::loop::LoopDialect"];
  let options = [Option<"weaves", "weaves", "bool", "false", "results that lie between each other are woven in registers">];
}

def FuseNodes : Pass<"ptc-fuse-nodes", "::mlir::ModuleOp"> {
  let summary = "merges nodes into each other's bodies and groups them into kernels";
  let dependentDialects = ["::ptc::loop::LoopDialect"];
  let options = [Option<"remarks", "remarks", "bool", "false", "say why nodes were not fused">,
                 Option<"disable", "disable", "bool", "false", "one kernel for each node">,
                 Option<"device", "device", "bool", "false", "kernels run on a device, but for those of strings">];
}

def MoveScales : Pass<"ptc-move-scales", "::mlir::ModuleOp"> {
  let summary = "what multiplies the terms of all rows of a product multiplies its weight";
  let dependentDialects = ["::ptc::loop::LoopDialect", "::mlir::arith::ArithDialect"];
}

def NarrowBuffers : Pass<"ptc-narrow-buffers", "::mlir::ModuleOp"> {
  let summary = "floats that are at most 256 integers lie between nodes as bytes";
  let dependentDialects = ["::ptc::loop::LoopDialect", "::mlir::arith::ArithDialect"];
}

def FuseHorizontally : Pass<"ptc-fuse-horizontally", "::mlir::ModuleOp"> {
  let summary = "small pointwise kernels that are independent and next to each other become one";
  let dependentDialects = ["::ptc::loop::LoopDialect"];
  let options = [Option<"remarks", "remarks", "bool", "false", "say why a kernel does not join those before it">];
}

def OutlineKernels : Pass<"ptc-outline-kernels", "::mlir::ModuleOp"> {
  let summary = "moves fused nodes into loop.kernel symbols named by content, launched in order";
  let dependentDialects = ["::ptc::loop::LoopDialect"];
}

def ShareConstants : Pass<"ptc-share-constants", "::mlir::ModuleOp"> {
  let summary = "many kernels for CPUs that differ in where they begin to read or write, or in the i64 that they store, become one; "
                "so do any that differ in scalars alone";
  let dependentDialects = ["::ptc::loop::LoopDialect"];
}

def OrderLaunches : Pass<"ptc-order-launches", "::mlir::ModuleOp"> {
  let summary = "moves launches up where buffers then live shorter";
  let dependentDialects = ["::ptc::loop::LoopDialect"];
}

def UpdateInPlace : Pass<"ptc-update-in-place", "::mlir::ModuleOp"> {
  let summary = "computes results that share an argument's memory there, where nothing reads that any more";
  let dependentDialects = ["::ptc::loop::LoopDialect"];
}

def PlaceTaps : Pass<"ptc-place-taps", "::mlir::ModuleOp"> {
  let summary = "moves each tap behind the launch that completes its value";
  let dependentDialects = ["::ptc::loop::LoopDialect"];
}

def JoinLaunches : Pass<"ptc-join-launches", "::mlir::ModuleOp"> {
  let summary = "launches that do not depend on each other run in one parallel loop";
  let dependentDialects = ["::ptc::loop::LoopDialect"];
}

def CountWork : Pass<"ptc-count-work", "::mlir::ModuleOp"> {
  let summary = "states each kernel's floating-point operations and bytes moved";
  let dependentDialects = ["::ptc::loop::LoopDialect"];
}

def PlaceOnHost : Pass<"ptc-place-on-host", "::mlir::ModuleOp"> {
  let summary = "in a device's program, what runs on the host, and the transfers that it needs";
  let constructor = "::ptc::createPlaceOnHost()";
  let dependentDialects = ["::ptc::loop::LoopDialect"];
  let options = [Option<"remarks", "remarks", "bool", "false", "say what runs on the host and why">];
}
