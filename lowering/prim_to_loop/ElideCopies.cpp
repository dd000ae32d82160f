//===- ElideCopies.cpp - producers write where a copy would --------------===//
//
// A copy node reads one whole buffer B and writes each element once to C, at
// indices that permute B's dims, shift them by constants and perhaps turn them around:
//
//   pointwise [n0, n1] { store(load B[d0, d1], C[d1, d0 + 64]) }
//
// A copy into a part of memory, as rounds of a loop stack images, may also turn an image's channels to the end, where
// convolutions write them anyway. A copy may show several of B's dims as one, as the values of an image that a concat
// takes in a row: load B[floordiv(d0, 40), mod(d0, 40)]. Its writers then count along C's dim, C[40 * i0 + i1]. B's
// dims are in their order there, or one runs from its end. Who reads B by its dims finds them apart and in memory's
// direction, so B stays for such.
//
// If B is an intermediate of the program, nothing needs B itself: every access
// B[i0, i1] becomes C[i1, i0 + 64] and the copy is dropped. That makes concat a Nop
// node (its operands' producers write into the combined buffer) and lets the last
// producer write a result's own memory.
//
// Legal because a buffer's element is written before it is read and never again with another value, and C's part is
// written by this copy alone; a loop, whose rounds write its states and its condition again, must find nobody who
// reads B. What scatters write is written twice: C must be a result of the program then, as B is, which nothing else
// writes. C must exist where B is first used, so the op that makes C moves up in front of it, with the buffer that C
// is a part of; the sizes in C's dims must have values there (loop.bind). A recurrence takes its last states' buffers
// whole, so C must be B's like there. Where C is a scatter's, which changes it, all that reads B must do so before.
//
// A result is row-major. An image that convolutions write or read, by windows, stays where its channels are innermost,
// and is copied: sums over windows are written, and channels read, in whole vectors (up to 8 times as fast, for one
// pass over the image).
//
//===----------------------------------------------------------------------===//

#include "ir/expr/DimName.h"
#include "ir/loop/ContractionDims.h"
#include "ir/loop/Recurrence.h"
#include "lowering/prim_to_loop/MemoryOrder.h"
#include "lowering/prim_to_loop/Passes.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace ptc {
#define GEN_PASS_DEF_ELIDECOPIES
#include "lowering/prim_to_loop/Passes.h.inc"
} // namespace ptc

namespace {

/// One of B's dims in a number that counts several of them.
struct Digit {
  int64_t dim;
  Expr stride;
};

/// start + the sum of B's indices, each times its stride.
struct Number {
  Expr start;
  SmallVector<Digit, 2> digits;

  Expr at(ArrayRef<Expr> indices) const {
    Expr sum = start;
    for (const Digit &digit : digits)
      sum = indices[digit.dim] * digit.stride + sum;
    return sum;
  }
  bool counts(int64_t dim) const {
    return llvm::any_of(digits, [&](const Digit &digit) { return digit.dim == dim; });
  }
};

/// B and C of a copy; C's index i is numbers[i] of B's indices times signs[i] plus offsets[i].
struct Copy {
  BufferOp from;
  Value to;
  SmallVector<Number> numbers;
  SmallVector<int64_t> signs;
  SmallVector<Expr> offsets;

  /// Several of B's dims are one of C's, or one runs from its end.
  bool hasOtherDims() const {
    return llvm::any_of(numbers,
                        [](const Number &number) { return number.digits.size() > 1 || !number.start.isConstant(0); });
  }

  /// C is as B, but for dims of 1.
  bool isWhole() const {
    int64_t last = -1;
    for (auto [number, sign, offset] : llvm::zip(numbers, signs, offsets)) {
      if (!offset.isConstant(0) || sign != 1 || (!number.digits.empty() && number.digits.front().dim < last))
        return false;
      last = number.digits.empty() ? last : number.digits.front().dim;
    }
    if (hasOtherDims())
      return false;
    auto count = [](Value buffer) { return cast<BufferType>(buffer.getType()).getElementCount(); };
    return count(to) == count(BufferOp(from).getResult());
  }
};

struct ShiftedDim {
  int64_t dim, sign; // -1: none
  Expr offset;
};

/// `expr` as d<k> or -d<k> + a part without dims.
std::optional<ShiftedDim> matchShiftedDim(Expr expr, unsigned rank) {
  for (unsigned k = 0; k < rank; ++k) {
    std::string dim = dimName(k);
    if (!expr.uses(dim))
      continue;
    Expr rest;
    Expr coefficient = expr.coefficientOf(dim, &rest);
    bool restUsesDims =
        rest && rest.usesAny([](StringRef s) { return s.starts_with("d") && s.size() > 1 && llvm::isDigit(s[1]); });
    bool isUnit = coefficient && (coefficient.isConstant(1) || coefficient.isConstant(-1));
    if (!isUnit || restUsesDims)
      return std::nullopt;
    return ShiftedDim{k, coefficient.getValue(), rest};
  }
  return ShiftedDim{-1, 1, expr};
}

/// What each dim of the copy's domain counts: B's dims, all of them in B's order, or one from its end.
std::optional<SmallVector<Number>> matchNumbers(LoadOp load, ArrayRef<Expr> domain) {
  SmallVector<Expr> shape = cast<BufferType>(load.getBuffer().getType()).getShape();
  SmallVector<Expr> indices = prim::getExprs(load.getIndices());
  Expr zero = Expr::constant(load.getContext(), 0), one = Expr::constant(load.getContext(), 1);
  SmallVector<Number> result;
  size_t next = 0;
  for (auto [k, extent] : llvm::enumerate(domain)) {
    Number number{zero, {}};
    Expr counted = one, dim = Expr::symbol(load.getContext(), dimName(unsigned(k)));
    for (; next < shape.size() && (number.digits.empty() || counted != extent); ++next) {
      bool isOne = shape[next].isConstant(1);
      if (extent.isConstant(1) && !isOne)
        break; // the dim is none of B's
      counted = counted * shape[next];
      if (extent.isConstant(1) || !isOne)
        number.digits.push_back({int64_t(next), one});
    }
    if (counted != extent)
      return std::nullopt;
    bool isTurned =
        number.digits.size() == 1 && !extent.isConstant(1) && indices[number.digits.front().dim] == extent - one - dim;
    if (isTurned)
      number = {extent - one, {{number.digits.front().dim, zero - one}}};
    Expr stride = one;
    for (Digit &digit : llvm::reverse(number.digits)) {
      if (isTurned || extent.isConstant(1))
        break;
      Expr size = shape[digit.dim], above = dim.floorDiv(stride);
      if (indices[digit.dim] != (stride * size == extent ? above : above.mod(size)))
        return std::nullopt;
      digit.stride = stride;
      stride = stride * size;
    }
    result.push_back(std::move(number));
  }
  bool isAll = llvm::all_of(ArrayRef(shape).drop_front(next), [](Expr dim) { return dim.isConstant(1); });
  return isAll ? std::optional(result) : std::nullopt;
}

/// The same where C is a part: B's one image may be read with its channels last. Elsewhere B keeps its order: other
/// passes rely on it.
std::optional<SmallVector<Number>> matchChannelsLast(LoadOp load, ArrayRef<Expr> domain) {
  SmallVector<Expr> shape = cast<BufferType>(load.getBuffer().getType()).getShape();
  SmallVector<Expr> indices = prim::getExprs(load.getIndices());
  if (shape.size() < 3 || domain.size() + 1 != shape.size() || !shape.front().isConstant(1))
    return std::nullopt;
  SmallVector<Number> result;
  for (auto [k, extent] : llvm::enumerate(domain)) {
    size_t place = k + 1 == domain.size() ? 1 : k + 2;
    if (extent != shape[place] ||
        (indices[place] != Expr::symbol(load.getContext(), dimName(unsigned(k))) && !extent.isConstant(1)))
      return std::nullopt;
    result.push_back({Expr::constant(load.getContext(), 0), {{int64_t(place), Expr::constant(load.getContext(), 1)}}});
  }
  return result;
}

std::optional<Copy> matchCopy(PointwiseOp node) {
  Block &block = node.getBody().front();
  if (!llvm::hasNItems(block, 2))
    return std::nullopt;
  auto load = dyn_cast<LoadOp>(block.front());
  auto store = dyn_cast<StoreOp>(block.back());
  if (!load || !store || store.getValue() != load.getResult() || store.getCombine() ||
      !load.getIndexOperands().empty() || !store.getIndexOperands().empty())
    return std::nullopt;
  Copy copy{load.getBuffer().getDefiningOp<BufferOp>(), store.getBuffer(), {}, {}, {}};
  if (!copy.from || copy.from.getResult() == copy.to)
    return std::nullopt;
  SmallVector<Expr> domain = getDomain(node);
  auto numbers = matchNumbers(load, domain);
  if (!numbers && isa_and_nonnull<PartOp>(copy.to.getDefiningOp()))
    numbers = matchChannelsLast(load, domain);
  if (!numbers)
    return std::nullopt;
  SmallVector<bool> used(domain.size());
  for (Expr index : prim::getExprs(store.getIndices())) {
    auto match = matchShiftedDim(index, domain.size());
    if (!match || (match->dim >= 0 && used[match->dim]))
      return std::nullopt;
    if (match->dim >= 0)
      used[match->dim] = true;
    copy.numbers.push_back(match->dim >= 0 ? (*numbers)[match->dim] : Number{Expr::constant(node.getContext(), 0), {}});
    copy.signs.push_back(match->sign);
    copy.offsets.push_back(match->offset);
  }
  for (auto [dim, isUsed] : llvm::zip(domain, used))
    if (!isUsed && !dim.isConstant(1))
      return std::nullopt;
  return copy;
}

/// True if no element of the buffer is written twice: scatters alone do that.
bool isWrittenOnce(Value buffer) {
  for (Operation *user : buffer.getUsers())
    if (auto store = dyn_cast<StoreOp>(user))
      if (store.getCombine() || store->getParentOfType<ScatterOp>())
        return false;
  return true;
}

/// Whether somebody may read B when `node` is done, which copies it.
bool isReadBehind(Value from, PointwiseOp node) {
  return llvm::any_of(from.getUsers(), [&](Operation *user) {
    if (isa<StoreOp>(user) || user->getParentOp() == node)
      return false;
    Operation *outer = node->getBlock()->findAncestorOpInBlock(*user);
    return isa<TapOp>(user) || !outer || !outer->isBeforeInBlock(node);
  });
}

SmallVector<Expr> mapIndices(const Copy &copy, ArrayRef<Expr> at) {
  SmallVector<Expr> mapped;
  for (auto [number, sign, offset] : llvm::zip(copy.numbers, copy.signs, copy.offsets))
    mapped.push_back(number.at(at) * sign + offset);
  return mapped;
}

void redirectAccess(Operation *user, const Copy &copy) {
  MLIRContext *context = user->getContext();
  auto mapped = [&](ArrayAttr indices) {
    return prim::getExprArray(context, mapIndices(copy, prim::getExprs(indices)));
  };
  if (isa<RecurrenceOp, PartOp>(user)) {
    user->replaceUsesOfWith(BufferOp(copy.from).getResult(), copy.to);
  } else if (auto load = dyn_cast<LoadOp>(user)) {
    load.setIndicesAttr(mapped(load.getIndices()));
    load.getBufferMutable().assign(copy.to);
  } else if (auto tap = dyn_cast<TapOp>(user)) { // a read by the observer, when all is written
    tap.setIndicesAttr(mapped(tap.getIndices()));
    tap.getBufferMutable().assign(copy.to);
  } else {
    auto store = cast<StoreOp>(user);
    store.setIndicesAttr(mapped(store.getIndices()));
    store.getBufferMutable().assign(copy.to);
  }
}

/// Whether `user` takes the buffer whole: as the memory of a last state.
bool takesFinal(Operation *user, Value buffer) {
  auto recurrence = dyn_cast<RecurrenceOp>(user);
  return recurrence && llvm::is_contained(recurrence.getFinals(), buffer);
}

/// Whether one of B's users needs its dims apart: it reads B, or writes it otherwise than point by point.
bool needsDimsApart(Value from, PointwiseOp node) {
  return llvm::any_of(from.getUsers(), [&](Operation *user) {
    Operation *outer = user->getParentOp();
    return outer != node && !isa<TapOp>(user) &&
           !(isa<StoreOp>(user) && isa<PointwiseOp, ReductionOp, ContractionOp>(outer));
  });
}

/// Whether each part of the buffer is one that a round of a loop has to itself.
bool isStack(Value buffer) {
  return llvm::all_of(buffer.getUsers(), [&](Operation *user) {
    auto part = dyn_cast<PartOp>(user);
    auto round = part ? part->getParentOfType<RepeatOp>() : RepeatOp();
    return !part || (round && part.getOffset().uses(round.getCounter()));
  });
}

/// Whether a loop writes the memory of C again: a half of its state, or the condition on which it goes on.
bool isRewritten(Value to) {
  auto part = to.getDefiningOp<PartOp>();
  Block *block = to.getParentBlock();
  return llvm::any_of((part ? part.getBuffer() : to).getUsers(), [&](Operation *user) {
    if (part)
      return isa<PartOp>(user) && user->getBlock() != block && block->findAncestorOpInBlock(*user);
    auto round = isa<StoreOp>(user) ? user->getParentOfType<RepeatOp>() : RepeatOp();
    return round && block->findAncestorOpInBlock(*round);
  });
}

/// Whether C is the whole memory of a result.
bool isWholeResult(const Copy &copy) {
  auto argument = dyn_cast<BlockArgument>(copy.to);
  return argument && isa<ProgramOp>(argument.getOwner()->getParentOp()) && copy.isWhole();
}

/// A result that may share an argument's memory must not be written early.
bool isAliasedResult(Value buffer) {
  auto argument = dyn_cast<BlockArgument>(buffer);
  auto program = argument ? dyn_cast<ProgramOp>(argument.getOwner()->getParentOp()) : ProgramOp();
  if (!program)
    return false;
  ArrayRef<int64_t> pairs = program.getAliases();
  for (size_t i = 1; i < pairs.size(); i += 2)
    if (argument.getArgNumber() == program.getInputs() + pairs[i])
      return true;
  return false;
}

/// The ops that make C, the last one first: its own, and that of the buffer that it is a part of.
SmallVector<Operation *> getMakers(Value buffer) {
  SmallVector<Operation *> makers;
  while (Operation *maker = buffer.getDefiningOp()) {
    makers.push_back(maker);
    auto part = dyn_cast<PartOp>(maker);
    if (!part)
      break;
    buffer = part.getBuffer();
  }
  return makers;
}

/// Whether all that says where C's elements lie has a value wherever B is used. A size that is learned between B's
/// first use and the copy would be needed before it is known; it may even follow from B.
bool isPlaceKnown(const Copy &copy, const BoundSymbols &symbols) {
  if (symbols.empty())
    return true;
  SmallVector<Expr> exprs = cast<BufferType>(copy.to.getType()).getShape();
  exprs.append(copy.offsets.begin(), copy.offsets.end());
  for (Operation *maker : getMakers(copy.to)) {
    llvm::append_range(exprs, cast<BufferType>(maker->getResult(0).getType()).getShape());
    if (auto part = dyn_cast<PartOp>(maker))
      exprs.push_back(part.getOffset());
  }
  llvm::StringSet<> used;
  for (Expr expr : exprs)
    expr.walkSymbols([&](StringRef symbol) { used.insert(symbol); });
  Block *block = copy.from->getBlock();
  for (const BoundSymbol &symbol : symbols.getAll()) {
    if (symbol.binder->getBlock() != block || !used.contains(symbol.name))
      continue;
    for (Operation *user : copy.from->getUsers())
      if (Operation *outer = block->findAncestorOpInBlock(*user); !symbol.binder->isBeforeInBlock(outer))
        return false;
  }
  return true;
}

/// The dim of the buffer along which `number` counts elements at these indices, alone or those of a group.
std::optional<unsigned> findDim(ArrayAttr indices, unsigned number) {
  std::string name = dimName(number);
  for (auto [dim, index] : llvm::enumerate(prim::getExprs(indices)))
    if (Expr step = index.uses(name) ? index.coefficientOf(name) : Expr(); step && step.isConstant(1))
      return dim;
  return std::nullopt;
}

/// The channels of a buffer that a convolution writes or reads by windows; `hops`: nodes between, of the same indices.
std::optional<unsigned> findChannels(Value buffer, unsigned hops = 1) {
  for (Operation *user : buffer.getUsers()) {
    Operation *node = user->getParentOp();
    while (!isNode(node) && !isa<ProgramOp>(node))
      node = node->getParentOp();
    auto product = dyn_cast<ContractionOp>(node);
    auto load = dyn_cast<LoadOp>(user);
    auto store = dyn_cast<StoreOp>(user);
    std::optional<unsigned> channels;
    if (product && load && product.getLhs().isAncestor(load->getParentRegion())) {
      channels = getChannels(product, load);
    } else if (product && store && product.getN() == 1 && writesWholePixels(product)) {
      channels = findDim(store.getIndices(), product.getBatch() + product.getM());
    } else if (auto pointwise = dyn_cast<PointwiseOp>(node); pointwise && store && hops > 0) {
      for (auto source : pointwise.getBody().getOps<LoadOp>())
        if (source.getIndices() == store.getIndices() && source.getBuffer().getDefiningOp<BufferOp>() && !channels)
          channels = findChannels(source.getBuffer(), hops - 1);
    }
    if (channels)
      return channels;
  }
  return std::nullopt;
}

/// Whether the copy brings an image into a result, whose channels are not innermost.
bool takesImageApart(const Copy &copy) {
  auto argument = dyn_cast<BlockArgument>(copy.to);
  if (!argument || !isa<ProgramOp>(argument.getOwner()->getParentOp()))
    return false;
  std::optional<unsigned> channels = findChannels(BufferOp(copy.from).getResult());
  auto counts = [&](const Number &number) { return channels && number.counts(int64_t(*channels)); };
  if (llvm::none_of(copy.numbers, counts) || cast<BufferType>(copy.to.getType()).getShape().back().isConstant(1))
    return false;
  const Number &last = copy.numbers.back();
  return !counts(last) || last.digits.back().dim != int64_t(*channels);
}

bool elide(PointwiseOp node, const BoundSymbols &symbols, bool keepsImages) {
  std::optional<Copy> copy = matchCopy(node);
  if (!copy || isAliasedResult(copy->to) || !isPlaceKnown(*copy, symbols) || (keepsImages && takesImageApart(*copy)))
    return false;
  Value from = copy->from.getResult();
  // Within one block only: a branch may not write what the other one also writes
  // before its own copy has run, and users in other blocks see both buffers.
  Block *block = copy->from->getBlock();
  if (node->getBlock() != block || (!isWrittenOnce(from) && !isWholeResult(*copy)))
    return false;
  if (!isWrittenOnce(copy->to) && isReadBehind(from, node))
    return false;
  if (copy->hasOtherDims() && needsDimsApart(from, node))
    return false;
  for (Operation *user : from.getUsers())
    if (!isa<LoadOp, StoreOp, TapOp>(user) && !(takesFinal(user, from) && copy->isWhole()) &&
        !(isa<PartOp>(user) && isWholeResult(*copy) && isStack(from)))
      return false; // read by the host (the condition of an if or a loop), or seen in parts
  if (llvm::any_of(skipViews(copy->to).getUsers(), [](Operation *user) { return isa<RegrowOp>(user); }))
    return false; // there is room once it has grown, and what lies there is still read before
  if (isRewritten(copy->to))
    for (Operation *user : from.getUsers())
      if (!isa<StoreOp>(user) && user->getParentOp() != node)
        return false; // read again, perhaps behind the loop
  SmallVector<Operation *> makers = getMakers(copy->to);
  if (!makers.empty() && makers.front()->getBlock() != block)
    return false;
  for (Operation *maker : llvm::reverse(makers))
    if (maker->getBlock() == block && copy->from->isBeforeInBlock(maker))
      maker->moveBefore(copy->from);
  node.erase();
  for (Operation *user : llvm::make_early_inc_range(from.getUsers()))
    redirectAccess(user, *copy);
  copy->from.erase();
  return true;
}

struct ElideCopies : ptc::impl::ElideCopiesBase<ElideCopies> {
  using ElideCopiesBase::ElideCopiesBase;
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>()) {
      BoundSymbols symbols(program);
      SmallVector<PointwiseOp> nodes;
      program.walk([&](PointwiseOp node) { nodes.push_back(node); });
      for (PointwiseOp node : nodes)
        elide(node, symbols, keepsImages);
    }
  }
};

} // namespace
