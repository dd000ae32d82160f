//===- PackWeights.cpp - weights in the form that kernels read ------------===//
//
// The rhs of a contraction that is a plain, affine read of a weight is stored in
// unit panels, [batch...][n/16][k...][16] for a target whose panels have 16 columns:
// every register tile of each of its levels reads them front to back; of 8-bit integers four
// neighbours in k lie side by side, [n/16][k/4][16][4], of bf16 two. Panels do not
// pay below six columns: vectors then run along k, or along another dim, and the
// weight is one more operand.
//
// Such weights, and those of reductions (depthwise convolutions), are stored with
// their dims in the order in which the node walks memory: beside channels that lie
// innermost, a window's weights lie [window...][channel].
//
// Of a 3x3 convolution that Winograd's algorithm computes faster (ChooseWinograd.cpp)
// it is the transformed weight that is stored, [(tile + 2)^2][n/16][channel][16].
//
// The recipe says for each dim of the stored form how far it steps in the source;
// linking executes it. Nothing is moved here but constants, which are small.
//
// One stored form per weight: a weight that another node reads as well keeps
// its plain form beside the packed one (tied embeddings, for example), and is not
// reordered.
//
//===----------------------------------------------------------------------===//

#include "ir/loop/Winograd.h"
#include "ir/prim/WeightAttrs.h"
#include "lowering/prim_to_loop/ChooseWinograd.h"
#include "lowering/prim_to_loop/MemoryOrder.h"
#include "lowering/prim_to_loop/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace ptc {
#define GEN_PASS_DEF_PACKWEIGHTS
#include "lowering/prim_to_loop/Passes.h.inc"
} // namespace ptc

namespace {

//===----------------------------------------------------------------------===//
// Stored forms
//===----------------------------------------------------------------------===//

bool isConstantBuffer(Value buffer) { return buffer.getDefiningOp<WeightOp>() || buffer.getDefiningOp<ConstantOp>(); }

/// The constant's elements as the recipe gathers them; null for element types that have no bytes of their own.
DenseElementsAttr gather(ElementsAttr source, RecipeAttr recipe, ArrayRef<int64_t> shape) {
  auto elements = dyn_cast<DenseElementsAttr>(source);
  Type element = source.getElementType();
  if (!elements || !element.isIntOrFloat() || element.getIntOrFloatBitWidth() % 8)
    return {};
  auto type = RankedTensorType::get(shape, element);
  int64_t count = 1;
  for (int64_t extent : recipe.getExtents())
    count *= extent;
  SmallVector<Attribute> all(elements.getValues<Attribute>()), gathered;
  Attribute zero = Builder(source.getContext()).getZeroAttr(element);
  SmallVector<int64_t> index(recipe.getExtents().size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    int64_t position = recipe.getOffset();
    for (auto [at, stride] : llvm::zip(index, recipe.getStrides()))
      position += at * stride;
    bool isInside =
        recipe.getPanel() < 0 ||
        index[recipe.getPanel()] * recipe.getExtents()[recipe.getLane()] + index[recipe.getLane()] < recipe.getLimit();
    gathered.push_back(isInside ? all[position] : zero);
    for (int64_t dim = int64_t(index.size()) - 1; dim >= 0; --dim) {
      if (++index[dim] < recipe.getExtents()[dim])
        break;
      index[dim] = 0;
    }
  }
  return DenseElementsAttr::get(type, gathered);
}

/// Another stored form of the weight; `winograd`: the tile for which it is transformed, or 0.
Value createWeight(OpBuilder &b, WeightOp weight, BufferType type, RecipeAttr recipe, int64_t winograd) {
  auto stored = WeightOp::create(b, weight.getLoc(), type, weight.getRef(), recipe);
  if (winograd)
    stored->setAttr(winogradAttr, b.getI64IntegerAttr(winograd));
  if (Attribute source = weight->getAttr(prim::sourceTypeAttr))
    stored->setAttr(prim::sourceTypeAttr, source);
  return stored;
}

/// A gathered constant with its planes transformed.
DenseElementsAttr transform(DenseElementsAttr planes, int64_t winograd) {
  SmallVector<float> elements(planes.getValues<float>());
  int64_t size = (winograd + 2) * (winograd + 2), count = int64_t(elements.size()) / 9 * size;
  elements.resize(count);
  transformWinogradWeights(winograd, elements);
  return DenseElementsAttr::get(RankedTensorType::get(count, planes.getElementType()), ArrayRef<float>(elements));
}

/// The stored form of a weight or constant as a buffer of `shape`, row-major; null if it cannot be made.
Value createStored(Value buffer, RecipeAttr recipe, ArrayRef<int64_t> shape, int64_t winograd = 0) {
  Operation *source = buffer.getDefiningOp();
  MLIRContext *context = source->getContext();
  SmallVector<Expr> dims;
  for (int64_t extent : shape)
    dims.push_back(Expr::constant(context, extent));
  auto type = BufferType::get(context, dims, cast<BufferType>(buffer.getType()).getElementType(),
                              LayoutAttr::getRowMajor(context, shape.size()));
  OpBuilder b(source);
  if (auto weight = dyn_cast<WeightOp>(source))
    return createWeight(b, weight, type, recipe, winograd);
  int64_t gathered = 1;
  for (int64_t extent : recipe.getExtents())
    gathered *= extent;
  DenseElementsAttr value =
      gather(cast<ConstantOp>(source).getValue(), recipe, winograd ? ArrayRef<int64_t>(gathered) : shape);
  if (value && winograd)
    value = transform(value, winograd);
  return value ? ConstantOp::create(b, source->getLoc(), type, value).getResult() : Value();
}

void eraseIfUnused(Value buffer) {
  if (buffer.use_empty())
    buffer.getDefiningOp()->erase();
}

//===----------------------------------------------------------------------===//
// Panels
//===----------------------------------------------------------------------===//

/// The load with which a region begins, if it reads a weight or constant in its source's order and the rest of the
/// region converts the element alone.
LoadOp matchWeightRead(Region &region) {
  Block &block = region.front();
  auto load = dyn_cast<LoadOp>(block.front());
  for (Operation &op : llvm::drop_begin(block))
    if (!isa<YieldOp, arith::ConstantOp, arith::XOrIOp, arith::ExtSIOp, arith::ExtUIOp, arith::ExtFOp>(op))
      return {};
  if (!load || !load.getIndexOperands().empty() || !isConstantBuffer(load.getBuffer()))
    return {};
  auto weight = load.getBuffer().getDefiningOp<WeightOp>();
  return weight && weight.getRecipe() ? LoadOp() : load;
}

/// Element position in the weight's row-major source.
Expr getPosition(LoadOp load) {
  auto type = cast<BufferType>(load.getBuffer().getType());
  Expr position = Expr::constant(load.getContext(), 0);
  for (auto [index, stride] : llvm::zip(prim::getExprs(load.getIndices()), type.getStrides()))
    position = position + index * stride;
  return position;
}

/// Step of `position` for each dim in [begin, end), all constant; nothing if
/// one is not. What remains of the position goes to `rest`.
std::optional<SmallVector<int64_t>> getSteps(Expr position, unsigned rank, Expr &rest) {
  SmallVector<int64_t> steps;
  rest = position;
  for (unsigned dim = 0; dim < rank; ++dim) {
    std::string name = ("d" + Twine(dim)).str();
    if (!rest.uses(name)) {
      steps.push_back(0);
      continue;
    }
    Expr remainder;
    Expr step = rest.coefficientOf(name, &remainder);
    if (!step || !step.isConstant())
      return std::nullopt;
    steps.push_back(step.getValue());
    rest = remainder;
  }
  if (!rest.isConstant())
    return std::nullopt;
  return steps;
}

/// Terms that are stored side by side: processors add up the products of four bytes in one instruction, unsigned ones
/// of the lhs by signed ones of the rhs, and of two bf16.
int64_t getGroup(ContractionOp node) {
  auto isWidened = [](Region &region, auto widening, auto fits) {
    auto op = cast<YieldOp>(region.front().getTerminator()).getValue().getDefiningOp<decltype(widening)>();
    return op && fits(op.getIn().getType()) && op.getType().getIntOrFloatBitWidth() == 32;
  };
  auto isByte = [](Type type) { return type.isInteger(8); };
  auto isBf16 = [](Type type) { return type.isBF16(); };
  Region &lhs = node.getLhs(), &rhs = node.getRhs();
  int64_t group = 1;
  if (isWidened(lhs, arith::ExtUIOp(), isByte) && isWidened(rhs, arith::ExtSIOp(), isByte))
    group = 4;
  else if (isWidened(lhs, arith::ExtFOp(), isBf16) && isWidened(rhs, arith::ExtFOp(), isBf16))
    group = 2;
  return node.getK() && getDomain(node).back().getValue() % group == 0 ? group : 1;
}

/// `winograd`: the tile with which the node is computed, or 0.
void pack(ContractionOp node, int64_t panelWidth, int64_t fewestColumns, int64_t winograd) {
  LoadOp load = matchWeightRead(node.getRhs());
  if (!load || node.getN() != 1)
    return;
  SmallVector<Expr> domain = getDomain(node);
  Expr rest;
  auto steps = getSteps(getPosition(load), domain.size(), rest);
  if (!steps)
    return;
  unsigned nDim = node.getBatch() + node.getM(), kDim = nDim + 1;
  SmallVector<int64_t> extents, strides;
  auto add = [&](int64_t extent, int64_t stride) {
    extents.push_back(extent);
    strides.push_back(stride);
  };
  for (unsigned dim = 0; dim < domain.size(); ++dim)
    if ((dim < node.getBatch() || dim >= nDim) && !domain[dim].isConstant())
      return; // a weight's own dims are constant; a broadcast batch is not packed
  for (unsigned dim = 0; dim < node.getBatch(); ++dim)
    add(domain[dim].getValue(), (*steps)[dim]);
  if (winograd) // the window's dims are the outermost ones, which the transform makes (tile + 2)^2
    for (unsigned dim : {kDim, kDim + 1})
      add(domain[dim].getValue(), (*steps)[dim]);
  int64_t n = domain[nDim].getValue();
  if (n < fewestColumns)
    return;
  int64_t panel = extents.size();
  add(llvm::divideCeil(n, panelWidth), (*steps)[nDim] * panelWidth);
  int64_t group = getGroup(node);
  for (unsigned dim = winograd ? kDim + 2 : kDim; dim < domain.size(); ++dim) {
    int64_t terms = dim + 1 == domain.size() ? group : 1;
    add(domain[dim].getValue() / terms, (*steps)[dim] * terms);
  }
  int64_t lane = extents.size();
  add(panelWidth, (*steps)[nDim]);
  if (group > 1)
    add(group, (*steps).back());

  int64_t count = 1;
  for (int64_t extent : extents)
    count *= extent;
  if (winograd)
    count = count / 9 * (winograd + 2) * (winograd + 2);
  auto recipe = RecipeAttr::get(node.getContext(), extents, strides, rest.getValue(), panel, lane, n);
  Value source = load.getBuffer(), packed = createStored(source, recipe, count, winograd);
  if (!packed)
    return;
  OpBuilder b(load);
  Type elementType = cast<BufferType>(source.getType()).getElementType();
  auto element = PanelsOp::create(b, load.getLoc(), elementType, packed, group);
  if (winograd)
    element->setAttr(winogradAttr, b.getI64IntegerAttr(winograd));
  load.getResult().replaceAllUsesWith(element.getResult());
  load.erase();
  eraseIfUnused(source);
}

//===----------------------------------------------------------------------===//
// Reordering
//===----------------------------------------------------------------------===//

/// Stores what `load` reads with its dims in the order of the node's walk through memory.
void reorder(LoadOp load, ArrayRef<int64_t> places) {
  Value source = load.getBuffer();
  auto weight = source.getDefiningOp<WeightOp>();
  if (!isConstantBuffer(source) || !source.hasOneUse() || (weight && weight.getRecipe()))
    return;
  SmallVector<Expr> indices = prim::getExprs(load.getIndices());
  SmallVector<int64_t> order = getBufferOrder(indices, places);
  auto type = cast<BufferType>(source.getType());
  SmallVector<int64_t> extents, strides;
  SmallVector<Expr> reordered;
  bool moves = false;
  int64_t before = -1;
  for (int64_t dim : order) {
    std::optional<int64_t> extent = type.getShape()[dim].asConstant(), stride = type.getStrides()[dim].asConstant();
    if (!extent || !stride)
      return;
    extents.push_back(*extent);
    strides.push_back(*stride);
    reordered.push_back(indices[dim]);
    if (*extent == 1)
      continue;
    moves |= dim < before;
    before = dim;
  }
  if (!moves)
    return;
  auto recipe = RecipeAttr::get(load.getContext(), extents, strides, 0, -1, -1, 0);
  Value stored = createStored(source, recipe, extents);
  if (!stored)
    return;
  load.getBufferMutable().assign(stored);
  load.setIndicesAttr(prim::getExprArray(load.getContext(), reordered));
  eraseIfUnused(source);
}

void reorderWeights(Operation *node, const SymbolValues &hints) {
  SmallVector<int64_t> places = getMemoryPlaces(node, hints);
  if (places.empty())
    return;
  node->walk([&](LoadOp load) { reorder(load, places); });
}

struct PackWeights : ptc::impl::PackWeightsBase<PackWeights> {
  using PackWeightsBase::PackWeightsBase;
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>()) {
      SymbolValues hints = prim::getSymbolHints(program.getSymbols());
      if (panelWidth > 0)
        program.walk([&](ContractionOp node) {
          pack(node, panelWidth, fewestColumns, winograd ? chooseWinograd(node, hints) : 0);
        });
      program.walk([&](Operation *op) {
        if (isa<ContractionOp, ReductionOp>(op))
          reorderWeights(op, hints);
      });
    }
  }
};

} // namespace
