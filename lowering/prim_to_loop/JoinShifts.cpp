//===- JoinShifts.cpp - one value at several shifts, side by side ---------===//
//
// Where parts of one value are joined along the dim that runs innermost in memory (a spectrum and its harmonics as the
// channels of an image), each part is a copy
//
//   pointwise [n, w] { store(masked [d1 + s_p, w - 1 - d1 - s_p] { load B[d0, d1 + s_p] } else 0, C[d0, d1, p]) }
//
// whose results lie as far from each other as there are parts: each copy goes through all lines of C and writes one
// element of a vector. The copies become one node
//
//   pointwise [n, w, parts] { store(masked [...] { load B[d0, d1 + s(d2)] } else 0, C[d0, d1, d2]) }
//
// with s(p) = s_p and conditions likewise, as selections by the last dim. It writes C in its order, and whoever makes
// code of it knows each part's shift (CPUs weave as many vectors as there are parts).
//
//   joined   all parts of C, 2 to 8 of them (a power of 2, whose vectors are woven in rounds), from one buffer that is
//            no part of C, each at indices that differ from the first one's by constants, filled up with one constant
//   not      a concat of several values, whose producers write it
//
// Before copies are elided: a part that is all of B would be, and B would lie in C then, every so many elements.
//
//===----------------------------------------------------------------------===//

#include "lowering/prim_to_loop/MemoryOrder.h"
#include "lowering/prim_to_loop/Passes.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace ptc {
#define GEN_PASS_DEF_JOINSHIFTS
#include "lowering/prim_to_loop/Passes.h.inc"
} // namespace ptc

namespace {

constexpr int64_t mostParts = 8; // vectors that are woven in registers

/// A copy of a part; indices and conditions are over the node's dims, those of extent 1 left out.
struct Part {
  PointwiseOp node;
  SmallVector<Expr> from, to, conditions;
  Value source;
  TypedAttr other; // null: there are no conditions
};

/// The expressions with 0 for dims of extent 1.
SmallVector<Expr> withoutUnits(ArrayAttr exprs, ArrayRef<Expr> domain) {
  return llvm::map_to_vector(prim::getExprs(exprs), [&](Expr expr) {
    return expr.substitute([&](StringRef symbol) {
      std::optional<unsigned> dim = parseNumbered(symbol, 'd');
      return dim && domain[*dim].isConstant(1) ? Expr::constant(expr.getContext(), 0) : Expr();
    });
  });
}

std::optional<Part> matchPart(PointwiseOp node) {
  Part part{node, {}, {}, {}, {}, {}};
  SmallVector<Expr> domain = getDomain(node);
  LoadOp load;
  StoreOp store;
  for (Operation &op : node.getBody().front()) {
    if (isa<arith::ConstantOp>(op))
      continue;
    auto masked = dyn_cast<MaskedOp>(op);
    if (masked && !load && masked.getOperands_().empty() && llvm::hasNItems(masked.getBody().front(), 2)) {
      auto constant = masked.getOther().getDefiningOp<arith::ConstantOp>();
      load = dyn_cast<LoadOp>(masked.getBody().front().front());
      if (!constant || !load || masked.getBody().front().back().getOperand(0) != load.getResult())
        return std::nullopt;
      part.other = constant.getValue();
      part.conditions = withoutUnits(masked.getConditions(), domain);
    } else if (!load && isa<LoadOp>(op)) {
      load = cast<LoadOp>(op);
    } else if (!store && isa<StoreOp>(op)) {
      store = cast<StoreOp>(op);
    } else {
      return std::nullopt;
    }
  }
  Value stored = !load ? Value() : part.other ? load->getParentOp()->getResult(0) : load.getResult();
  if (!load || !store || store.getValue() != stored || store.getCombine() || !load.getIndexOperands().empty() ||
      !store.getIndexOperands().empty())
    return std::nullopt;
  part.source = load.getBuffer();
  part.from = withoutUnits(load.getIndices(), domain);
  part.to = withoutUnits(store.getIndices(), domain);
  return part;
}

/// The node's copies into the buffer by their place along `axis`; empty if they are not what this pass joins.
SmallVector<Part> findParts(BufferOp buffer, int64_t axis) {
  BufferType type = buffer.getResult().getType();
  std::optional<int64_t> count = type.getShape()[size_t(axis)].asConstant();
  if (!count || *count < 2 || *count > mostParts || !llvm::isPowerOf2_64(uint64_t(*count)))
    return {};
  SmallVector<Part> parts(static_cast<size_t>(*count));
  for (Operation *user : buffer->getUsers()) {
    auto node = isa<StoreOp>(user) ? dyn_cast<PointwiseOp>(user->getParentOp()) : PointwiseOp();
    std::optional<Part> part = node ? matchPart(node) : std::nullopt;
    if (isa<LoadOp>(user))
      continue;
    std::optional<int64_t> place = part ? part->to[size_t(axis)].asConstant() : std::nullopt;
    if (!place || *place < 0 || *place >= *count || parts[size_t(*place)].node)
      return {};
    parts[size_t(*place)] = *part;
  }
  bool areAll = llvm::all_of(parts, [&](const Part &part) { return bool(part.node); });
  return areAll ? parts : SmallVector<Part>();
}

/// Whether the parts are one value's, at constant shifts.
bool areShifts(ArrayRef<Part> parts, int64_t axis, Value joined) {
  const Part &first = parts.front();
  if (first.source == joined || !first.source.getDefiningOp<BufferOp>())
    return false;
  bool areEqual = true;
  TypedAttr other;
  for (const Part &part : parts) {
    if (part.source != first.source || getDomain(part.node) != getDomain(first.node) ||
        part.node->getBlock() != first.node->getBlock() || (other && part.other && part.other != other))
      return false;
    other = part.other ? part.other : other;
    for (auto [dim, indices] : llvm::enumerate(llvm::zip_equal(part.to, first.to)))
      if (int64_t(dim) != axis && std::get<0>(indices) != std::get<1>(indices))
        return false;
    for (auto [own, index] : llvm::zip_equal(part.from, first.from)) {
      if (!(own - index).isConstant())
        return false;
      areEqual &= own == index;
    }
  }
  return !areEqual;
}

/// What `values` has for each place along the dim.
Expr select(Expr dim, ArrayRef<Expr> values) {
  Expr result = values.back();
  for (size_t place = values.size() - 1; place-- > 0;)
    result = Expr::select(Expr::eq(dim, Expr::constant(dim.getContext(), int64_t(place))), values[place], result);
  return result;
}

void join(ArrayRef<Part> parts, int64_t axis, Value joined) {
  const Part &first = parts.front();
  Operation *last = PointwiseOp(first.node);
  SmallVector<Location> locations;
  size_t conditionCount = 0;
  TypedAttr other;
  for (const Part &part : parts) {
    Operation *node = PointwiseOp(part.node);
    last = last->isBeforeInBlock(node) ? node : last;
    locations.push_back(node->getLoc());
    conditionCount = std::max(conditionCount, part.conditions.size());
    other = part.other ? part.other : other;
  }
  OpBuilder b(last);
  Location loc = b.getFusedLoc(locations);
  SmallVector<Expr> domain = getDomain(first.node);
  Expr dim = Expr::dim(b.getContext(), unsigned(domain.size())), zero = Expr::constant(b.getContext(), 0);
  domain.push_back(Expr::constant(b.getContext(), int64_t(parts.size())));

  SmallVector<Expr> from, to(first.to), conditions;
  for (auto [number, index] : llvm::enumerate(first.from)) {
    auto shift = [&](const Part &part) { return part.from[number] - index; };
    from.push_back(index + select(dim, llvm::map_to_vector(parts, shift)));
  }
  to[size_t(axis)] = dim;
  for (size_t number = 0; number < conditionCount; ++number) {
    auto condition = [&](const Part &part) { return number < part.conditions.size() ? part.conditions[number] : zero; };
    conditions.push_back(select(dim, llvm::map_to_vector(parts, condition)));
  }

  auto node = PointwiseOp::create(b, loc, prim::getExprArray(b.getContext(), domain));
  b.setInsertionPointToEnd(&node.getBody().emplaceBlock());
  Value element;
  if (conditions.empty()) {
    element = LoadOp::create(b, loc, first.source, ArrayRef<Expr>(from));
  } else {
    Value fill = arith::ConstantOp::create(b, loc, other);
    auto masked =
        MaskedOp::create(b, loc, fill.getType(), prim::getExprArray(b.getContext(), conditions), ValueRange(), fill);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(&masked.getBody().emplaceBlock());
    YieldOp::create(b, loc, LoadOp::create(b, loc, first.source, ArrayRef<Expr>(from)));
    element = masked.getResult();
  }
  StoreOp::create(b, loc, element, joined, ArrayRef<Expr>(to));
  for (const Part &part : parts)
    part.node->erase();
}

/// The dim that will run innermost: the channels of a convolution that reads the buffer, else the last one.
int64_t getInnermost(BufferOp buffer) {
  for (Operation *user : buffer->getUsers()) {
    auto load = dyn_cast<LoadOp>(user);
    auto product = load ? load->getParentOfType<ContractionOp>() : ContractionOp();
    if (product && product.getLhs().isAncestor(load->getParentRegion()))
      if (std::optional<unsigned> channels = getChannels(product, load))
        return int64_t(*channels);
  }
  return buffer.getResult().getType().getRank() - 1;
}

struct JoinShifts : ptc::impl::JoinShiftsBase<JoinShifts> {
  void runOnOperation() override {
    SmallVector<BufferOp> buffers;
    getOperation().walk([&](BufferOp buffer) { buffers.push_back(buffer); });
    for (BufferOp buffer : buffers) {
      if (buffer.getResult().getType().getRank() == 0)
        continue;
      int64_t axis = getInnermost(buffer);
      SmallVector<Part> parts = findParts(buffer, axis);
      if (!parts.empty() && areShifts(parts, axis, buffer.getResult()) && !isReadBetween(parts, buffer))
        join(parts, axis, buffer.getResult());
    }
  }

  /// Whether something but a part stands between the first part and the last, and touches what they read or write.
  static bool isReadBetween(ArrayRef<Part> parts, BufferOp buffer) {
    Block *block = parts.front().node->getBlock();
    auto isPart = [&](Operation *node) { return llvm::any_of(parts, [&](Part part) { return part.node == node; }); };
    auto isBetween = [&](Operation *user) {
      Operation *outer = block->findAncestorOpInBlock(*user);
      if (!outer || isPart(outer))
        return !outer;
      auto isBehind = [&](Part part) { return part.node->isBeforeInBlock(outer); };
      return llvm::any_of(parts, isBehind) && !llvm::all_of(parts, isBehind);
    };
    auto writes = [&](Operation *user) { return !isa<LoadOp>(user) && isBetween(user); };
    return llvm::any_of(buffer->getUsers(), isBetween) || llvm::any_of(parts.front().source.getUsers(), writes);
  }
};

} // namespace
