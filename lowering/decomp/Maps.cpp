//===- Maps.cpp - maps of keys to numbers or texts ------------------------===//
//
// ai.onnx.ml makes vectors of maps and lists of maps of matrices. A map is its keys
// and its values, side by side (ElementTypes.h), so that neither direction moves more
// than the numbers.
//
//===----------------------------------------------------------------------===//
#include "lowering/decomp/ClassScores.h"
#include "lowering/decomp/ElementTypes.h"
#include "lowering/decomp/OnnxOps.h"

using namespace ptc::prim;

namespace ptc::decomp {

static Value labelVector(NodeContext &n, const Labels &labels) {
  return labels.texts.empty() ? n.intVector(labels.integers) : n.strings(labels.texts);
}

/// A map a row: the classes to the row's elements.
Values zipMap(NodeContext &n) {
  std::optional<Labels> labels = classLabels(n, "classlabels_int64s", "classlabels_strings");
  Value x = n.input(0);
  if (!labels || !x)
    return {};
  if (n.rank(x) == 1)
    x = n.unsqueeze(x, 0);
  if (n.rank(x) != 2)
    return {n.fail(DiagId::WrongRank, 0, n.rank(x), "[rows, classes] is needed")};
  if (!n.shapes.assumeEqual(n.dim(x, 1), n.expr(int64_t(labels->size()))))
    return {n.fail(DiagId::DimMismatch, "the number of columns", n.dim(x, 1), "that of classes", labels->size())};
  Value keys = labelVector(n, *labels);
  return {keys ? joinMap(n.getBuilder(), n.getLoc(), keys, x) : Value()};
}

/// `values` at their places in `size` zeros or empty texts; those without one (a place of `size`) are dropped.
static Value placed(NodeContext &n, Value places, Value values, int64_t size) {
  Value zeros = n.fill(n.scalarLike(0, values), n.expr(size + 1));
  Value all = n.scatterElements(zeros, places, values, 0, ScatterKind::Set);
  return n.unsqueeze(n.sliceAxis(all, 0, n.expr(0), n.expr(size)), 0);
}

/// The value of each word of a vocabulary.
Values dictVectorizer(NodeContext &n) {
  std::optional<Labels> words = classLabels(n, "int64_vocabulary", "string_vocabulary");
  if (!words)
    return {};
  auto [keys, values] = splitMap(n.input(0));
  if (n.isString(keys) != !words->texts.empty())
    return {n.fail(DiagId::TypeMismatch, n.elementType(keys), n.isString(keys) ? n.si64() : n.stringType())};
  int64_t size = words->size();
  Value places;
  if (n.isString(keys)) {
    places = findString(n, keys, words->texts);
  } else { // the first of the words that equals the key
    Value isWord = n.equal(n.unsqueeze(keys, 1), n.intVector(words->integers));
    Value isAny = n.reduce(ReduceKind::Any, isWord, {1}, /*keepDims=*/false);
    Value first = n.argReduce(ArgKind::Max, n.convert(isWord, n.ui8()), 1, /*selectLast=*/false, /*keepDims=*/false);
    places = n.select(isAny, first, n.scalar(double(size), n.si64()));
  }
  return {placed(n, places, values, size)};
}

/// The values in the order of their keys, or (SPARSE) each at the place that its key names.
Values castMap(NodeContext &n) {
  auto [keys, values] = splitMap(n.input(0));
  std::string form = n.text("map_form", "DENSE"), cast = n.text("cast_to", "TO_FLOAT");
  Type to = cast == "TO_FLOAT"    ? n.f32()
            : cast == "TO_INT64"  ? n.si64()
            : cast == "TO_STRING" ? n.stringType()
                                  : Type();
  if (!to || (form != "DENSE" && form != "SPARSE"))
    return {n.fail(DiagId::BadAttribute, to ? "map_form" : "cast_to", "'" + (to ? form : cast) + "'",
                   "DENSE or SPARSE, and TO_FLOAT, TO_STRING or TO_INT64 are needed")};
  values = castTo(n, values, to);
  if (form == "DENSE") {
    auto [sorted, order] = n.sort(keys, 0, /*descending=*/false, n.dim(keys, 0));
    return {n.unsqueeze(n.gather(values, order, 0), 0)};
  }
  int64_t size = n.integer("max_map", 1);
  if (size < 1 || size > INT32_MAX)
    return {n.fail(DiagId::BadAttribute, "max_map", size, "a number of elements is needed")};
  Value most = n.scalar(double(size), n.si64()), least = n.scalar(0, n.si64());
  Value isPlace = n.logicalAnd(n.lessEqual(least, keys), n.less(keys, most));
  return {placed(n, n.select(isPlace, keys, most), values, size)};
}

} // namespace ptc::decomp
