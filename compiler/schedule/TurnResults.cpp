//===- TurnResults.cpp - results of convolutions, channels first ----------===//
//
// Problem. A result of the model is row-major, so an image's channels lie outermost in it. A convolution that writes it
// takes pixels as the columns of its product, and copies those of each window for all tasks: with hundreds of terms it
// takes a third more time than with channels as columns, which the weight's panels have, and pixels as rows that are
// read where they are.
//
// Idea. The convolution writes its result channels last, and a node turns that in squares. The turned result is read
// and written once more; what it saves is a part of the time of all its terms.
//
//   turned   the one store of an f32 convolution with a packed weight, whose sum runs over a window, has at least
//            `fewestTerms` terms (where windows overlap, and would be copied several times over, `fewestOverlapping`),
//            and lies along pixels; what else is read for it depends on the channel alone
//   not      Winograd's algorithm, whose tiles are stored either way; products, and short sums: their columns are
//            copied in runs, or as fast as the result
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Passes.h"
#include "ir/loop/ContractionDims.h"
#include "ir/loop/Winograd.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace ptc {
#define GEN_PASS_DEF_TURNRESULTS
#include "compiler/schedule/Passes.h.inc"
} // namespace ptc

static constexpr int64_t fewestTerms = 96, fewestOverlapping = 24; // of a sum
static constexpr int64_t fewestColumns = 16, fewestRows = 16, lanes = 8;

namespace {

/// A convolution and its store, as far as their extents and strides are constant.
class TurnedResult {
public:
  explicit TurnedResult(ContractionOp op) : op(op), counts(op), domain(getDomain(op)) {}

  bool find() {
    if (!llvm::all_of(domain, [](Expr extent) { return extent.isConstant(); }) || getWinogradTile(op) ||
        counts.counts[3] < 2 || countPoints(3) < (overlaps() ? fewestOverlapping : fewestTerms) ||
        !fillsVectors(countPoints(2)) || countPoints(1) < fewestRows || !hasPackedWeight() || !findStore())
      return false;
    return llvm::all_of(op.getEpilogue().getOps<LoadOp>(), [&](LoadOp load) {
      Expr read = cast<ExprAttr>(load.getIndices()[0]);
      auto rows = llvm::seq(counts.first(1), counts.first(2));
      return load.getIndexOperands().empty() &&
             llvm::none_of(rows, [&](int64_t dim) { return read.uses("d" + std::to_string(dim)); });
    });
  }

  /// Lets the convolution write a buffer of its own, and a node behind `group` the rest.
  void turn(FusedOp group) {
    MLIRContext *context = op.getContext();
    OpBuilder b(group);
    Location loc = store.getLoc();
    int64_t kept = counts.first(3), size = 1;
    Expr at = Expr::constant(context, 0);
    for (int64_t dim = kept - 1; dim >= 0; --dim) {
      at = at + Expr::dim(context, unsigned(dim)) * size;
      size *= domain[dim].getValue();
    }
    auto type = BufferType::get(context, ArrayRef<Expr>(Expr::constant(context, size)), store.getValue().getType(),
                                LayoutAttr::getRowMajor(context, 1));
    Value target = store.getBuffer(), buffer = BufferOp::create(b, loc, type);
    store.getBufferMutable().assign(buffer);
    store.setIndicesAttr(prim::getExprArray(context, {at}));
    b.setInsertionPointAfter(group);
    createCopy(b, loc, buffer, target);
  }

private:
  int64_t countPoints(int group) {
    int64_t points = 1;
    for (int64_t dim = counts.first(group); dim < counts.first(group + 1); ++dim)
      points *= domain[dim].getValue();
    return points;
  }

  bool hasPackedWeight() {
    auto yield = cast<YieldOp>(op.getRhs().front().getTerminator());
    return yield.getValue().getDefiningOp<PanelsOp>() && yield.getValue().getType().isF32() &&
           op.getEpilogue().getArgument(0).getType().isF32();
  }

  /// Whether so many columns leave few lanes unused.
  static bool fillsVectors(int64_t columns) {
    return columns >= fewestColumns && 4 * int64_t(llvm::alignTo(uint64_t(columns), lanes)) <= 5 * columns;
  }

  /// Whether windows of neighbours in a row share elements, which each would copy.
  bool overlaps() {
    WalkResult found = op.getLhs().walk([&](LoadOp load) {
      Expr read = cast<ExprAttr>(load.getIndices()[0]);
      auto stepOf = [&](int64_t dim) {
        Expr step = loop::strideOf(read, dim);
        return step ? step.asConstant().value_or(0) : 0;
      };
      int64_t apart = stepOf(innermost(1));
      auto isShared = [&](int64_t dim) {
        int64_t step = stepOf(dim);
        return step > 0 && step <= apart && (domain[dim].getValue() - 1) * step >= apart;
      };
      auto terms = llvm::seq(counts.first(3), int64_t(domain.size()));
      return llvm::any_of(terms, isShared) ? WalkResult::interrupt() : WalkResult::advance();
    });
    return found.wasInterrupted();
  }

  /// Of dim `dim`, where the result is stored; 0: it is not constant.
  int64_t strideOf(int64_t dim) {
    Expr stride = loop::strideOf(cast<ExprAttr>(index), dim);
    return stride ? stride.asConstant().value_or(0) : 0;
  }

  /// The innermost dim of a group that has more than one point.
  int64_t innermost(int group) {
    int64_t dim = counts.first(group + 1) - 1;
    while (dim > counts.first(group) && domain[dim].isConstant(1))
      --dim;
    return dim;
  }

  bool findStore() {
    auto stores = op.getEpilogue().getOps<StoreOp>();
    if (!llvm::hasSingleElement(stores))
      return false;
    store = *stores.begin();
    index = store.getIndices()[0];
    bool isPlain = store.getIndexOperands().empty() && !store.getCombine() && store->getParentOp() == op;
    auto kept = llvm::seq<int64_t>(0, counts.first(3));
    return isPlain && llvm::all_of(kept, [&](int64_t dim) { return domain[dim].isConstant(1) || strideOf(dim); }) &&
           strideOf(innermost(1)) == 1 && strideOf(innermost(2)) != 1;
  }

  /// Dims that follow each other in both buffers are one.
  void createCopy(OpBuilder &b, Location loc, Value from, Value to) {
    MLIRContext *context = op.getContext();
    SmallVector<int64_t> extents, steps, classes; // of the copy's dims: points, and apart in `to`
    for (int group = 0; group < 3; ++group)
      for (int64_t dim = counts.first(group); dim < counts.first(group + 1); ++dim) {
        int64_t extent = domain[dim].getValue(), step = strideOf(dim);
        if (extent == 1)
          continue;
        if (!classes.empty() && classes.back() == group && steps.back() == step * extent) {
          extents.back() *= extent;
          steps.back() = step;
          continue;
        }
        extents.push_back(extent);
        steps.push_back(step);
        classes.push_back(group);
      }
    Expr first = Expr(cast<ExprAttr>(index)).substitute([&](StringRef) { return Expr::constant(context, 0); });
    Expr source = Expr::constant(context, 0), result = first;
    SmallVector<Expr> dims;
    int64_t size = 1;
    for (int64_t dim = int64_t(extents.size()) - 1; dim >= 0; --dim) {
      source = source + Expr::dim(context, unsigned(dim)) * size;
      result = result + Expr::dim(context, unsigned(dim)) * steps[dim];
      size *= extents[dim];
    }
    for (int64_t extent : extents)
      dims.push_back(Expr::constant(context, extent));
    auto group = FusedOp::create(b, loc, int64_t(extents.size()) - 1);
    b.setInsertionPointToEnd(&group.getBody().emplaceBlock());
    auto copy = PointwiseOp::create(b, loc, prim::getExprArray(context, dims));
    b.setInsertionPointToEnd(&copy.getBody().emplaceBlock());
    Value element = LoadOp::create(b, loc, from, ArrayRef<Expr>(source));
    StoreOp::create(b, loc, element, to, ArrayRef<Expr>(result));
  }

  ContractionOp op;
  DimCounts counts;
  SmallVector<Expr> domain;
  StoreOp store;
  Attribute index;
};

struct TurnResults : ptc::impl::TurnResultsBase<TurnResults> {
  void runOnOperation() override {
    SmallVector<FusedOp> groups;
    getOperation().walk([&](FusedOp group) { groups.push_back(group); });
    for (FusedOp group : groups) {
      Block &block = group.getBody().front();
      auto product = llvm::hasSingleElement(block) ? dyn_cast<ContractionOp>(block.front()) : ContractionOp();
      if (!product)
        continue;
      if (TurnedResult result(product); result.find())
        result.turn(group);
    }
  }
};

} // namespace
