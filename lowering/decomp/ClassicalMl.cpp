//===- ClassicalMl.cpp - features, linear models, labels ------------------===//
//
// ai.onnx.ml; trees stand in Trees.cpp, support vectors in SupportVectors.cpp,
// n-grams in Text.cpp. Lists of strings that are keys become places in the
// sorted list (findString), and a gather says what stands there.
//
//===----------------------------------------------------------------------===//
#include "lowering/decomp/ClassScores.h"
#include "lowering/decomp/OnnxOps.h"
#include <cmath>
#include <numeric>

using namespace ptc::prim;

namespace ptc::decomp {

//===----------------------------------------------------------------------===//
// Features
//===----------------------------------------------------------------------===//

/// Columns of the last dim; a vector counts as one row.
Values arrayFeatureExtractor(NodeContext &n) {
  Value x = n.input(0), indices = n.input(1);
  if (n.rank(x) == 1)
    x = n.unsqueeze(x, 0);
  if (n.rank(x) < 1)
    return {n.fail(DiagId::WrongRank, 0, n.rank(x), "features are needed")};
  return {n.gather(x, n.reshape(indices, product(n.getContext(), n.dims(indices))), n.rank(x) - 1)};
}

/// 1 above the threshold, else 0
Values binarizer(NodeContext &n) {
  Value x = n.input(0);
  double threshold = n.real("threshold", 0.0);
  // Integers are above it if they are above its floor, which their type holds.
  Value limit = n.isFloat(x)
                    ? n.scalarLike(threshold, x)
                    : n.convertLike(n.scalar(std::floor(threshold), mlir::Float64Type::get(n.getContext())), x);
  return {n.convertLike(n.less(limit, x), x)};
}

/// All columns side by side; each input has as many as `inputdimensions` says, cut off or filled with 0.
Values featureVectorizer(NodeContext &n) {
  Ints widths = n.integers("inputdimensions", {});
  if (widths.size() != n.inputCount())
    return {n.fail(DiagId::DimMismatch, "the number of values in 'inputdimensions'", widths.size(), "the inputs",
                   n.inputCount())};
  Values parts;
  for (auto [i, width] : llvm::enumerate(widths)) {
    Value x = n.convert(n.input(i), n.f32());
    if (n.rank(x) == 1)
      x = n.unsqueeze(x, 0);
    if (n.rank(x) != 2 || !n.dim(x, 1).isConstant() || width < 0)
      return {n.fail(DiagId::WrongRank, i, n.rank(x), "[rows, features] of a known width is needed")};
    int64_t given = n.dim(x, 1).getValue();
    if (given > width)
      x = n.sliceAxis(x, 1, n.expr(0), n.expr(width));
    else if (given < width)
      x = n.pad(x, n.scalarLike(0, x), n.exprs({0, 0}), n.exprs({0, width - given}));
    parts.push_back(x);
  }
  return {n.concat(parts, 1)};
}

/// Elements that equal `replaced_value` (or are NaN, where it is that) become the value of their column.
Values imputer(NodeContext &n) {
  Value x = n.input(0), isMissing, imputed;
  if (n.isFloat(x)) {
    double replaced = n.real("replaced_value_float", 0.0);
    isMissing = std::isnan(replaced) ? n.isNan(x) : n.equal(x, n.scalarLike(replaced, x));
    if (std::optional<llvm::SmallVector<double>> values = n.reals("imputed_value_floats"))
      imputed = n.floatVector(*values, n.elementType(x));
  } else {
    Value replaced = n.fromExprs(n.expr(n.integer("replaced_value_int64", 0)), n.si64(), /*isScalar=*/true);
    isMissing = n.equal(n.convert(x, n.si64()), replaced);
    if (std::optional<Ints> values = n.integers("imputed_value_int64s"))
      imputed = n.convertLike(n.intVector(*values), x);
  }
  if (!imputed)
    return {n.fail(DiagId::MissingAttribute, n.isFloat(x) ? "imputed_value_floats" : "imputed_value_int64s")};
  if (n.dim(imputed, 0).isConstant(1))
    imputed = n.reshape(imputed, {});
  return {n.select(isMissing, imputed, x)};
}

/// Each row over its largest element, the sum of its magnitudes, or its length.
Values normalizer(NodeContext &n) {
  Value x = featureRows(n, 0);
  std::string norm = n.text("norm", "MAX");
  Value size;
  if (norm == "MAX")
    size = n.reduce(ReduceKind::Max, x, 1, /*keepDims=*/true);
  else if (norm == "L1")
    size = n.sum(n.abs(x), 1, true);
  else if (norm == "L2")
    size = n.sqrt(n.sum(n.mul(x, x), 1, true));
  else
    return {n.fail(DiagId::BadAttribute, "norm", "'" + norm + "'", "MAX, L1 or L2 is needed")};
  Value isZero = n.equal(size, n.scalarLike(0, size));
  return {n.convert(n.reshape(n.select(isZero, x, n.div(x, size)), n.dims(n.input(0))), n.f32())};
}

/// (x - offset) * scale, a number a column or one for all
Values scaler(NodeContext &n) {
  Value x = n.convert(n.input(0), n.f32());
  auto vector = [&](llvm::StringRef name, double otherwise) {
    llvm::SmallVector<double> values = n.reals(name).value_or(llvm::SmallVector<double>{otherwise});
    return values.size() == 1 ? n.scalar(values.front(), n.f32()) : n.floatVector(values, n.f32());
  };
  return {n.mul(n.sub(x, vector("offset", 0)), vector("scale", 1))};
}

/// A dim at the end with 1 at the element's category. An element of none has zeros there; the specification lets a run
/// end with an error unless `zeros` is set, which compiled code does not.
Values oneHotEncoder(NodeContext &n) {
  std::optional<Labels> categories = classLabels(n, "cats_int64s", "cats_strings");
  if (!categories)
    return {};
  Value x = n.input(0), known = n.intVector(categories->integers);
  if (n.isString(x) != !categories->texts.empty())
    return {n.fail(DiagId::TypeMismatch, n.elementType(x), n.isString(x) ? n.si64() : n.stringType())};
  if (n.isString(x)) {
    // Equal categories are one to a lookup, and several to a comparison.
    Value place = findString(n, x, categories->texts);
    Ints first;
    for (const std::string &text : categories->texts)
      first.push_back(llvm::find(categories->texts, text) - categories->texts.begin());
    x = place;
    known = n.intVector(first);
  }
  x = n.convert(x, n.si64());
  return {n.convert(n.equal(n.unsqueeze(x, n.rank(x)), known), n.f32())};
}

//===----------------------------------------------------------------------===//
// Labels
//===----------------------------------------------------------------------===//

namespace {

/// Keys or values: their type, and what they are in both forms that are used.
struct Entries {
  Type type;
  Value all; // [count]
  llvm::SmallVector<double> reals;
  Ints integers;
  llvm::SmallVector<std::string> texts;
  size_t size() const {
    return llvm::isa<StringType>(type)        ? texts.size()
           : llvm::isa<mlir::FloatType>(type) ? reals.size()
                                              : integers.size();
  }
};

} // namespace

static Value integerVector(NodeContext &n, llvm::ArrayRef<int64_t> values, Type type) {
  auto tensorType = mlir::RankedTensorType::get(int64_t(values.size()), type);
  auto bits = llvm::map_to_vector(values, [&](int64_t v) {
    return llvm::APInt(type.getIntOrFloatBitWidth(), v, /*isSigned=*/true, /*implicitTrunc=*/true);
  });
  return n.constant(mlir::DenseElementsAttr::get(tensorType, bits));
}

/// The attributes `<prefix>_strings`, `<prefix>_int64s`, `<prefix>_floats` or `<prefix>_tensor`.
static std::optional<Entries> readEntries(NodeContext &n, const std::string &prefix) {
  Entries entries;
  if (n.has(prefix + "_strings") && !n.texts(prefix + "_strings").empty()) {
    entries.type = n.stringType();
    entries.texts = n.texts(prefix + "_strings");
  } else if (std::optional<Ints> integers = n.integers(prefix + "_int64s")) {
    entries.type = n.si64();
    entries.integers = *integers;
  } else if (std::optional<llvm::SmallVector<double>> reals = n.reals(prefix + "_floats")) {
    entries.type = n.f32();
    entries.reals = *reals;
  } else if (n.has(prefix + "_tensor")) {
    entries.type = n.tensorType(prefix + "_tensor");
    if (llvm::isa_and_present<StringType>(entries.type))
      entries.texts = n.tensorTexts(prefix + "_tensor").value_or(llvm::SmallVector<std::string>());
    else if (llvm::isa_and_present<mlir::FloatType>(entries.type))
      entries.reals = n.tensorReals(prefix + "_tensor").value_or(llvm::SmallVector<double>());
    else if (entries.type)
      entries.integers = n.tensorIntegers(prefix + "_tensor").value_or(Ints());
  } else {
    n.fail(DiagId::MissingAttribute, prefix + "_int64s");
  }
  if (n.hasFailed())
    return std::nullopt;
  bool isFloat = llvm::isa<mlir::FloatType>(entries.type);
  if (llvm::isa<StringType>(entries.type))
    entries.all = n.strings(entries.texts);
  else
    entries.all =
        isFloat ? n.floatVector(entries.reals, entries.type) : integerVector(n, entries.integers, entries.type);
  return entries;
}

/// What an element becomes whose label has no entry.
static Value defaultEntry(NodeContext &n, Type type) {
  if (n.has("default_tensor")) {
    Value value = n.tensor("default_tensor");
    return n.convert(n.reshape(value, {}), type);
  }
  if (llvm::isa<StringType>(type))
    return n.strings(n.text("default_string", "_Unused"), /*isScalar=*/true);
  if (llvm::isa<mlir::FloatType>(type))
    return n.scalar(n.real("default_float", 0.0), type);
  return n.reshape(integerVector(n, n.integer("default_int64", -1), type), {});
}

/// The first entry of the largest key that is not above x, by bisection over the sorted keys; `order` says which entry
/// each is.
static Value findKey(NodeContext &n, Value x, const Entries &keys, Ints &order) {
  bool isFloat = llvm::isa<mlir::FloatType>(keys.type);
  order.resize(keys.size());
  std::iota(order.begin(), order.end(), 0);
  if (isFloat)
    llvm::erase_if(order, [&](int64_t i) { return std::isnan(keys.reals[i]); });
  auto isBefore = [&](int64_t a, int64_t b) {
    return isFloat ? keys.reals[a] < keys.reals[b] : keys.integers[a] < keys.integers[b];
  };
  llvm::stable_sort(order, isBefore);
  // Of equal keys the first entry counts.
  order.erase(std::unique(order.begin(), order.end(), [&](int64_t a, int64_t b) { return !isBefore(a, b); }),
              order.end());
  if (order.empty())
    return {};
  Value sorted = n.gather(keys.all, n.intVector(order), 0);
  Value place = n.fill(n.scalar(0, n.si64()), n.dims(x));
  for (int64_t step = int64_t(llvm::PowerOf2Ceil(order.size() + 1)) / 2; step > 0; step /= 2) {
    Value next = n.add(place, double(step));
    Value bounded = n.minimum(next, n.scalar(double(order.size() - 1), n.si64()));
    Value isReached = n.logicalAnd(n.less(next, n.scalar(double(order.size()), n.si64())),
                                   n.lessEqual(n.gather(sorted, bounded, 0), x));
    place = n.select(isReached, next, place);
  }
  return place;
}

/// values[i] where keys[i] equals the element (NaN equals NaN), else the default.
Values labelEncoder(NodeContext &n) {
  Value x = n.input(0);
  std::optional<Entries> keys = readEntries(n, "keys"), values = keys ? readEntries(n, "values") : std::nullopt;
  if (!values)
    return {};
  if (keys->size() != values->size() || keys->size() == 0)
    return {n.fail(DiagId::DimMismatch, "the number of keys", keys->size(), "that of values", values->size())};
  if (n.elementType(x) != keys->type)
    return {n.fail(DiagId::TypeMismatch, n.elementType(x), keys->type)};
  Value otherwise = defaultEntry(n, values->type);
  if (n.isString(x)) // a place behind the last is the default's
    return {n.gather(n.concat({values->all, n.unsqueeze(otherwise, 0)}, 0), findString(n, x, keys->texts), 0)};
  Value result = n.fill(otherwise, n.dims(x));
  Ints order;
  if (Value place = findKey(n, x, *keys, order)) {
    Value sorted = n.gather(keys->all, n.intVector(order), 0), chosen = n.gather(values->all, n.intVector(order), 0);
    result = n.select(n.equal(n.gather(sorted, place, 0), x), n.gather(chosen, place, 0), result);
  }
  for (size_t i = 0; i < keys->reals.size(); ++i)
    if (std::isnan(keys->reals[i])) {
      result = n.select(n.isNan(x), n.at(values->all, 0, i), result);
      break;
    }
  return {result};
}

/// `strings` to the integers that stand beside them, or back.
static Values mapLabels(NodeContext &n, llvm::ArrayRef<std::string> strings, llvm::ArrayRef<int64_t> integers) {
  Value x = n.input(0);
  if (strings.size() != integers.size() || strings.empty())
    return {n.fail(DiagId::DimMismatch, "the number of strings", strings.size(), "that of integers", integers.size())};
  Entries keys{.type = n.si64(), .all = n.intVector(integers), .integers = Ints(integers)};
  if (n.isString(x)) {
    Ints values(integers);
    values.push_back(n.integer("default_int64", -1));
    return {n.gather(n.intVector(values), findString(n, x, strings), 0)};
  }
  Ints order;
  Value place = findKey(n, x, keys, order), sorted = n.gather(keys.all, n.intVector(order), 0);
  Value chosen = n.gather(n.strings(strings), n.intVector(order), 0);
  Value otherwise = n.fill(n.strings(n.text("default_string", "_Unused"), /*isScalar=*/true), n.dims(x));
  return {n.select(n.equal(n.gather(sorted, place, 0), x), n.gather(chosen, place, 0), otherwise)};
}

Values categoryMapper(NodeContext &n) { return mapLabels(n, n.texts("cats_strings"), n.integers("cats_int64s", {})); }

/// Version 1: strings and their places in a list.
Values labelEncoderOfClasses(NodeContext &n) {
  llvm::SmallVector<std::string> classes = n.texts("classes_strings");
  Ints places(classes.size());
  std::iota(places.begin(), places.end(), 0);
  return mapLabels(n, classes, places);
}

//===----------------------------------------------------------------------===//
// Linear models
//===----------------------------------------------------------------------===//

/// x W^T + b for W given row by row; null after a diagnostic.
static Value linear(NodeContext &n, Value x, int64_t rows) {
  std::optional<llvm::SmallVector<double>> weights = n.reals("coefficients");
  if (!weights || rows < 1 || weights->empty() || weights->size() % rows)
    return n.fail(DiagId::BadAttribute, "coefficients", weights ? int64_t(weights->size()) : 0,
                  "a row for each of " + std::to_string(rows) + " results is needed");
  int64_t columns = weights->size() / rows;
  Value w = n.reshape(n.floatVector(*weights, n.elementType(x)), n.exprs({rows, columns}));
  Value y = n.innerMatmul(x, n.swapAxes(w, 0, 1));
  std::optional<llvm::SmallVector<double>> bias = n.reals("intercepts");
  if (!bias || bias->empty())
    return y;
  if (int64_t(bias->size()) != rows)
    return n.fail(DiagId::DimMismatch, "the number of values in 'intercepts'", bias->size(), "that of results", rows);
  return n.add(y, n.floatVector(*bias, n.elementType(x)));
}

Values linearRegressor(NodeContext &n) {
  std::optional<PostTransform> transform = readPostTransform(n);
  int64_t targets = n.integer("targets", 1);
  Value y = linear(n, featureRows(n, 0), targets);
  if (!transform)
    return {};
  bool isApplied = targets > 1 || *transform == PostTransform::Probit; // as in onnxruntime
  return {n.convert(isApplied ? transformScores(n, y, *transform) : y, n.f32())};
}

/// One row of coefficients a class; a single one belongs to the second of two classes.
Values linearClassifier(NodeContext &n) {
  std::optional<Labels> labels = classLabels(n, "classlabels_ints", "classlabels_strings");
  std::optional<PostTransform> transform = readPostTransform(n);
  if (!labels || !transform)
    return {};
  std::optional<llvm::SmallVector<double>> bias = n.reals("intercepts");
  int64_t classes = bias && !bias->empty() ? bias->size() : labels->size();
  Value x = featureRows(n, 0), scores = linear(n, x, classes);
  if (classes > 1)
    return {bestLabel(n, *labels, scores), n.convert(transformScores(n, scores, *transform), n.f32())};
  if (labels->size() != 2)
    return {n.fail(DiagId::UnsupportedForm, "a classifier of one class")};
  Value isSecond = n.less(n.scalarLike(0, scores), scores);
  Value index = n.reshape(n.select(isSecond, n.scalar(1, n.si64()), n.scalar(0, n.si64())), n.dim(scores, 0));
  // Untransformed, the first class has what the second leaves of 1; else its score is the opposite one.
  bool isPlain = *transform == PostTransform::None || *transform == PostTransform::Probit;
  Value first = isPlain ? n.sub(n.scalarLike(1, scores), scores) : n.neg(scores);
  Value both = transformScores(n, n.concat({first, scores}, 1), *transform);
  return {chooseLabel(n, *labels, index), n.convert(both, n.f32())};
}

} // namespace ptc::decomp
