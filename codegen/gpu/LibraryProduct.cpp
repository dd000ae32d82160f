//===- LibraryProduct.cpp - what cuBLASLt can compute ---------------------===//
//
// A kernel that is one matrix product of f16, bf16 or f32, with nothing, a bias along its columns, or a ReLU behind it,
// is a call of cuBLASLt as well. Whether that is faster, measuring tells (`cublaslt` of GpuTuning.h); the kernel has
// its own code in any case, for machines where the library is absent or refuses.
//
//   operands   loads through indices that are linear in the dims; rows, columns, k and batch are one axis each; one
//              of the first three has neighbours in memory; all extents known
//   sums       in f32: of f16 and bf16 as in the kernel's own code, of f32 by f32 arithmetic (never TF32)
//   rounding   where the kernel's code rounds a sum to 16 bits, adds a bias and rounds again, the library rounds once:
//              `contract` of --fp allows that, `strict` does not
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/LibraryProduct.h"
#include "codegen/gpu/GpuTuning.h"
#include "codegen/gpu/WgmmaOperands.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;
using Product = codegen::LibraryProduct;

static constexpr int64_t workspace = 32 << 20; // what the library's makers recommend for sm_90

static std::optional<Product::Type> findType(Type type) {
  if (type.isF32())
    return Product::Type::F32;
  if (type.isF16())
    return Product::Type::F16;
  return type.isBF16() ? std::optional(Product::Type::BF16) : std::nullopt;
}

static int64_t getBytes(Product::Type type) { return type == Product::Type::F32 ? 4 : 2; }

/// A matrix of lines and the elements of each, one of each batch.
static std::optional<Product::Matrix> describe(unsigned buffer, int64_t bytes, std::optional<Axis> lines,
                                               std::optional<Axis> elements, std::optional<Axis> batch) {
  if (!lines || !elements || !batch || elements->stride != 1 || lines->stride < elements->extent || batch->stride < 0 ||
      bytes < 0 || bytes % MmaTile::vectorBytes != 0)
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
  std::optional<unsigned> bufferOf(Value buffer) const;
  std::optional<Product::Matrix> matchOperand(bool isRhs, MmaKind kind);
  bool matchSizes();
  bool matchEpilogue();
  Value stripRounding(Value value);
  Value stripRelu(Value value);
  Value stripBias(Value value);

  loop::ContractionOp op;
  ContractionDims dims;
  Product product;
  Type resultType;
  unsigned roundings = 0;
};
} // namespace

std::optional<unsigned> ProductMatcher::bufferOf(Value buffer) const {
  auto argument = dyn_cast<BlockArgument>(buffer);
  return argument && argument.getOwner() == op->getBlock() ? std::optional(argument.getArgNumber()) : std::nullopt;
}

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

/// What is rounded to the result's type, and widened again.
Value ProductMatcher::stripRounding(Value value) {
  while (isa_and_nonnull<arith::TruncFOp, arith::ExtFOp>(value.getDefiningOp())) {
    Operation *conversion = value.getDefiningOp();
    Value source = conversion->getOperand(0);
    if (isa<arith::TruncFOp>(conversion)) {
      if (value.getType() != resultType)
        return value;
      ++roundings;
    }
    value = source;
  }
  return value;
}

/// x of `x < 0 ? 0 : x`.
Value ProductMatcher::stripRelu(Value value) {
  auto select = value.getDefiningOp<arith::SelectOp>();
  auto compare = select ? select.getCondition().getDefiningOp<arith::CmpFOp>() : arith::CmpFOp();
  if (!compare || compare.getPredicate() != arith::CmpFPredicate::OLT || compare.getLhs() != select.getFalseValue() ||
      !matchPattern(compare.getRhs(), m_PosZeroFloat()) || !matchPattern(select.getTrueValue(), m_PosZeroFloat()))
    return value;
  product.hasRelu = true;
  return select.getFalseValue();
}

/// The other operand of a sum with a vector along the columns.
Value ProductMatcher::stripBias(Value value) {
  auto sum = value.getDefiningOp<arith::AddFOp>();
  if (!sum)
    return value;
  for (bool isFirst : {false, true}) {
    Value addend = sum->getOperand(isFirst ? 0 : 1);
    if (auto widening = addend.getDefiningOp<arith::ExtFOp>())
      addend = widening.getIn();
    auto load = addend.getDefiningOp<loop::LoadOp>();
    std::optional<unsigned> buffer = load ? bufferOf(load.getBuffer()) : std::nullopt;
    if (!buffer || !load.getIndexOperands().empty() || load.getType() != resultType)
      continue;
    int64_t offset = 0;
    auto axes = readAxes(dims.domain, Expr(cast<ExprAttr>(load.getIndices()[0])), offset);
    if (!axes)
      continue;
    std::optional<Axis> batch = batchOf(*axes), rows = rowsOf(*axes), columns = columnsOf(*axes);
    int64_t bytes = offset * getBytes(product.resultType);
    if (!batch || batch->stride != 0 || !rows || rows->stride != 0 || !columns || columns->stride != 1 || bytes < 0 ||
        bytes % MmaTile::vectorBytes != 0)
      continue;
    product.bias = Product::Matrix{.buffer = *buffer, .offset = bytes};
    return sum->getOperand(isFirst ? 1 : 0);
  }
  return value;
}

bool ProductMatcher::matchEpilogue() {
  Block &block = op.getEpilogue().front();
  auto stores = block.getOps<loop::StoreOp>();
  if (!llvm::hasSingleElement(stores) || llvm::any_of(block, [](Operation &each) { return each.getNumRegions() > 0; }))
    return false;
  loop::StoreOp store = *stores.begin();
  resultType = store.getValue().getType();
  std::optional<Product::Type> type = findType(resultType);
  std::optional<unsigned> buffer = bufferOf(store.getBuffer());
  if (!type || (*type != product.type && *type != Product::Type::F32) || !buffer || !store.getIndexOperands().empty())
    return false;
  product.resultType = *type;
  int64_t offset = 0;
  auto axes = readAxes(dims.domain, Expr(cast<ExprAttr>(store.getIndices()[0])), offset);
  if (!axes)
    return false;
  std::optional<Product::Matrix> result =
      describe(*buffer, offset * getBytes(*type), rowsOf(*axes), columnsOf(*axes), batchOf(*axes));
  std::optional<Axis> depth = depthOf(*axes);
  if (!result || !depth || depth->stride != 0)
    return false;
  product.result = *result;
  Value value = stripRounding(stripRelu(stripRounding(store.getValue())));
  if (stripRounding(stripBias(value)) != block.getArgument(0))
    return false;
  bool adds = product.bias.has_value(); // else every rounding but the first changes nothing
  product.roundsOnce = adds && roundings > 1;
  return true;
}

std::optional<Product> ProductMatcher::match() {
  std::optional<MmaKind> kind = findMmaKind(op);
  if (!kind || multipliesBytes(*kind) || !matchSizes())
    return std::nullopt;
  product.type = *kind == MmaKind::F16    ? Product::Type::F16
                 : *kind == MmaKind::BF16 ? Product::Type::BF16
                                          : Product::Type::F32;
  std::optional<Product::Matrix> lhs = matchOperand(false, *kind), rhs = matchOperand(true, *kind);
  if (!lhs || !rhs || !matchEpilogue())
    return std::nullopt;
  product.lhs = *lhs;
  product.rhs = *rhs;
  product.workspace = workspace;
  return product;
}

std::optional<Product> gpu::findLibraryProduct(loop::KernelOp kernel) {
  SmallVector<Operation *> nodes = getNodes(kernel);
  auto op = nodes.size() == 1 ? dyn_cast<loop::ContractionOp>(nodes.front()) : loop::ContractionOp();
  return op ? ProductMatcher(op).match() : std::nullopt;
}

void gpu::planLibraryProduct(loop::KernelOp kernel) {
  if (loop::getTuned(kernel, tuned::cublaslt).value_or(0) <= 0 || !findLibraryProduct(kernel))
    return;
  MLIRContext *context = kernel.getContext();
  NamedAttrList config(kernel.getConfigAttr());
  config.set(tuned::cublaslt, UnitAttr::get(context));
  kernel.setConfigAttr(config.getDictionary(context));
  kernel.setScratchAttr(Expr::max(Expr(kernel.getScratchAttr()), Expr::constant(context, workspace)));
}

std::optional<Product> gpu::getLibraryProduct(loop::KernelOp kernel, StringRef level, bool contracts) {
  if (!kernel.getConfigAttr().contains(tuned::cublaslt) || !loop::getTuned(kernel, tuned::cublaslt, level))
    return std::nullopt;
  std::optional<Product> product = findLibraryProduct(kernel);
  return product && (contracts || !product->roundsOnce) ? product : std::nullopt;
}
