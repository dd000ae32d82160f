//===- MeetingSizes.cpp - sizes that meet in a broadcast ------------------===//
//
// x[a] + y[b] with free sizes a and b: ONNX says that they are equal or that one of them is 1, and in nearly all models
// they are equal in every run. A program that is right for all of that reads x[d0 * (1 < a)], and its result has
// max(a, b) elements; nothing after it knows that this is a.
//
//   Meeting::Equal     a == b is a guard, the result has a elements, what follows is as if there were one symbol. The
//                      pair is noted: a run may have other sizes.
//   Meeting::Stretch   a == b or a == 1 or b == 1 is a guard; the result's size is the *join* of a and b.
//
// The importer makes a program of the first kind, and behind it one of the second kind if pairs were noted
// (ImportOnnx.cpp). Which of them serves a run is decided by the guards of its entry. Sizes that the program finds out
// itself, and branches that may not run, come too late for that: there the second kind is the only one.
//
// A join is a set of sizes, its parts, of which all that are not 1 are equal. Sets make the order and the number of
// meetings irrelevant: a with (a with b) is a with b. As an expression it is the first part that is not 1,
//
//   join(a, b, c) = select(a == 1, select(b == 1, c, b), a)      max(a, b, c) where none of them can be 0
//
// and a part that is a constant above 1, or 0, is all there is to it. A tensor is stretched to a join of which its own
// parts are some (`stretches`): prim.broadcast then has a dim that is written in another way than the result's.
//
//===----------------------------------------------------------------------===//
#include "lowering/decomp/ShapeScope.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::decomp;

/// Values of a symbol that are worth a try: the least, some powers of two and what is around them.
static SmallVector<int64_t> someSizes(const ExprRange &range, unsigned count) {
  SmallVector<int64_t> sizes;
  auto add = [&](int64_t size) {
    size = std::max<int64_t>(size, range.min);
    int64_t rest = size % range.divisor; // of a size, which is not negative
    if (rest && llvm::AddOverflow(size, range.divisor - rest, size))
      return;
    if (size <= range.max && sizes.size() < count && !llvm::is_contained(sizes, size))
      sizes.push_back(size);
  };
  for (int64_t size : {1, 2, 3})
    add(size);
  for (int64_t power = 4; power <= 4096; power *= 2)
    for (int64_t size : {power, power + 1, power - 1})
      add(size);
  return sizes;
}

// A search, since either may be an expression of the same symbols: seq and min(512, seq) never differ where one is 1.
// What it does not find is refused at run time, in a sentence.
bool ShapeScope::mayStretch(Expr from, Expr to) const {
  SmallVector<StringRef> names;
  for (Expr e : {from, to})
    e.walkSymbols([&](StringRef name) {
      if (!llvm::is_contained(names, name))
        names.push_back(name);
    });
  constexpr unsigned triesBySymbols[] = {1, 32, 32, 12, 6};
  unsigned tries = names.size() < std::size(triesBySymbols) ? triesBySymbols[names.size()] : 2;
  if (names.size() > 12)
    return false;
  SmallVector<SmallVector<int64_t>> sizes;
  for (StringRef name : names)
    sizes.push_back(someSizes(ranges.lookup(name), tries));
  if (llvm::any_of(sizes, [](const auto &some) { return some.empty(); }))
    return false;
  SmallVector<unsigned> at(names.size(), 0);
  while (true) {
    SymbolValues values;
    for (auto [name, some, position] : llvm::zip(names, sizes, at))
      values[name] = some[position];
    if (from.evaluate(values) == 1 && to.evaluate(values).value_or(1) != 1)
      return true;
    unsigned digit = 0;
    while (digit < at.size() && ++at[digit] == sizes[digit].size())
      at[digit++] = 0;
    if (digit == at.size())
      return false;
  }
}

SmallVector<Expr> ShapeScope::partsOf(Expr size) const {
  auto found = joined.find(size);
  return found == joined.end() ? SmallVector<Expr>{size} : found->second;
}

Expr ShapeScope::sizeOf(ArrayRef<Expr> parts) const {
  for (Expr part : parts)
    if (part.isConstant())
      return part;
  bool canBeEmpty = llvm::any_of(parts, [&](Expr part) { return !isPositive(part); });
  Expr size = parts.back();
  for (Expr part : llvm::reverse(parts.drop_back()))
    size = canBeEmpty ? Expr::select(Expr::eq(part, constant(1)), size, part) : Expr::max(part, size);
  return size;
}

/// a == b or a == 1
static Expr stretchesTo(Expr a, Expr b) {
  return Expr::max(Expr::eq(a, b), Expr::eq(a, Expr::constant(a.getContext(), 1)));
}

Expr ShapeScope::meet(Expr a, Expr b) {
  if (a == b || a.isConstant(1))
    return b;
  if (b.isConstant(1))
    return a;
  std::optional<bool> known = equal(a, b);
  Expr same = b.isConstant() ? b : a;
  if (known == true)
    return same;
  bool isOpen = mayStretch(a, b) || mayStretch(b, a), isLate = isConditional || isBoundInside(a) || isBoundInside(b);
  if (!isOpen || (meeting == Meeting::Equal && !isLate && known != false)) {
    if (!assumeEqual(a, b))
      return {};
    if (isOpen)
      met.push_back({a, b});
    return same;
  }
  SmallVector<Expr> left = partsOf(a), right = partsOf(b), parts = left;
  for (Expr part : right) {
    if (llvm::any_of(left, [&](Expr other) { return equal(part, other) == true; }))
      continue;
    for (Expr other : left)
      if (!assume(Expr::max(stretchesTo(part, other), stretchesTo(other, part))))
        return {};
    parts.push_back(part);
  }
  if (parts.size() == left.size())
    return a;
  if (parts.size() == right.size())
    return b;
  llvm::sort(parts, [](Expr x, Expr y) { return compare(x, y) < 0; });
  Expr size = sizeOf(parts);
  if (!size.isConstant())
    joined[size] = parts;
  return size;
}

bool ShapeScope::stretches(Expr from, Expr to) const {
  SmallVector<Expr> own = partsOf(from), all = partsOf(to);
  bool isPart = all.size() > own.size() && llvm::all_of(own, [&](Expr part) {
                  return llvm::any_of(all, [&](Expr other) { return equal(part, other) == true; });
                });
  return isPart || isAssumed(simplify(stretchesTo(from, to)));
}

bool ShapeScope::assumeStretch(Expr from, Expr to) {
  std::optional<bool> known = equal(from, to);
  if (known == true || stretches(from, to))
    return true;
  bool isLate = isConditional || isBoundInside(from) || isBoundInside(to);
  if (!mayStretch(from, to))
    return assumeEqual(from, to);
  if (meeting == Meeting::Stretch || isLate || known == false)
    return assume(stretchesTo(from, to));
  if (!assumeEqual(from, to))
    return false;
  met.push_back({from, to});
  return true;
}
