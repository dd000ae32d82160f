//===- Strings.cpp - operators on strings ---------------------------------===//
//
// What looks into strings is a function of the runtime (ir/prim/PrimCalls.def).
// What only moves them needs nothing: Gather, Where, Concat and the like take
// strings as they take numbers.
//
//===----------------------------------------------------------------------===//
#include "lowering/decomp/ClassScores.h"
#include "lowering/decomp/OnnxOps.h"
#include "lowering/decomp/RegexProgram.h"
#include <map>

using namespace ptc::prim;

namespace ptc::decomp {

Values stringConcat(NodeContext &n) {
  Value x = n.input(0), y = n.input(1);
  if (!n.broadcast(x, y))
    return {};
  return {n.call("string_concat", {x, y}, n.elementCount(x), n.dims(x), n.stringType())};
}

Values regexFullMatch(NodeContext &n) {
  std::string pattern = n.text("pattern", ""), problem;
  std::optional<std::vector<int32_t>> program = compileRegex(pattern, problem);
  if (!program)
    return {n.fail(DiagId::BadAttribute, "pattern", "'" + pattern + "'", problem)};
  auto type = mlir::RankedTensorType::get(int64_t(program->size()), n.si32());
  Value words = n.constant(mlir::DenseElementsAttr::get(type, llvm::ArrayRef<int32_t>(*program)));
  Value x = n.input(0);
  return {n.call("string_match", {x, words}, {n.elementCount(x), n.expr(program->size())}, n.dims(x), n.i1())};
}

/// The pieces of each string along a new last dim, empty strings behind them, and their numbers.
Values stringSplit(NodeContext &n) {
  Value x = n.input(0), delimiter = n.strings(n.text("delimiter", ""), /*isScalar=*/true);
  int64_t limit = n.has("maxsplit") ? n.integer("maxsplit", -1) : -1;
  Expr count = n.elementCount(x);
  mlir::Type numbers = n.resultType(n.dims(x), n.si64()), most = n.resultType({}, n.si64());
  Values counted = n.call("string_count_pieces", {x, delimiter}, {count, n.expr(limit)}, {numbers, most});
  Expr width = n.bind(counted[1], limit >= 0 ? n.expr(limit + 1) : Expr());
  Dims dims = n.dims(x);
  dims.push_back(width);
  return {n.call("string_split", {x, delimiter}, {count, n.expr(limit), width}, dims, n.stringType()), counted[0]};
}

/// The strings of a row that are no stop words, in another case. Where none is left, one empty string.
Values stringNormalizer(NodeContext &n) {
  Value x = n.input(0);
  std::string action = n.text("case_change_action", "NONE");
  if (action != "NONE" && action != "LOWER" && action != "UPPER")
    return {n.fail(DiagId::BadAttribute, "case_change_action", "'" + action + "'", "NONE, LOWER or UPPER is needed")};
  bool isRow = n.rank(x) == 1;
  if (!isRow && (n.rank(x) != 2 || !n.shapes.assumeEqual(n.dim(x, 0), n.expr(1))))
    return {n.fail(DiagId::WrongRank, 0, n.rank(x), "[columns] or [1, columns] is needed")};
  Expr size = n.dim(x, n.rank(x) - 1);
  x = n.reshape(x, size);
  auto inCase = [&](Value strings, int64_t mode) {
    return n.call("string_case", strings, {n.elementCount(strings), n.expr(mode)}, n.dims(strings), n.stringType());
  };
  Value result = action == "NONE" ? x : inCase(x, action == "LOWER" ? 1 : 2);
  llvm::SmallVector<std::string> words = n.texts("stopwords");
  if (!words.empty()) {
    Value stops = n.strings(words);
    bool isExact = n.flag("is_case_sensitive");
    Value isStop = n.call("string_is_any", {isExact ? x : inCase(x, 1), isExact ? stops : inCase(stops, 1)},
                          {size, n.expr(int64_t(words.size()))}, n.dims(x), n.i1());
    // Places of what stays; those behind are the place of an empty string.
    Value stays = n.convert(n.logicalNot(isStop), n.si64());
    Value count = n.maximum(n.sum(stays, 0, /*keepDims=*/false), n.scalar(1, n.si64()));
    Expr kept = n.bind(count, Expr::max(size, n.expr(1)), 1);
    Value end = n.fromExprs(size, n.si64(), /*isScalar=*/true);
    Value places = n.scan(ReduceKind::Sum, stays, 0, /*exclusive=*/true, /*reverse=*/false);
    Value found = n.scatterElements(n.fill(end, size + 1), n.select(isStop, end, places),
                                    n.select(isStop, end, n.iota(0, size, n.si64())), 0, ScatterKind::Set);
    result = n.gather(n.concat({result, n.strings(std::string())}, 0), n.sliceAxis(found, 0, n.expr(0), kept), 0);
  }
  return {isRow ? result : n.unsqueeze(result, 0)};
}

//===----------------------------------------------------------------------===//
// n-grams
//===----------------------------------------------------------------------===//

namespace {

/// An n-gram's number, and what may follow it. Keys are ascending.
struct Gram {
  std::map<int64_t, Gram> next;
  int64_t column = -1;
};

} // namespace

/// Nodes in breadth-first order: first child, number of children, key, column.
static Ints flattenGrams(const Gram &root) {
  std::vector<std::pair<int64_t, const Gram *>> order = {{0, &root}};
  for (size_t i = 0; i < order.size(); ++i)
    for (const auto &[key, gram] : order[i].second->next)
      order.push_back({key, &gram});
  Ints words;
  int64_t child = 1;
  for (const auto &[key, gram] : order) {
    words.append({child, int64_t(gram->next.size()), key, gram->column});
    child += gram->next.size();
  }
  return words;
}

/// The n-grams of the pool by length: those of length i + 1 begin at ngram_counts[i]. Nothing after a diagnostic.
static std::optional<Gram> readGrams(NodeContext &n, llvm::ArrayRef<int64_t> pool, llvm::ArrayRef<int64_t> starts,
                                     llvm::ArrayRef<int64_t> columns) {
  Gram root;
  size_t gram = 0;
  for (size_t length = 1; length <= starts.size(); ++length) {
    int64_t begin = starts[length - 1], end = length < starts.size() ? starts[length] : int64_t(pool.size());
    if (begin < 0 || end < begin || end > int64_t(pool.size()) || (end - begin) % int64_t(length)) {
      n.fail(DiagId::BadAttribute, "ngram_counts", begin, "it must say where n-grams of each length begin in the pool");
      return std::nullopt;
    }
    for (int64_t at = begin; at < end; at += length, ++gram) {
      Gram *place = &root;
      for (size_t i = 0; i < length; ++i)
        place = &place->next[pool[at + i]];
      if (gram >= columns.size() || columns[gram] < 0) {
        n.fail(DiagId::BadAttribute, "ngram_indexes", int64_t(columns.size()), "a column for each n-gram is needed");
        return std::nullopt;
      }
      place->column = columns[gram];
    }
  }
  return root;
}

/// How often the n-grams of a pool occur in each row; `mode` says what a count becomes.
Values tfIdfVectorizer(NodeContext &n) {
  Value x = n.input(0);
  std::string mode = n.text("mode", "");
  Ints pool = n.integers("pool_int64s", {}), columns = n.integers("ngram_indexes", {});
  int64_t shortest = n.integer("min_gram_length", 1), longest = n.integer("max_gram_length", 1);
  int64_t skips = n.integer("max_skip_count", 0);
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    return {n.fail(DiagId::BadAttribute, "mode", "'" + mode + "'", "TF, IDF or TFIDF is needed")};
  if (shortest < 1 || longest < shortest || skips < 0)
    return {n.fail(DiagId::BadAttribute, "min_gram_length", shortest, "1 or more and at most max_gram_length")};
  if (n.isString(x)) {
    // Numbers in the place of strings: each string's place in the pool.
    llvm::SmallVector<std::string> texts = n.texts("pool_strings");
    for (const std::string &text : texts)
      pool.push_back(llvm::find(texts, text) - texts.begin());
    x = findString(n, x, texts);
  }
  std::optional<Gram> grams = readGrams(n, pool, n.integers("ngram_counts", {}), columns);
  if (!grams || columns.empty())
    return {};
  int64_t width = *llvm::max_element(columns) + 1;
  Ints trie = flattenGrams(*grams);
  bool isRow = n.rank(x) == 1;
  x = n.convert(isRow ? n.unsqueeze(x, 0) : x, n.si64());
  if (n.rank(x) != 2)
    return {n.fail(DiagId::WrongRank, 0, n.rank(n.input(0)), "[columns] or [rows, columns] is needed")};
  Expr rows = n.dim(x, 0);
  Value counts = n.call(
      "ngram_count", {x, n.intVector(trie)},
      {rows, n.dim(x, 1), n.expr(trie.size() / 4), n.expr(width), n.expr(skips + 1), n.expr(shortest), n.expr(longest)},
      {rows, n.expr(width)}, n.f32());
  if (mode != "TF") {
    std::optional<llvm::SmallVector<double>> weights = n.reals("weights");
    if (weights && weights->size() != columns.size())
      return {n.fail(DiagId::DimMismatch, "the number of values in 'weights'", weights->size(), "that of n-grams",
                     columns.size())};
    // Weights stand in the order of the n-grams, counts in that of their columns.
    llvm::SmallVector<double> ofColumns(width, 1.0);
    for (size_t i = 0; weights && i < columns.size(); ++i)
      ofColumns[columns[i]] = (*weights)[i];
    Value weight = weights ? n.floatVector(ofColumns, n.f32()) : n.scalar(1, n.f32());
    Value isThere = n.less(n.scalar(0, n.f32()), counts);
    Value scaled = mode == "IDF" ? n.select(isThere, weight, n.scalar(0, n.f32())) : n.mul(counts, weight);
    counts = scaled;
  }
  return {isRow ? n.reshape(counts, n.expr(width)) : counts};
}

} // namespace ptc::decomp
