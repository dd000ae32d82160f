//===- Passes.td - passes from prim to prim -------------------------------===//
include "mlir/Pass/PassBase.td"

def Autocast : Pass<"ptc-autocast", "::mlir::func::FuncOp"> {
  let summary = "operands of products in f32 are rounded to a narrower float";
  let options = [Option<"type", "type", "std::string", "\"bf16\"", "bf16 or f16">,
                 Option<"onlyWeights", "only-weights", "bool", "false", "products that read a weight, and no others">];
}

def DropDeadTaps : Pass<"ptc-drop-dead-taps", "::mlir::func::FuncOp"> {
  let summary = "optional taps of values that nothing else computes lose their operand";
}

def FoldConstants : Pass<"ptc-fold-constants", "::mlir::func::FuncOp"> {
  let summary = "computes what depends on constants alone, and removes branches that are never taken";
  let options = [Option<"maxBytes", "max-bytes", "int64_t", "1 << 20", "no operand or result of a folded op is larger">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def FoldMirroredFilters : Pass<"ptc-fold-mirrored-filters", "::mlir::func::FuncOp"> {
  let summary = "filters that are their own mirror images multiply sums of two elements";
  let options = [Option<"fewestFilters", "fewest-filters", "int64_t", "32", "convolutions with fewer stay: the sums would cost as much as they save">];
}

def JoinColumns : Pass<"ptc-join-columns", "::mlir::func::FuncOp"> {
  let summary = "products of one value by weights of several widths become one with the columns of all";
  let options = [Option<"panel", "panel", "int64_t", "16", "columns that are stored together: each weight has a multiple of them">];
}

def JoinProducts : Pass<"ptc-join-products", "::mlir::func::FuncOp"> {
  let summary = "products of one value by several weights become one";
  let options = [Option<"severalValues", "several-values", "bool", "false", "those of an attention's two values, too">];
}

def JoinScales : Pass<"ptc-join-scales", "::mlir::func::FuncOp"> {
  let summary = "scales between quantised tensors are multiplied beforehand";
}

def LookUpOneHots : Pass<"ptc-look-up-one-hots", "::mlir::func::FuncOp"> {
  let summary = "products with one-hot rows become gathers";
}

def MoveBytes : Pass<"ptc-move-bytes", "::mlir::func::FuncOp"> {
  let summary = "what is rounded to the bytes that it was, behind moves, is moved as bytes";
}

def MovePointwiseConvolutions : Pass<"ptc-move-pointwise-convolutions", "::mlir::func::FuncOp"> {
  let summary = "convolutions by windows of one pixel come before resizes and behind sums over windows, where pixels are fewer";
}

def NarrowProducts : Pass<"ptc-narrow-products", "::mlir::func::FuncOp"> {
  let summary = "products of quantised tensors become products of their 8-bit integers";
}

def RecognizeAttention : Pass<"ptc-recognize-attention", "::mlir::func::FuncOp"> {
  let summary = "products around a softmax become prim.attention";
  let options = [Option<"remarks", "remarks", "bool", "false", "say why a softmax between products is not attention">];
}

def SimplifyAlgebra : Pass<"ptc-simplify-algebra", "::mlir::func::FuncOp"> {
  let summary = "identities of arithmetic, compositions of views, gathers and concats that are slices, concats that are parts of others";
}

def SinkBroadcasts : Pass<"ptc-sink-broadcasts", "::mlir::func::FuncOp"> {
  let summary = "what is computed of constants that repeat along free dims is computed once";
}

def SinkRepeats : Pass<"ptc-sink-repeats", "::mlir::func::FuncOp"> {
  let summary = "sums over rows that repeat, and what is computed of them, are computed once";
}

def SplitBatch : Pass<"ptc-split-batch", "::mlir::func::FuncOp"> {
  let summary = "ops that treat each image of a batch alone run image by image where caches gain by it";
  let options = [Option<"nearBytes", "near-bytes", "int64_t", "0", "of the cache that a core has for itself">,
                 Option<"farBytes", "far-bytes", "int64_t", "0", "of the cache that cores share, as far as one program finds it its own">,
                 Option<"remarks", "remarks", "bool", "false", "say what runs image by image and why other ops do not">];
}

def TabulateBytes : Pass<"ptc-tabulate-bytes", "::mlir::func::FuncOp"> {
  let summary = "elementary functions of one byte, with all that is computed of it beside them, are looked up in a table";
}

def TrimWindows : Pass<"ptc-trim-windows", "::mlir::func::FuncOp"> {
  let summary = "windows of convolutions lose what lies outside of the image for all results";
}

def UnifySizes : Pass<"ptc-unify-sizes", "::mlir::func::FuncOp"> {
  let summary = "sizes of arguments that a guard makes equal are one symbol";
}
