//===- LibraryProduct.cpp - what cuBLASLt can compute ---------------------===//
//
// A kernel that is one matrix product of f16, bf16 or f32, with nothing, a bias along its columns, or a ReLU behind it,
// is a call of cuBLASLt as well (LibraryCall.cpp).
//
//   operands   loads through indices that are linear in the dims; rows, columns, k and batch are one axis each; one
//              of the first three has neighbours in memory; all extents known
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/LibraryCall.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;
using Product = codegen::LibraryProduct;

/// A matrix of lines and the elements of each, one of each batch.
static std::optional<Product::Matrix> describe(unsigned buffer, int64_t bytes, std::optional<Axis> lines,
                                               std::optional<Axis> elements, std::optional<Axis> batch) {
  if (!lines || !elements || !batch || elements->stride != 1 || lines->stride < elements->extent || batch->stride < 0 ||
      !isLibraryOffset(bytes))
    return std::nullopt;
  return Product::Matrix{.buffer = buffer, .offset = bytes, .pitch = lines->stride, .batchStride = batch->stride};
}

namespace {
/// Reads the op's regions.
class ProductMatcher {
public:
  explicit ProductMatcher(loop::ContractionOp op) : op(op), dims(op) {}
  std::optional<Product> match();

private:
  using Axes = SmallVector<Axis>;
  std::optional<Axis> merge(const Axes &axes, int64_t from, int64_t to) const {
    return mergeAxes(ArrayRef(axes).slice(size_t(from), size_t(to - from)));
  }
  std::optional<Axis> batchOf(const Axes &axes) const { return merge(axes, 0, dims.firstM); }
  std::optional<Axis> rowsOf(const Axes &axes) const { return merge(axes, dims.firstM, dims.firstN); }
  std::optional<Axis> columnsOf(const Axes &axes) const { return merge(axes, dims.firstN, dims.firstK); }
  std::optional<Axis> depthOf(const Axes &axes) const { return merge(axes, dims.firstK, int64_t(axes.size())); }
  std::optional<Product::Matrix> matchOperand(bool isRhs, MmaKind kind);
  bool matchSizes();
  bool matchEpilogue();
  bool matchBias(const LibraryAccess &addend);

  loop::ContractionOp op;
  ContractionDims dims;
  Product product;
};
} // namespace

bool ProductMatcher::matchSizes() {
  auto count = [](ArrayRef<Expr> extents) -> int64_t {
    int64_t all = 1;
    for (Expr extent : extents)
      all *= std::max<int64_t>(extent.asConstant().value_or(0), 0);
    return all;
  };
  product.batch = count(dims.batch());
  product.m = count(dims.m());
  product.n = count(dims.n());
  product.k = count(dims.k());
  return product.batch > 0 && product.m > 1 && product.n > 1 && product.k > 1; // what has one row is no matrix
}

std::optional<Product::Matrix> ProductMatcher::matchOperand(bool isRhs, MmaKind kind) {
  std::optional<WgmmaLoad> load = analyzeLoad(op, isRhs, WgmmaTile{.kind = kind});
  if (!load || !load->conditions.empty())
    return std::nullopt;
  std::optional<Axis> free = isRhs ? columnsOf(load->axes) : rowsOf(load->axes), k = depthOf(load->axes);
  bool isAlongK = k && k->stride == 1;
  auto matrix = describe(load->buffer, load->offset * getElementBytes(kind), isAlongK ? free : k, isAlongK ? k : free,
                         batchOf(load->axes));
  if (matrix)
    matrix->isAlongK = isAlongK;
  return matrix;
}

/// A vector along the columns.
bool ProductMatcher::matchBias(const LibraryAccess &addend) {
  std::optional<Axis> batch = batchOf(addend.axes), rows = rowsOf(addend.axes), columns = columnsOf(addend.axes);
  if (!batch || batch->stride != 0 || !rows || rows->stride != 0 || !columns || columns->stride != 1 ||
      !isLibraryOffset(addend.offset))
    return false;
  product.bias = Product::Matrix{.buffer = addend.buffer, .offset = addend.offset};
  return true;
}

bool ProductMatcher::matchEpilogue() {
  std::optional<LibraryEpilogue> epilogue = matchLibraryEpilogue(op, product.type);
  if (!epilogue || epilogue->addends.size() > 1)
    return false;
  product.resultType = epilogue->type;
  product.hasRelu = epilogue->hasRelu;
  product.roundsOnce = epilogue->roundsOnce;
  const LibraryAccess &stored = epilogue->result;
  std::optional<Product::Matrix> result =
      describe(stored.buffer, stored.offset, rowsOf(stored.axes), columnsOf(stored.axes), batchOf(stored.axes));
  std::optional<Axis> depth = depthOf(stored.axes);
  if (!result || !depth || depth->stride != 0)
    return false;
  product.result = *result;
  return epilogue->addends.empty() || matchBias(epilogue->addends.front());
}

std::optional<Product> ProductMatcher::match() {
  std::optional<codegen::LibraryType> type = findLibraryType(op);
  if (!type || !matchSizes())
    return std::nullopt;
  product.type = *type;
  MmaKind kind = *findMmaKind(op);
  std::optional<Product::Matrix> lhs = matchOperand(false, kind), rhs = matchOperand(true, kind);
  if (!lhs || !rhs || !matchEpilogue())
    return std::nullopt;
  product.lhs = *lhs;
  product.rhs = *rhs;
  product.workspace = libraryWorkspace;
  return product;
}

std::optional<Product> gpu::findLibraryProduct(loop::KernelOp kernel) {
  SmallVector<Operation *> nodes = getNodes(kernel);
  auto op = nodes.size() == 1 ? dyn_cast<loop::ContractionOp>(nodes.front()) : loop::ContractionOp();
  return op ? ProductMatcher(op).match() : std::nullopt;
}
