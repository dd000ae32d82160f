#include "ir/loop/ColumnParts.h"
#include "ir/expr/DimName.h"
#include "ir/loop/ContractionDims.h"

using namespace mlir;

namespace ptc::loop {

/// The product's only store to the buffer, at all of its points.
static StoreOp findStore(ContractionOp product, Value buffer) {
  StoreOp found;
  bool isOnly = true;
  product.getEpilogue().walk([&](StoreOp store) {
    if (store.getBuffer() != buffer)
      return;
    isOnly = !found && store->getParentOp() == product && store.getIndexOperands().empty() && !store.getCombine();
    found = store;
  });
  return isOnly ? found : StoreOp();
}

/// Rows in which a product lies: its columns are [first, first + own) of `columns`.
struct Rows {
  int64_t columns, first, own;
};

/// The rows in which the product lies at `address`; nothing if it lies in no rows.
static std::optional<Rows> findRows(ContractionOp product, Expr address) {
  DimCounts counts(product);
  SmallVector<Expr> domain = getDomain(product);
  Expr step = Expr::constant(product.getContext(), 1), columns, ownColumns;
  for (int64_t dim = counts.first(3) - 1; dim >= 0; --dim) {
    Expr rest, own = address.coefficientOf(dimName(dim), &rest);
    if (dim == counts.first(2) - 1) {
      ownColumns = step;
      bool isOnly = domain[size_t(dim)].isConstant(1);                  // the address does not tell its step
      columns = step = !isOnly && own && own.isConstant() ? own : step; // the product may be part of a row
    }
    if (!own || (own != step && !domain[size_t(dim)].isConstant(1)))
      return std::nullopt;
    address = rest;
    step = step * domain[size_t(dim)];
  }
  if (counts.first(2) == 0) // a single row
    ownColumns = columns = step;
  if (!columns || !columns.isConstant() || !ownColumns.isConstant() || !address.isConstant())
    return std::nullopt;
  Rows rows{columns.getValue(), address.getValue(), ownColumns.getValue()};
  bool areInside = rows.first >= 0 && rows.first + rows.own <= rows.columns;
  return areInside ? std::optional(rows) : std::nullopt;
}

/// How many columns the product's rows have, if there is nothing else in them.
static std::optional<int64_t> countColumns(ContractionOp product, Expr address) {
  std::optional<Rows> rows = findRows(product, address);
  return rows && rows->own == rows->columns ? std::optional(rows->columns) : std::nullopt;
}

/// The dims, each with its step in rows, that count `count` rows, the outermost first.
static std::optional<SmallVector<unsigned>> orderRows(ArrayRef<std::pair<unsigned, Expr>> dims, ArrayRef<Expr> domain,
                                                      Expr count) {
  SmallVector<unsigned> order;
  Expr step = Expr::constant(count.getContext(), 1);
  while (order.size() < dims.size()) {
    auto *next = llvm::find_if(
        dims, [&](const auto &dim) { return dim.second == step && !llvm::is_contained(order, dim.first); });
    if (next == dims.end())
      return std::nullopt;
    order.insert(order.begin(), next->first);
    step = step * domain[next->first];
  }
  if (step != count)
    return std::nullopt;
  return order;
}

static std::optional<ColumnParts> matchAddress(Expr address, ArrayRef<Expr> domain, int64_t columns, Expr rowCount) {
  SmallVector<std::pair<unsigned, Expr>> rows;
  ColumnParts parts{{}, 0, 0, 0};
  Expr left = address, leftOfPart;
  SymbolRanges ranges;
  for (unsigned dim = 0; dim < domain.size(); ++dim) {
    if (!address.uses(dimName(dim)))
      continue;
    Expr rest, step = left.coefficientOf(dimName(dim), &rest);
    if (!step)
      return std::nullopt;
    if (Expr inRows = step.floorDiv(columns).simplify({}); !inRows.isConstant(0) && inRows * columns == step) {
      rows.push_back({dim, inRows});
      left = rest;
      continue;
    }
    std::optional<int64_t> known = step.asConstant(), extent = domain[dim].asConstant();
    if (!known || !extent)
      return std::nullopt;
    ranges[dimName(dim)] = {.min = 0, .max = *extent - 1};
    if (*known > parts.width)
      parts.width = *known, parts.dim = dim;
  }
  auto order = orderRows(rows, domain, rowCount);
  if (!order || parts.width == 0 || columns % parts.width)
    return std::nullopt;
  left.coefficientOf(dimName(parts.dim), &leftOfPart);
  ExprRange range = leftOfPart.range(ranges);
  if (range.min < 0 || range.min / parts.width != range.max / parts.width)
    return std::nullopt;
  parts.rows = *order;
  parts.first = range.min / parts.width * parts.width;
  return parts;
}

/// The parts of rows of `columns` elements of which `address` lies in one; dims that move by whole rows may be
/// anything.
static std::optional<ColumnParts> matchColumns(Expr address, ArrayRef<Expr> domain, int64_t columns) {
  ColumnParts parts{{}, 0, 0, 0};
  Expr left = address;
  SymbolRanges ranges;
  for (unsigned dim = 0; dim < domain.size(); ++dim) {
    if (!left.uses(dimName(dim)))
      continue;
    Expr rest, step = left.coefficientOf(dimName(dim), &rest);
    if (!step)
      return std::nullopt;
    if (step.floorDiv(columns).simplify({}) * columns == step) {
      left = rest;
      continue;
    }
    std::optional<int64_t> known = step.asConstant(), extent = domain[dim].asConstant();
    if (!known || !extent || *known < 0)
      return std::nullopt;
    ranges[dimName(dim)] = {.min = 0, .max = *extent - 1};
    if (*known > parts.width)
      parts.width = *known, parts.dim = dim;
  }
  if (parts.width == 0 || columns % parts.width)
    return std::nullopt;
  Expr rest = left;
  left.coefficientOf(dimName(parts.dim), &rest);
  ExprRange range = rest.mod(columns).simplify(ranges).range(ranges); // without whole rows
  int64_t low = range.min / parts.width, high = range.max / parts.width;
  parts.first = low * parts.width;
  bool staysInRow = parts.first + domain[parts.dim].asConstant().value_or(columns) * parts.width <= columns;
  if (low != high || !staysInRow)
    return std::nullopt;
  return parts;
}

static Expr countRows(ContractionOp product) {
  SmallVector<Expr> domain = getDomain(product);
  return ptc::product(product.getContext(), ArrayRef(domain).take_front(size_t(DimCounts(product).first(2))));
}

/// What `match` says of all addresses at which the node reads the product's results, in rows of so many columns;
/// nothing if it differs, or there are none.
static std::optional<ColumnParts> findParts(ContractionOp product, Operation *node,
                                            llvm::function_ref<std::optional<ColumnParts>(Expr, int64_t)> match) {
  SmallVector<Value> read, written;
  collectAccesses(product, read, written);
  std::optional<ColumnParts> found;
  WalkResult result = node->walk([&](LoadOp load) {
    if (!llvm::is_contained(written, load.getBuffer()))
      return WalkResult::advance();
    StoreOp store = findStore(product, load.getBuffer());
    auto columns = store ? countColumns(product, prim::getExprs(store.getIndices())[0]) : std::nullopt;
    if (!columns || !load.getIndexOperands().empty())
      return WalkResult::interrupt();
    std::optional<ColumnParts> parts = match(prim::getExprs(load.getIndices())[0], *columns);
    if (!parts || (found && *found != *parts))
      return WalkResult::interrupt();
    found = parts;
    return WalkResult::advance();
  });
  return result.wasInterrupted() ? std::nullopt : found;
}

std::optional<ColumnParts> findColumnParts(ContractionOp product, Operation *node) {
  Expr rowCount = countRows(product);
  return findParts(product, node, [&](Expr address, int64_t columns) {
    return matchAddress(address, getDomain(node), columns, rowCount);
  });
}

std::optional<ColumnParts> findOwnColumns(ContractionOp product, Operation *node) {
  return findParts(product, node,
                   [&](Expr address, int64_t columns) { return matchColumns(address, getDomain(node), columns); });
}

/// Whether the address lies in row number d0, ..., d(shared - 1), counted in that order, of `columns` elements.
static bool liesInOwnRow(Expr address, ArrayRef<Expr> domain, unsigned shared, int64_t columns) {
  Expr step = Expr::constant(address.getContext(), columns);
  for (unsigned dim = shared; dim-- > 0;) {
    Expr rest, own = address.coefficientOf(dimName(dim), &rest);
    if (!own || (own != step && !domain[dim].isConstant(1)))
      return false;
    address = rest;
    step = step * domain[dim];
  }
  SymbolRanges ranges;
  for (unsigned dim = shared; dim < domain.size(); ++dim)
    if (address.uses(dimName(dim))) {
      std::optional<int64_t> extent = domain[dim].asConstant();
      if (!extent)
        return false;
      ranges[dimName(dim)] = {.min = 0, .max = *extent - 1};
    }
  ExprRange range = address.range(ranges);
  return range.min >= 0 && range.max < columns;
}

bool readsOwnRows(ContractionOp product, Operation *node, unsigned shared) {
  SmallVector<Value> read, written;
  collectAccesses(product, read, written);
  SmallVector<Expr> domain = getDomain(node);
  if (domain.size() < shared ||
      ptc::product(node->getContext(), ArrayRef(domain).take_front(shared)) != countRows(product))
    return false;
  WalkResult result = node->walk([&](LoadOp load) {
    if (!llvm::is_contained(written, load.getBuffer()))
      return WalkResult::advance();
    StoreOp store = findStore(product, load.getBuffer());
    auto rows = store ? findRows(product, prim::getExprs(store.getIndices())[0]) : std::nullopt;
    bool isOwn = rows && load.getIndexOperands().empty() &&
                 liesInOwnRow(prim::getExprs(load.getIndices())[0], domain, shared, rows->columns);
    return isOwn ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !result.wasInterrupted();
}

} // namespace ptc::loop
