//===- LibraryCall.cpp - kernels that libraries can compute ---------------===//
//
// A kernel that is one contraction of f16, bf16 or f32 may be a call of cuBLASLt (LibraryProduct.cpp) or of cuDNN
// (LibraryConvolution.cpp). Whether that is faster, measuring tells; the kernel has its own code in any case, for
// machines where the library is absent or refuses.
//
//   sums       in f32: of f16 and bf16 as in the kernel's own code, of f32 by f32 arithmetic (never TF32)
//   rounding   where the kernel's code rounds a sum to 16 bits, adds a bias and rounds again, a library rounds once:
//              `contract` of --fp allows that, `strict` does not
//   ReLU       of NaN is NaN in the kernel's code, and may be 0 in a library's (cuDNN lets none pass unless asked to,
//              cuBLASLt promises nothing): so `strict` leaves it to the kernel's
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/LibraryCall.h"
#include "codegen/gpu/GpuTuning.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;
using codegen::LibraryType;

static std::optional<LibraryType> findType(Type type) {
  if (type.isF32())
    return LibraryType::F32;
  if (type.isF16())
    return LibraryType::F16;
  return type.isBF16() ? std::optional(LibraryType::BF16) : std::nullopt;
}

std::optional<LibraryType> gpu::findLibraryType(loop::ContractionOp op) {
  std::optional<MmaKind> kind = findMmaKind(op);
  if (!kind || multipliesBytes(*kind))
    return std::nullopt;
  return *kind == MmaKind::F16 ? LibraryType::F16 : *kind == MmaKind::BF16 ? LibraryType::BF16 : LibraryType::F32;
}

int64_t gpu::getBytes(LibraryType type) { return type == LibraryType::F32 ? 4 : 2; }

//===----------------------------------------------------------------------===//
// Behind the sums
//===----------------------------------------------------------------------===//

namespace {
class EpilogueMatcher {
public:
  explicit EpilogueMatcher(loop::ContractionOp op) : op(op), domain(loop::getDomain(op)) {}
  std::optional<LibraryEpilogue> match(LibraryType operands);

private:
  template <typename Op> std::optional<LibraryAccess> access(Op op) const;
  Value stripRounding(Value value);
  Value stripRelu(Value value);
  Value stripAddend(Value value);

  loop::ContractionOp op;
  SmallVector<Expr> domain;
  LibraryEpilogue found;
  Type resultType;
  unsigned roundings = 0;
};
} // namespace

template <typename Op> std::optional<LibraryAccess> EpilogueMatcher::access(Op each) const {
  auto argument = dyn_cast<BlockArgument>(each.getBuffer());
  if (!argument || argument.getOwner() != op->getBlock() || !each.getIndexOperands().empty())
    return std::nullopt;
  int64_t offset = 0;
  auto axes = readAxes(domain, Expr(cast<ExprAttr>(each.getIndices()[0])), offset);
  if (!axes)
    return std::nullopt;
  return LibraryAccess{argument.getArgNumber(), offset * getBytes(found.type), std::move(*axes)};
}

/// What is rounded to the result's type, and widened again.
Value EpilogueMatcher::stripRounding(Value value) {
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
Value EpilogueMatcher::stripRelu(Value value) {
  auto select = value.getDefiningOp<arith::SelectOp>();
  auto compare = select ? select.getCondition().getDefiningOp<arith::CmpFOp>() : arith::CmpFOp();
  if (!compare || compare.getPredicate() != arith::CmpFPredicate::OLT || compare.getLhs() != select.getFalseValue() ||
      !matchPattern(compare.getRhs(), m_PosZeroFloat()) || !matchPattern(select.getTrueValue(), m_PosZeroFloat()))
    return value;
  found.hasRelu = true;
  return select.getFalseValue();
}

/// The other operand of a sum with elements of a buffer.
Value EpilogueMatcher::stripAddend(Value value) {
  auto sum = value.getDefiningOp<arith::AddFOp>();
  if (!sum)
    return value;
  for (bool isFirst : {false, true}) {
    Value addend = sum->getOperand(isFirst ? 0 : 1);
    if (auto widening = addend.getDefiningOp<arith::ExtFOp>())
      addend = widening.getIn();
    auto load = addend.getDefiningOp<loop::LoadOp>();
    std::optional<LibraryAccess> read =
        load && load.getType() == resultType ? access(load) : std::optional<LibraryAccess>();
    if (!read)
      continue;
    found.addends.push_back(std::move(*read));
    return sum->getOperand(isFirst ? 1 : 0);
  }
  return value;
}

std::optional<LibraryEpilogue> EpilogueMatcher::match(LibraryType operands) {
  Block &block = op.getEpilogue().front();
  auto stores = block.getOps<loop::StoreOp>();
  if (!llvm::hasSingleElement(stores) || llvm::any_of(block, [](Operation &each) { return each.getNumRegions() > 0; }))
    return std::nullopt;
  loop::StoreOp store = *stores.begin();
  resultType = store.getValue().getType();
  std::optional<LibraryType> type = findType(resultType);
  if (!type || (*type != operands && *type != LibraryType::F32))
    return std::nullopt;
  found.type = *type;
  std::optional<LibraryAccess> result = access(store);
  if (!result)
    return std::nullopt;
  found.result = std::move(*result);
  Value value = stripRounding(stripRelu(stripRounding(store.getValue())));
  while (value != block.getArgument(0)) {
    Value rest = stripRounding(stripAddend(value));
    if (rest == value)
      return std::nullopt;
    value = rest;
  }
  // Without a sum, every rounding but the first changes nothing.
  found.roundsOnce = found.addends.size() > 1 || (!found.addends.empty() && roundings > 1);
  return std::move(found);
}

std::optional<LibraryEpilogue> gpu::matchLibraryEpilogue(loop::ContractionOp op, LibraryType operands) {
  return EpilogueMatcher(op).match(operands);
}

//===----------------------------------------------------------------------===//
// The call
//===----------------------------------------------------------------------===//

StringRef gpu::findLibrary(loop::KernelOp kernel) {
  if (findLibraryProduct(kernel))
    return tuned::cublaslt;
  return findLibraryConvolution(kernel) ? StringRef(tuned::cudnn) : StringRef();
}

/// The one that was tuned, if it can compute the kernel.
static StringRef findTunedLibrary(loop::KernelOp kernel) {
  auto isTuned = [&](StringRef name) { return loop::getTuned(kernel, name).value_or(0) > 0; };
  StringRef library = isTuned(tuned::cublaslt) || isTuned(tuned::cudnn) ? findLibrary(kernel) : StringRef();
  return library.empty() || isTuned(library) ? library : StringRef();
}

bool gpu::isLeftToLibrary(loop::KernelOp kernel) { return !findTunedLibrary(kernel).empty(); }

void gpu::planLibraryCall(loop::KernelOp kernel) {
  StringRef library = findTunedLibrary(kernel);
  if (library.empty())
    return;
  MLIRContext *context = kernel.getContext();
  NamedAttrList config(kernel.getConfigAttr());
  config.set(library, UnitAttr::get(context));
  kernel.setConfigAttr(config.getDictionary(context));
  kernel.setScratchAttr(Expr::max(Expr(kernel.getScratchAttr()), Expr::constant(context, libraryWorkspace)));
}

void gpu::setLibraryCall(codegen::DeviceLaunch &launch, loop::KernelOp kernel, StringRef level, bool contracts) {
  auto isChosen = [&](StringRef name) {
    return kernel.getConfigAttr().contains(name) && loop::getTuned(kernel, name, level);
  };
  if (isChosen(tuned::cublaslt))
    launch.product = findLibraryProduct(kernel);
  if (isChosen(tuned::cudnn))
    launch.convolution = findLibraryConvolution(kernel);
  auto leaveInexact = [&](auto &call) {
    if (call && !contracts && (call->roundsOnce || call->hasRelu))
      call.reset();
  };
  leaveInexact(launch.product);
  leaveInexact(launch.convolution);
}

static StringRef nameOf(LibraryType type) {
  static constexpr StringRef names[] = {"f32", "f16", "bf16"};
  return names[size_t(type)];
}

static void describe(raw_ostream &os, const codegen::LibraryProduct &product) {
  auto describe = [&](StringRef name, const codegen::LibraryProduct::Matrix &matrix) {
    os << ", " << name << " parameter " << matrix.buffer << " offset " << matrix.offset << " pitch " << matrix.pitch;
    if (matrix.isAlongK)
      os << " along k";
    if (product.batch > 1)
      os << " every " << matrix.batchStride;
  };
  os << "//   or by cuBLASLt: " << product.batch << " x " << product.m << " x " << product.n << " x " << product.k
     << " of " << nameOf(product.type) << " to " << nameOf(product.resultType);
  describe("lhs", product.lhs);
  describe("rhs", product.rhs);
  describe("result", product.result);
  if (product.bias)
    os << ", bias parameter " << product.bias->buffer << " offset " << product.bias->offset;
  os << (product.hasRelu ? ", relu\n" : "\n");
}

static void describe(raw_ostream &os, const codegen::LibraryConvolution &convolution) {
  auto describe = [&](StringRef name, const codegen::LibraryConvolution::Image &image) {
    os << ", " << name << " parameter " << image.buffer << " offset " << image.offset << " [";
    llvm::interleaveComma(llvm::zip(image.extents, image.strides), os,
                          [&](auto dim) { os << std::get<0>(dim) << ':' << std::get<1>(dim); });
    os << ']';
  };
  os << "//   or by cuDNN: a convolution of " << nameOf(convolution.type) << " to " << nameOf(convolution.resultType);
  describe("input", convolution.input);
  describe("weights", convolution.weights);
  describe("result", convolution.result);
  if (convolution.bias)
    os << ", bias parameter " << convolution.bias->buffer << " offset " << convolution.bias->offset;
  if (convolution.residual)
    describe("residual", *convolution.residual);
  auto list = [&](StringRef name, ArrayRef<int64_t> values) {
    os << ", " << name << " [";
    llvm::interleaveComma(values, os);
    os << ']';
  };
  list("steps", convolution.steps);
  list("dilations", convolution.dilations);
  list("before", convolution.before);
  list("behind", convolution.behind);
  os << (convolution.hasRelu ? ", relu\n" : "\n");
}

void gpu::describeLibraryCall(raw_ostream &os, const codegen::DeviceLaunch &launch) {
  if (launch.product)
    describe(os, *launch.product);
  if (launch.convolution)
    describe(os, *launch.convolution);
}
