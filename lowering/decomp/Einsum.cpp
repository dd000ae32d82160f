//===- Einsum.cpp - sums of products over named dims ----------------------===//
//
// Operands are joined two at a time. For a pair, the letters fall into
//
//   batch       in both, and needed later (by the result or another operand)
//   contracted  in both, and not needed later
//   rows        in the left only        columns   in the right only
//
// and the pair becomes [batch, rows, contracted] x [batch, contracted, columns],
// one batched matrix product. Letters that a single operand has to itself and that
// nobody needs are summed away first; a letter that an operand repeats takes the
// diagonal. `...` stands for dims that get letters of their own ('0', '1', ...,
// counted from the last dim, so that they align as in numpy).
//
//===----------------------------------------------------------------------===//
#include "lowering/decomp/OnnxOps.h"

using namespace ptc::prim;

namespace ptc::decomp {

namespace {
/// A value whose dims are named by letters.
struct Term {
  Value value;
  std::string letters;
  int64_t axisOf(char letter) const { return letters.find(letter); }
  bool has(char letter) const { return letters.find(letter) != std::string::npos; }
};
} // namespace

static constexpr size_t maxEllipsisDims = 10;

/// The letters of one operand or of the result, `...` spelled out.
static std::optional<std::string> spell(llvm::StringRef text, size_t ellipsisDims) {
  std::string letters;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with("...")) {
      for (size_t k = ellipsisDims; k-- > 0;)
        letters.push_back(char('0' + k));
      i += 2;
    } else if (llvm::isAlpha(text[i])) {
      letters.push_back(text[i]);
    } else if (text[i] != ' ') {
      return std::nullopt;
    }
  }
  return letters;
}

static Value sumAway(NodeContext &n, Term &term, llvm::function_ref<bool(char)> isNeeded) {
  Ints axes;
  std::string kept;
  for (auto [i, letter] : llvm::enumerate(term.letters)) {
    if (isNeeded(letter))
      kept.push_back(letter);
    else
      axes.push_back(i);
  }
  term.letters = kept;
  return term.value = n.reduce(ReduceKind::Sum, term.value, axes, /*keepDims=*/false);
}

/// Two dims of one letter: what is off their diagonal becomes 0, then one of them is summed away.
static void takeDiagonals(NodeContext &n, Term &term) {
  for (size_t i = 0; i < term.letters.size(); ++i)
    for (size_t j = term.letters.size(); j-- > i + 1;) {
      if (term.letters[i] != term.letters[j] || !term.value)
        continue;
      Dims dims = n.dims(term.value);
      Value isDiagonal = n.equal(n.iota(i, dims, n.si64()), n.iota(j, dims, n.si64()));
      Value masked = n.select(isDiagonal, term.value, n.scalarLike(0, term.value));
      term.value = n.reduce(ReduceKind::Sum, masked, int64_t(j), false);
      term.letters.erase(j, 1);
    }
}

/// The dims in the order of `letters`; a letter that the term lacks becomes a dim of 1.
static Value arrange(NodeContext &n, const Term &term, llvm::StringRef letters) {
  Ints permutation, missing;
  for (auto [i, letter] : llvm::enumerate(letters)) {
    if (term.has(letter))
      permutation.push_back(term.axisOf(letter));
    else
      missing.push_back(i);
  }
  return n.unsqueeze(n.transpose(term.value, permutation), missing);
}

static Term contract(NodeContext &n, Term a, Term b, llvm::function_ref<bool(char)> isNeeded) {
  sumAway(n, a, [&](char c) { return b.has(c) || isNeeded(c); });
  sumAway(n, b, [&](char c) { return a.has(c) || isNeeded(c); });
  std::string batch, contracted, rows, columns;
  for (char c : a.letters)
    (!b.has(c) ? rows : isNeeded(c) ? batch : contracted).push_back(c);
  for (char c : b.letters)
    if (!a.has(c))
      columns.push_back(c);
  // A dim of 1 stretches (only `...` may): it is arranged like the others and broadcast by the product.
  auto dimsOf = [&](const std::string &letters) {
    Dims dims;
    for (char c : letters) {
      Expr x = a.has(c) ? n.dim(a.value, a.axisOf(c)) : n.expr(1),
           y = b.has(c) ? n.dim(b.value, b.axisOf(c)) : n.expr(1);
      dims.push_back(x.isConstant(1) ? y : x);
    }
    return dims;
  };
  Dims batchDims = dimsOf(batch), rowDims = dimsOf(rows), innerDims = dimsOf(contracted), columnDims = dimsOf(columns);
  auto flat = [&](const Term &term, const std::string &first, const std::string &second, const Dims &firstDims,
                  const Dims &secondDims) {
    Dims whole = batchDims;
    llvm::append_range(whole, firstDims);
    llvm::append_range(whole, secondDims);
    Value wide = n.broadcastTo(arrange(n, term, batch + first + second), whole);
    Dims joined = batchDims;
    joined.push_back(product(n.getContext(), firstDims));
    joined.push_back(product(n.getContext(), secondDims));
    return n.reshape(wide, joined);
  };
  Value result =
      n.matmul(flat(a, rows, contracted, rowDims, innerDims), flat(b, contracted, columns, innerDims, columnDims));
  Dims dims = batchDims;
  llvm::append_range(dims, rowDims);
  llvm::append_range(dims, columnDims);
  return {n.reshape(result, dims), batch + rows + columns};
}

/// Without `->`, the result has the letters that occur once, in alphabetical order, after the dims of `...`.
static std::string implicitResult(llvm::ArrayRef<Term> terms, size_t ellipsisDims) {
  std::string result = *spell("...", ellipsisDims);
  for (char c = 'A'; c <= 'z'; ++c) {
    size_t count = 0;
    for (const Term &term : terms)
      count += llvm::count(term.letters, c);
    if (llvm::isAlpha(c) && count == 1)
      result.push_back(c);
  }
  return result;
}

Values einsum(NodeContext &n) {
  std::string equation = n.text("equation", "");
  auto bad = [&](llvm::StringRef why) -> Values {
    return {n.fail(DiagId::BadAttribute, "equation", "'" + equation + "'", why)};
  };
  auto [left, right] = llvm::StringRef(equation).split("->");
  llvm::SmallVector<llvm::StringRef> operands;
  left.split(operands, ',');
  if (operands.size() != n.inputCount() || n.inputCount() == 0)
    return bad("it names another number of operands");
  // `...` stands for as many dims as the operand with most of them has there.
  size_t ellipsisDims = 0;
  for (auto [i, text] : llvm::enumerate(operands)) {
    size_t letters = llvm::count_if(text, [](char c) { return llvm::isAlpha(c); });
    if (text.contains("...") && n.rank(n.input(i)) >= int64_t(letters))
      ellipsisDims = std::max(ellipsisDims, size_t(n.rank(n.input(i))) - letters);
  }
  if (ellipsisDims > maxEllipsisDims)
    return bad("`...` stands for too many dims");
  llvm::SmallVector<Term> terms;
  for (auto [i, text] : llvm::enumerate(operands)) {
    size_t letters = llvm::count_if(text, [](char c) { return llvm::isAlpha(c); });
    size_t rank = n.rank(n.input(i));
    std::optional<std::string> names = spell(text, text.contains("...") && rank >= letters ? rank - letters : 0);
    if (!names || names->size() != rank)
      return bad("the letters of operand " + std::to_string(i) + " do not match its rank");
    terms.push_back({n.input(i), *names});
    takeDiagonals(n, terms.back());
  }
  bool isExplicit = llvm::StringRef(equation).contains("->");
  std::optional<std::string> result = isExplicit ? spell(right, ellipsisDims) : implicitResult(terms, ellipsisDims);
  if (!result)
    return bad("the result is malformed");
  for (char c : *result)
    if (llvm::none_of(terms, [&](const Term &t) { return t.has(c); }) || llvm::count(*result, c) > 1)
      return bad("the result names a letter that no operand has, or one twice");

  Term joined = terms.front();
  for (size_t i = 1; i < terms.size(); ++i) {
    auto isNeeded = [&](char c) {
      return llvm::is_contained(*result, c) ||
             llvm::any_of(llvm::drop_begin(terms, i + 1), [&](const Term &t) { return t.has(c); });
    };
    joined = contract(n, joined, terms[i], isNeeded);
  }
  sumAway(n, joined, [&](char c) { return llvm::is_contained(*result, c); });
  return {arrange(n, joined, *result)};
}

} // namespace ptc::decomp
