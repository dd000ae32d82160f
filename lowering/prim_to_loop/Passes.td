//===- Passes.td - from prim to loop --------------------------------------===//
include "mlir/Pass/PassBase.td"

def LowerPrimToLoop : Pass<"ptc-lower-prim-to-loop", "::mlir::ModuleOp"> {
  let summary = "turns each entry function of prim ops into a loop.program";
  let dependentDialects = ["::ptc::loop::LoopDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
  let options = [Option<"recurrences", "recurrences", "bool", "true", "loops whose bodies allow it become one kernel: the target's">,
                 Option<"convertsWeights", "converts-weights", "bool", "true", "products convert weights of few bits while they read them: the target's">,
                 Option<"readsRowsAnywhere", "reads-rows-anywhere", "bool", "true", "products read rows that lie in no regular order: the target's">,
                 Option<"groupsInWindows", "groups-in-windows", "bool", "true", "convolutions of small groups are reductions with lanes along all channels: the target's">,
                 Option<"storesBorders", "stores-borders", "bool", "true", "windows read the borders of pads from memory: the target's">,
                 Option<"takesByteRows", "takes-byte-rows", "bool", "true", "products may take their rows as bytes where the model permits it (prim.byte_rows): the target has such, and --fp permits it">,
                 Option<"skipsZeros", "skips-zeros", "bool", "true", "products leave out terms that causal masks make zero: the target's, and --fp permits it">,
                 Option<"mostStreamedRows", "most-streamed-rows", "int64_t", "0", "with more rows only weights whose words have one scale (0: all)">];
}

def UnifyExtents : Pass<"ptc-unify-extents", "::mlir::ModuleOp"> {
  let summary = "expressions that a guard makes equal are one expression";
  let dependentDialects = ["::ptc::loop::LoopDialect"];
}

def JoinShifts : Pass<"ptc-join-shifts", "::mlir::ModuleOp"> {
  let summary = "copies of one value at several shifts, side by side in memory, are one node";
  let dependentDialects = ["::ptc::loop::LoopDialect", "::mlir::arith::ArithDialect"];
}

def ElideCopies : Pass<"ptc-elide-copies", "::mlir::ModuleOp"> {
  let summary = "lets producers write where a copy would have put their values (concat, outputs)";
  let options = [Option<"keepsImages", "keeps-images", "bool", "false", "images of convolutions stay channels last, and are copied into results">];
  let dependentDialects = ["::ptc::loop::LoopDialect"];
}

def CopyImages : Pass<"ptc-copy-images", "::mlir::ModuleOp"> {
  let summary = "copies arguments that convolutions read, channels last";
  let dependentDialects = ["::ptc::loop::LoopDialect"];
}

def AssignLayouts : Pass<"ptc-assign-layouts", "::mlir::ModuleOp"> {
  let summary = "fixes the layout of every buffer: contractions write their n dim innermost, others follow what they read";
  let dependentDialects = ["::ptc::loop::LoopDialect"];
  let options = [Option<"gatherRows", "gather-rows", "bool", "true", "images that pixels are gathered from have their channels innermost">];
}

def SplitSums : Pass<"ptc-split-sums", "::mlir::ModuleOp"> {
  let summary = "splits dims of sums that a reshape made one, and orders them as memory runs";
  let dependentDialects = ["::ptc::loop::LoopDialect"];
  let options = [Option<"orderWindows", "order-windows", "bool", "false", "the sums of convolutions without borders, too">];
}

def PackWeights : Pass<"ptc-pack-weights", "::mlir::ModuleOp"> {
  let summary = "gives weights the form that kernels read, by recipe: unit panels, or the order of the walk through memory";
  let dependentDialects = ["::ptc::loop::LoopDialect"];
  let options = [Option<"panelWidth", "panel-width", "int64_t", "16", "columns of a panel: the target's; 0: no panels">,
                 Option<"fewestColumns", "fewest-columns", "int64_t", "6", "fewest columns that are worth panels">,
                 Option<"winograd", "winograd", "bool", "false", "convolutions may be computed by Winograd's algorithm">];
}

def ChooseStrassen : Pass<"ptc-choose-strassen", "::mlir::ModuleOp"> {
  let summary = "marks large products whose weights have rows and columns of like magnitudes";
  let description = [{
    Targets may compute those by Strassen's algorithm. Weights are read from the model's files.
  }];
  let dependentDialects = ["::ptc::loop::LoopDialect"];
}
