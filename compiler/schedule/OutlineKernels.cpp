//===- OutlineKernels.cpp - kernels named by content ----------------------===//
//
// A fused group becomes a `loop.kernel` whose arguments are the buffers it shares with
// the rest of the program; buffers of its own become slices in the kernel's scratch.
// Shape symbols are renamed s0, s1, ... in the order of use, so that equal work has equal
// text whatever the user called things; sums of symbols that count as one are one (ShareOffsets.cpp). A kernel's name
// is what it does plus a hash of that text; equal kernels are one kernel, launched several times.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/KernelNames.h"
#include "compiler/schedule/NodeDims.h"
#include "compiler/schedule/Passes.h"
#include "compiler/schedule/ShareOffsets.h"
#include "ir/loop/Horizontal.h"
#include "ir/loop/Recurrence.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace ptc {
#define GEN_PASS_DEF_OUTLINEKERNELS
#include "compiler/schedule/Passes.h.inc"
} // namespace ptc

namespace {

/// Operators of the nodes behind a location, in order, without repeats in a row.
void collectOperators(Location loc, SmallVectorImpl<std::string> &names) {
  auto fused = dyn_cast<FusedLoc>(loc);
  if (!fused)
    return;
  if (auto metadata = dyn_cast_or_null<DictionaryAttr>(fused.getMetadata()))
    if (auto op = metadata.getAs<StringAttr>("op")) {
      std::string name = op.getValue().lower();
      if (names.empty() || names.back() != name)
        names.push_back(name);
      return;
    }
  for (Location part : fused.getLocations())
    collectOperators(part, names);
}

/// `conv_relu_add`, at most four operators; the nodes' kinds where the operators are unknown.
std::string getStem(Operation *op) {
  SmallVector<std::string> names;
  collectOperators(op->getLoc(), names);
  if (names.empty() && isa<FusedOp>(op)) {
    for (Operation &node : op->getRegion(0).front())
      if (isNode(&node))
        names.push_back(node.getName().stripDialect().str());
  } else if (names.empty()) {
    names.push_back(op->getName().stripDialect().str());
  }
  if (names.size() > 4)
    names.resize(4);
  std::string stem = llvm::join(names, "_");
  for (char &c : stem)
    if (!llvm::isAlnum(c))
      c = '_';
  return stem;
}

class Outliner {
public:
  Outliner(ModuleOp module) : module(module), moduleBuilder(OpBuilder::atBlockBegin(module.getBody())) {}

  void outline(FusedOp fused, SymbolRanges symbols) {
    SharedOffsets offsets = shareOffsets(fused, symbols);
    for (const auto &[name, value] : offsets)
      symbols[name] = value.range(symbols);
    SmallVector<std::string> names = collectSymbols(fused);
    replace(fused, takeLocals(fused, symbols), int64_t(fused.getParallel()), names, offsets);
  }

  /// Its groups are no kernels of their own. What several of them use lies outside.
  void outline(RecurrenceOp recurrence, const SymbolRanges &symbols) {
    SmallVector<std::string> names = collectSymbols(recurrence);
    recurrence.walk([&](FusedOp fused) { takeLocals(fused, symbols); });
    for (Region &region : recurrence->getRegions())
      for (Operation &op : llvm::make_early_inc_range(region.getOps()))
        if (isa<BufferOp>(op))
          op.moveBefore(recurrence);
    SmallVector<Value> buffers, locals;
    classify(recurrence, false, buffers, locals);
    replace(recurrence, buffers, 0, names);
  }

private:
  /// Moves what only the group uses into it; returns its other buffers.
  SmallVector<Value> takeLocals(FusedOp fused, const SymbolRanges &symbols) {
    SmallVector<Value> buffers, locals;
    classify(fused, fused.getParallel() > 0, buffers, locals);
    localize(fused, locals, symbols);
    Block &body = fused.getBody().front();
    for (Value local : llvm::reverse(locals))
      local.getDefiningOp()->moveBefore(&body, body.begin());
    return buffers;
  }

  /// Buffers that only this group touches are its own.
  void classify(Operation *fused, bool hasLocals, SmallVectorImpl<Value> &buffers, SmallVectorImpl<Value> &locals) {
    // A product's results are those of a block, not of a point of the shared dims, but ahead of an attention's heads.
    bool hasHeads = isa<FusedOp>(fused) && isa<AttentionOp>(fused->getRegion(0).front().back());
    auto isOfPoint = [&](Operation *user) {
      return fused->isProperAncestor(user) && (hasHeads || !isa<ContractionOp>(getEnclosingNode(user)));
    };
    auto add = [&](Value buffer) {
      if (llvm::is_contained(buffers, buffer) || llvm::is_contained(locals, buffer))
        return;
      Region *region = buffer.getParentRegion();
      if (fused->isAncestor(region->getParentOp())) // its own already
        return;
      bool isLocal = buffer.getDefiningOp<BufferOp>() && hasLocals && llvm::all_of(buffer.getUsers(), isOfPoint);
      (isLocal ? locals : buffers).push_back(buffer);
    };
    // In the order in which the body mentions them.
    fused->walk([&](Operation *op) {
      for (Value operand : op->getOperands())
        if (isa<BufferType>(operand.getType()))
          add(operand);
    });
  }

  /// Shape symbols in the order of use.
  SmallVector<std::string> collectSymbols(Operation *root) {
    SmallVector<std::string> names;
    auto visit = [&](Expr expr) {
      expr.walkSymbols([&](StringRef symbol) {
        bool isFree = !isDimSymbol(symbol) && !isOperandSymbol(symbol) && symbol != RecurrenceOp::stepSymbol;
        if (isFree && !llvm::is_contained(names, symbol))
          names.push_back(symbol.str());
      });
    };
    if (auto recurrence = dyn_cast<RecurrenceOp>(root))
      visit(recurrence.getSteps());
    root->walk<WalkOrder::PreOrder>([&](Operation *node) {
      if (!isNode(node))
        return;
      for (Expr extent : getDomain(node))
        visit(extent);
      if (auto sort = dyn_cast<SortOp>(node))
        visit(sort.getKept());
      forEachExpr(node, visit);
    });
    return names;
  }

  /// A local buffer holds one slice: its addresses lose what depends on parallel dims.
  void localize(FusedOp fused, ArrayRef<Value> locals, const SymbolRanges &symbols) {
    MLIRContext *context = fused.getContext();
    auto zeroParallel = [&](StringRef symbol) -> Expr {
      auto dim = getDimNumber(symbol);
      return dim && int64_t(*dim) < int64_t(fused.getParallel()) ? Expr::constant(context, 0) : Expr();
    };
    for (Value local : locals) {
      Expr size = Expr::constant(context, 1);
      for (Operation *user : local.getUsers()) {
        Operation *node = getEnclosingNode(user);
        auto indices = cast<ArrayAttr>(user->getAttr("indices"));
        Expr at = prim::getExprs(indices)[0].substitute(zeroParallel).simplify(getNodeRanges(node, symbols));
        user->setAttr("indices", prim::getExprArray(context, {at}));
        if (at.usesAny(isOperandSymbol)) // what is read was written
          continue;
        size = Expr::max(size, getLargest(at, getDomain(node)) + 1).simplify(symbols);
      }
      auto type = cast<BufferType>(local.getType());
      local.setType(
          BufferType::get(context, ArrayRef<Expr>(size), type.getElementType(), LayoutAttr::getRowMajor(context, 1)));
    }
  }

  /// `at` with every dim at its last value (addresses of slices grow with their dims).
  static Expr getLargest(Expr at, ArrayRef<Expr> domain) {
    return at.substitute([&](StringRef symbol) -> Expr {
      auto dim = getDimNumber(symbol);
      return dim ? domain[*dim] - 1 : Expr();
    });
  }

  /// A launch of a kernel that does what `op`, a group or a recurrence, says.
  void replace(Operation *op, ArrayRef<Value> buffers, int64_t parallel, ArrayRef<std::string> names,
               const SharedOffsets &offsets = {}) {
    OpBuilder b(op);
    KernelOp kernel = createKernel(op, buffers, parallel, names, offsets);
    SmallVector<Expr> values;
    for (StringRef name : names) {
      auto *offset = llvm::find_if(offsets, [&](const auto &pair) { return pair.first == name; });
      values.push_back(offset == offsets.end() ? Expr::symbol(b.getContext(), name) : offset->second);
    }
    LaunchOp::create(b, op->getLoc(), FlatSymbolRefAttr::get(deduplicate(kernel, getStem(op))), buffers,
                     prim::getExprArray(b.getContext(), values));
    op->erase();
  }

  KernelOp createKernel(Operation *op, ArrayRef<Value> buffers, int64_t parallel, ArrayRef<std::string> names,
                        const SharedOffsets &offsets) {
    OpBuilder &b = moduleBuilder;
    SmallVector<Value> read, written;
    collectAccesses(op, read, written);
    SmallVector<Attribute> symbolNames;
    for (size_t i = 0; i < names.size(); ++i)
      symbolNames.push_back(b.getStringAttr("s" + Twine(i)));
    SmallVector<int64_t> writtenArguments;
    for (auto [i, buffer] : llvm::enumerate(buffers))
      if (llvm::is_contained(written, buffer))
        writtenArguments.push_back(i);
    auto kernel = KernelOp::create(b, b.getUnknownLoc(), "kernel", b.getArrayAttr(symbolNames), parallel,
                                   writtenArguments, DictionaryAttr(), ExprAttr(), ExprAttr(), ExprAttr(), ExprAttr(),
                                   ExprAttr(), ExprAttr(), StringAttr());
    if (isHorizontal(op))
      setHorizontal(kernel);
    Block &block = kernel.getBody().emplaceBlock();
    IRMapping mapping;
    for (Value buffer : buffers)
      mapping.map(buffer, block.addArgument(renamed(buffer.getType(), names, offsets), b.getUnknownLoc()));
    OpBuilder body = OpBuilder::atBlockEnd(&block);
    if (isa<FusedOp>(op))
      for (Operation &node : op->getRegion(0).front())
        body.clone(node, mapping);
    else
      body.clone(*op, mapping);
    auto rename = [&](StringRef symbol) { return renamed(symbol, names); };
    for (Operation &node : block)
      substituteExprs(&node, rename);
    kernel.walk([&](BufferOp local) { local.getResult().setType(renamed(local.getType(), names, offsets)); });
    kernel.walk([&](RecurrenceOp recurrence) {
      for (BlockArgument state : recurrence.getBody().getArguments())
        state.setType(renamed(state.getType(), names, offsets));
    });
    return kernel;
  }

  /// The kernel's name of a symbol that it is given; null for others.
  Expr renamed(StringRef symbol, ArrayRef<std::string> names) {
    for (auto [i, name] : llvm::enumerate(names))
      if (name == symbol)
        return Expr::symbol(module.getContext(), ("s" + Twine(i)).str());
    return {};
  }

  /// The size is 0 where it needs symbols that the kernel is not given: it matters to reports, and to plans.
  BufferType renamed(Type type, ArrayRef<std::string> names, const SharedOffsets &offsets) {
    auto buffer = cast<BufferType>(type);
    MLIRContext *context = type.getContext();
    Expr count = useShared(buffer.getElementCount(), offsets);
    bool isForeign = count.usesAny([&](StringRef symbol) { return !llvm::is_contained(names, symbol); });
    count = isForeign ? Expr::constant(context, 0)
                      : count.substitute([&](StringRef symbol) { return renamed(symbol, names); });
    return BufferType::get(context, ArrayRef<Expr>(count), buffer.getElementType(),
                           LayoutAttr::getRowMajor(context, 1));
  }

  /// Names the kernel by content; an equal one that is there already takes its place.
  StringAttr deduplicate(KernelOp kernel, StringRef stem) {
    std::string text = getKernelText(kernel);
    auto [found, isNew] = kernels.try_emplace(text, StringAttr());
    if (!isNew) {
      kernel.erase();
      return found->second;
    }
    std::string name = makeKernelName(stem, text);
    found->second = StringAttr::get(module.getContext(), name);
    kernel.setSymName(name);
    kernel->walk([&](Operation *op) { op->setLoc(UnknownLoc::get(op->getContext())); });
    return found->second;
  }

  ModuleOp module;
  OpBuilder moduleBuilder;
  llvm::StringMap<StringAttr> kernels;
};

struct OutlineKernels : ptc::impl::OutlineKernelsBase<OutlineKernels> {
  void runOnOperation() override {
    Outliner outliner(getOperation());
    for (auto program : llvm::to_vector(getOperation().getOps<ProgramOp>())) {
      SymbolRanges symbols = prim::getSymbolRanges(program.getSymbols());
      SmallVector<Operation *> groups;
      program.walk<WalkOrder::PreOrder>([&](Operation *op) {
        if (!isa<FusedOp, RecurrenceOp>(op))
          return WalkResult::advance();
        groups.push_back(op);
        return WalkResult::skip();
      });
      for (Operation *group : groups)
        if (auto fused = dyn_cast<FusedOp>(group))
          outliner.outline(fused, symbols);
        else
          outliner.outline(cast<RecurrenceOp>(group), symbols);
    }
  }
};

} // namespace
