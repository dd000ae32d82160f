//===- Indexing.cpp - gather, scatter, one-hot ----------------------------===//
#include "lowering/decomp/OnnxOps.h"

using namespace ptc::prim;

namespace ptc::decomp {

Values gather(NodeContext &n) {
  Value x = n.input(0);
  std::optional<int64_t> axis = n.axis(n.rank(x), 0);
  return {axis ? n.gather(x, n.input(1), *axis) : Value()};
}

Values gatherElements(NodeContext &n) {
  Value x = n.input(0);
  std::optional<int64_t> axis = n.axis(n.rank(x), 0);
  if (axis && n.rank(n.input(1)) != n.rank(x))
    return {n.fail(DiagId::WrongRank, 1, n.rank(n.input(1)), "the rank of input 0 is needed")};
  return {axis ? n.gatherElements(x, n.input(1), *axis) : Value()};
}

/// Index tuples may count from the end: the size of the dim that each component names is added then.
static Value wrapTuples(NodeContext &n, Value x, Value indices, int64_t batchDims) {
  Expr length = n.dim(indices, n.rank(indices) - 1);
  if (n.rank(indices) == 0 || !length.isConstant() || batchDims < 0 || batchDims + length.getValue() > n.rank(x))
    return n.fail(DiagId::WrongRank, 1, n.rank(indices), "its last dim must be known and at most the rank of input 0");
  if (!n.isInteger(indices))
    return n.fail(DiagId::WrongInputType, 1, n.elementType(indices), "an integer type is needed");
  if (std::optional<Dims> known = n.knownExprs(indices);
      known && llvm::all_of(*known, [&](Expr e) { return n.shapes.isNonNegative(e); }))
    return indices;
  Dims dims = n.dims(x);
  Value sizes = n.fromExprs(llvm::ArrayRef(dims).slice(batchDims, length.getValue()), n.elementType(indices));
  return n.select(n.less(indices, n.scalarLike(0, indices)), n.add(indices, sizes), indices);
}

Values gatherNd(NodeContext &n) {
  Value x = n.input(0);
  int64_t batchDims = n.integer("batch_dims", 0);
  return {n.gatherNd(x, wrapTuples(n, x, n.input(1), batchDims), batchDims)};
}

static std::optional<ScatterKind> scatterKind(NodeContext &n) {
  std::string reduction = n.text("reduction", "none");
  std::optional<ScatterKind> kind = symbolizeScatterKind(reduction == "none" ? "set" : reduction);
  if (!kind)
    n.fail(DiagId::BadAttribute, "reduction", "'" + reduction + "'", "none, add, mul, max or min is needed");
  bool isSum = kind == ScatterKind::Add && n.isComplex(n.input(0)); // which its parts make
  if (kind && *kind != ScatterKind::Set && !isSum && (n.isComplex(n.input(0)) || n.isString(n.input(0)))) {
    n.fail(DiagId::UnsupportedForm, "reduction '" + reduction + "' of elements that are no real numbers");
    return std::nullopt;
  }
  return kind;
}

Values scatterElements(NodeContext &n) {
  Value x = n.input(0), indices = n.input(1), updates = n.input(2);
  std::optional<int64_t> axis = n.axis(n.rank(x), 0);
  std::optional<ScatterKind> kind = scatterKind(n);
  if (!axis || !kind)
    return {};
  if (n.isComplex(x) && kind == ScatterKind::Add)
    return n.byParts(scatterElements);
  if (n.rank(indices) != n.rank(x) || n.rank(updates) != n.rank(x) || !n.isInteger(indices))
    return {n.fail(DiagId::WrongRank, 1, n.rank(indices), "integers of the rank of input 0 are needed")};
  return {n.scatterElements(x, indices, updates, *axis, *kind)};
}

Values scatterNd(NodeContext &n) {
  Value x = n.input(0), indices = wrapTuples(n, x, n.input(1), 0), updates = n.input(2);
  std::optional<ScatterKind> kind = scatterKind(n);
  if (!kind || !indices)
    return {};
  if (n.isComplex(x) && kind == ScatterKind::Add)
    return n.byParts(scatterNd);
  return {n.scatterNd(x, indices, updates, *kind)};
}

/// values = [off, on]; on where the index along the new axis equals the given one, which may count from the end.
Values oneHot(NodeContext &n) {
  Value indices = n.input(0), values = n.input(2);
  std::optional<int64_t> axis = n.axis(n.rank(indices) + 1, -1);
  if (!axis || !n.input(1))
    return {};
  std::optional<llvm::SmallVector<double>> depth = n.knownFloats(n.input(1));
  if (depth && !(depth->size() == 1 && depth->front() >= 0 && depth->front() <= INT32_MAX))
    return {n.fail(DiagId::DimMismatch, "input 1 (depth)", depth->empty() ? -1 : depth->front(), "what is needed",
                   "a number of classes")};
  Expr size = depth ? n.expr(int64_t(depth->front())) : n.bind(n.input(1), {});
  if (n.rank(values) != 1 || !n.shapes.assumeEqual(n.dim(values, 0), n.expr(2)))
    return {n.fail(DiagId::DimMismatch, "the shape of input 2 (values)", n.describe(n.dims(values)), "what is needed",
                   "[2], the values for off and on")};
  Value wanted = n.convert(indices, n.si64());
  wanted = n.unsqueeze(n.wrapIndices(wanted, size), *axis);
  Dims dims = n.dims(wanted);
  if (!wanted)
    return {};
  dims[*axis] = size;
  Value isOn = n.equal(n.iota(*axis, dims, n.si64()), wanted);
  return {n.select(isOn, n.at(values, 0, 1), n.at(values, 0, 0))};
}

//===----------------------------------------------------------------------===//
// Caches
//===----------------------------------------------------------------------===//

/// Rows [w, w + len) along an axis of the past cache are the update, with w of its own for each batch element; a
/// circular cache takes rows past its end at its beginning.
Values tensorScatter(NodeContext &n) {
  Value past = n.input(0), update = n.input(1), begin = n.optionalInput(2);
  std::optional<int64_t> axis = n.axis(n.rank(past), -2);
  std::string mode = n.text("mode", "linear");
  if (!axis || *axis == 0)
    return {n.fail(DiagId::BadAxis, n.integer("axis", -2), n.rank(past))};
  if (mode != "linear" && mode != "circular")
    return {n.fail(DiagId::BadAttribute, "mode", "'" + mode + "'", "linear or circular is needed")};
  Dims dims = n.dims(update);
  Value row = n.iota(*axis, dims, n.si64());
  if (begin)
    row = n.add(row, n.broadcast(n.convert(begin, n.si64()), 0, dims));
  if (mode == "circular")
    row = n.binary<ModOp>(row, n.fromExprs(n.dim(past, *axis), n.si64(), /*isScalar=*/true));
  return {n.scatterElements(past, row, update, *axis, ScatterKind::Set)};
}

} // namespace ptc::decomp
