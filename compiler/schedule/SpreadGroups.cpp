//===- SpreadGroups.cpp - values of groups, stored for each column --------===//
//
// What a group norm knows of each group is read by whole rows at [c floordiv 10]: for lanes along the columns a gather,
// since a vector meets two or three groups anywhere. Where rows are many, the values are stored once for each column,
// and read in runs, for CPUs. (Groups of whole vectors are one value for a vector; of a weight the columns would be
// stored anew in each run.) So is what many rows read in steps, [c * 8], along a dim where they write in runs: what a
// product by few columns knows of each position, as another matrix's columns.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/MergeNodes.h"
#include "compiler/schedule/Passes.h"
#include "ir/expr/DimName.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace ptc {
#define GEN_PASS_DEF_SPREADGROUPS
#include "compiler/schedule/Passes.h.inc"
} // namespace ptc

static constexpr int64_t widestVector = 16;   // elements: groups of so many, or of a multiple, are no gather
static constexpr int64_t fewestReads = 32;    // of each column: one launch and a store for that many gathers
static constexpr int64_t leastWork = 1 << 13; // points

namespace {

/// An address by groups of a dim's columns, or in steps along them.
struct GroupAddress {
  Value buffer;
  SmallVector<unsigned> dims; // of the reader, that it uses: the last one's columns are grouped
  SmallVector<Expr> extents;  // of these
  int64_t group;              // columns; in steps: 1
  Expr address;               // in terms of d0, d1, ...: those dims
};

/// Elements from what a node reads or writes to the same along the dim; 0: none, or not known.
int64_t stepAlong(Expr address, unsigned dim) {
  Expr step = address.uses(dimName(dim)) ? address.coefficientOf(dimName(dim)) : Expr();
  return step ? step.asConstant().value_or(0) : 0;
}

/// Whether the node reads in steps at the address along its last dim, and writes in runs there.
bool readsInSteps(Operation *node, Expr address) {
  unsigned last = unsigned(getDomain(node).size()) - 1;
  bool writesRuns = false;
  node->walk([&](StoreOp store) { writesRuns |= !isIndirect(store) && stepAlong(getAddress(store), last) == 1; });
  return writesRuns && stepAlong(address, last) > 1;
}

/// The node that writes the buffer, if it is one, and no control flow.
Operation *getOnlyWriter(Value buffer) {
  Operation *writer = nullptr;
  for (Operation *user : buffer.getUsers()) {
    if (isa<LoadOp>(user))
      continue;
    Operation *node = isa<StoreOp>(user) ? getEnclosingNode(user) : nullptr;
    if (!node || (writer && writer != node))
      return nullptr;
    writer = node;
  }
  return writer;
}

class Spreading {
public:
  Spreading(const SymbolRanges &symbols, const SymbolValues &hints) : symbols(symbols), hints(hints) {}

  void run(Operation *node) {
    SmallVector<LoadOp> loads;
    node->walk([&](LoadOp load) { loads.push_back(load); });
    for (LoadOp load : loads)
      if (std::optional<GroupAddress> read = findGroups(load, node)) {
        Attribute place =
            ArrayAttr::get(node->getContext(), {read->address, prim::getExprArray(node->getContext(), read->extents)});
        Value &columns = spread[{read->buffer, place}];
        if (!columns)
          columns = store(*read, node);
        Expr position = Expr::constant(node->getContext(), 0);
        for (auto [dim, extent] : llvm::zip(read->dims, read->extents))
          position = position * extent + Expr::dim(node->getContext(), dim);
        OpBuilder b(load);
        Value column = LoadOp::create(b, load.getLoc(), columns, ArrayRef<Expr>(position));
        load.getResult().replaceAllUsesWith(column);
        load.erase();
      }
  }

private:
  std::optional<GroupAddress> findGroups(LoadOp load, Operation *node) {
    SmallVector<Expr> domain = getDomain(node);
    Expr address = getAddress(load);
    GroupAddress found{.buffer = load.getBuffer(), .dims = {}, .extents = {}, .group = 0, .address = {}};
    Operation *writer = found.buffer.getDefiningOp<BufferOp>() ? getOnlyWriter(found.buffer) : nullptr;
    bool isMasked = load->getParentOp() != node; // and would be read where there is nothing
    int64_t divisions = countDivisions(address);
    bool isStepped = divisions == 0 && readsInSteps(node, address);
    if (isMasked || isIndirect(load) || (divisions != 1 && !isStepped) || !writer ||
        writer->getBlock() != node->getBlock())
      return std::nullopt;
    for (auto [dim, extent] : llvm::enumerate(domain))
      if (address.uses(dimName(dim))) {
        if (found.group)
          return std::nullopt; // columns are the last dim
        found.group = isStepped ? 0 : findDivisor(address, dimName(dim));
        found.dims.push_back(unsigned(dim));
        found.extents.push_back(extent);
      }
    auto columns = found.extents.empty() ? std::nullopt : found.extents.back().asConstant();
    if (isStepped)
      found.group = 1;
    else if (found.group < 2 || found.group % widestVector == 0 || !columns || *columns % found.group)
      return std::nullopt;
    auto points = product(node->getContext(), domain).evaluate(hints),
         count = product(node->getContext(), found.extents).evaluate(hints);
    if (!points || !count || *points < leastWork || *points < *count * fewestReads)
      return std::nullopt;
    found.address = address.substitute([&](StringRef symbol) -> Expr {
      auto dim = getDimNumber(symbol);
      return dim ? Expr::dim(node->getContext(), unsigned(llvm::find(found.dims, *dim) - found.dims.begin())) : Expr();
    });
    return found;
  }

  /// A node over groups and their columns, before the first that reads these.
  Value store(const GroupAddress &read, Operation *reader) {
    MLIRContext *context = reader->getContext();
    unsigned last = unsigned(read.extents.size()) - 1;
    auto from = cast<BufferType>(read.buffer.getType());
    OpBuilder b(reader);
    Value columns = BufferOp::create(b, reader->getLoc(),
                                     BufferType::get(context, ArrayRef<Expr>(product(context, read.extents)),
                                                     from.getElementType(), LayoutAttr::getRowMajor(context, 1)));
    SmallVector<Expr> domain = read.extents;
    if (read.group > 1) {
      domain[last] = domain[last].floorDiv(read.group);
      domain.push_back(Expr::constant(context, read.group));
    }
    auto node = PointwiseOp::create(b, reader->getLoc(), prim::getExprArray(context, domain));
    b.setInsertionPointToStart(&node.getBody().emplaceBlock());
    Expr position = Expr::constant(context, 0), column = Expr::dim(context, last) * read.group;
    if (read.group > 1)
      column = column + Expr::dim(context, last + 1);
    for (auto [dim, extent] : llvm::enumerate(read.extents))
      position = position * extent + (dim == last ? column : Expr::dim(context, unsigned(dim)));
    SymbolRanges ranges = getNodeRanges(node, symbols);
    Expr address = read.address.substitute(
        [&](StringRef symbol) -> Expr { return getDimNumber(symbol) == last ? column : Expr(); });
    Value value = LoadOp::create(b, reader->getLoc(), read.buffer, ArrayRef<Expr>(address.simplify(ranges)));
    StoreOp::create(b, reader->getLoc(), value, columns, ArrayRef<Expr>(position.simplify(ranges)));
    return columns;
  }

  const SymbolRanges &symbols;
  const SymbolValues &hints;
  llvm::DenseMap<std::pair<Value, Attribute>, Value> spread; // by buffer; address and extents
};

struct SpreadGroups : ptc::impl::SpreadGroupsBase<SpreadGroups> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>()) {
      SymbolRanges symbols = prim::getSymbolRanges(program.getSymbols());
      SymbolValues hints = prim::getSymbolHints(program.getSymbols());
      SmallVector<Operation *> nodes;
      program.walk([&](Operation *op) {
        if (isa<PointwiseOp, ReductionOp>(op))
          nodes.push_back(op);
      });
      Spreading spreading(symbols, hints);
      for (Operation *node : nodes)
        spreading.run(node);
    }
  }
};

} // namespace
