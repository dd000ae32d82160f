//===- PackWeights.cpp - weights in the form that kernels read ------------===//
//
// The rhs of a contraction that is a plain, affine read of a weight is stored in
// unit panels, [batch...][n/16][k...][16] for a target whose panels have 16 columns: every
// register tile of each of its levels reads them front to back. The recipe says for each dim of the stored form how
// far it steps in the source; linking executes it. Nothing is moved here.
//
// One stored form per weight: a weight that another node reads as well keeps
// its plain form beside the packed one (tied embeddings, for example).
//
//===----------------------------------------------------------------------===//

#include "lowering/prim_to_loop/Passes.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace ptc {
#define GEN_PASS_DEF_PACKWEIGHTS
#include "lowering/prim_to_loop/Passes.h.inc"
} // namespace ptc

namespace {

/// The load that is the whole of a region, if it reads a weight.
LoadOp matchWeightRead(Region &region) {
  Block &block = region.front();
  if (!llvm::hasNItems(block, 2))
    return {};
  auto load = dyn_cast<LoadOp>(block.front());
  if (!load || !load.getIndexOperands().empty() || !load.getBuffer().getDefiningOp<WeightOp>())
    return {};
  return load;
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

void pack(ContractionOp node, int64_t panelWidth) {
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
  int64_t n = domain[nDim].getValue();
  int64_t panel = extents.size();
  add(llvm::divideCeil(n, panelWidth), (*steps)[nDim] * panelWidth);
  for (unsigned dim = kDim; dim < domain.size(); ++dim)
    add(domain[dim].getValue(), (*steps)[dim]);
  int64_t lane = extents.size();
  add(panelWidth, (*steps)[nDim]);

  MLIRContext *context = node.getContext();
  int64_t count = 1;
  for (int64_t extent : extents)
    count *= extent;
  auto weight = load.getBuffer().getDefiningOp<WeightOp>();
  auto elementType = weight.getResult().getType().getElementType();
  auto recipe = RecipeAttr::get(context, extents, strides, rest.getValue(), panel, lane, n);
  auto type = BufferType::get(context, ArrayRef<Expr>(Expr::constant(context, count)), elementType,
                              LayoutAttr::getRowMajor(context, 1));
  OpBuilder b(weight);
  auto packed = WeightOp::create(b, weight.getLoc(), type, weight.getRef(), recipe);
  b.setInsertionPoint(load);
  Value element = PanelsOp::create(b, load.getLoc(), elementType, packed);
  load.getResult().replaceAllUsesWith(element);
  load.erase();
  if (weight->use_empty())
    weight.erase();
}

struct PackWeights : ptc::impl::PackWeightsBase<PackWeights> {
  using PackWeightsBase::PackWeightsBase;
  void runOnOperation() override {
    getOperation().walk([&](ContractionOp node) { pack(node, panelWidth); });
  }
};

} // namespace
