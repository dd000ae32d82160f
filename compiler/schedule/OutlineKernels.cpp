//===- OutlineKernels.cpp - kernels named by content ----------------------===//
//
// A fused group becomes a `loop.kernel` whose arguments are the buffers it shares with
// the rest of the program; buffers of its own become slices in the kernel's scratch.
// Shape symbols are renamed s0, s1, ... in the order of use, so that equal work has equal
// text whatever the user called things. A kernel's name is what it does plus a hash of
// that text; equal kernels are one kernel, launched several times.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/NodeDims.h"
#include "compiler/schedule/Passes.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"

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
std::string getStem(FusedOp fused) {
  SmallVector<std::string> names;
  collectOperators(fused.getLoc(), names);
  if (names.empty())
    for (Operation &node : fused.getBody().front())
      names.push_back(node.getName().stripDialect().str());
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

  void outline(FusedOp fused, const SymbolRanges &symbols) {
    SmallVector<Value> read, written, buffers, locals;
    collectAccesses(fused, read, written);
    classify(fused, buffers, locals);
    SmallVector<std::string> names = collectSymbols(fused);
    localize(fused, locals, symbols);

    OpBuilder b(fused);
    KernelOp kernel = createKernel(fused, buffers, written, names);
    for (Value local : locals)
      if (local.use_empty())
        local.getDefiningOp()->erase();
    SmallVector<Expr> values;
    for (StringRef name : names)
      values.push_back(Expr::symbol(b.getContext(), name));
    LaunchOp::create(b, fused.getLoc(), FlatSymbolRefAttr::get(deduplicate(kernel, getStem(fused))), buffers,
                     prim::getExprArray(b.getContext(), values));
    fused.erase();
  }

private:
  /// Buffers that only this group touches are its own.
  void classify(FusedOp fused, SmallVectorImpl<Value> &buffers, SmallVectorImpl<Value> &locals) {
    auto add = [&](Value buffer) {
      if (llvm::is_contained(buffers, buffer) || llvm::is_contained(locals, buffer))
        return;
      bool isLocal = buffer.getDefiningOp<BufferOp>() && fused.getParallel() > 0 &&
                     llvm::all_of(buffer.getUsers(), [&](Operation *user) { return fused->isProperAncestor(user); });
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
  SmallVector<std::string> collectSymbols(FusedOp fused) {
    SmallVector<std::string> names;
    auto visit = [&](Expr expr) {
      expr.walkSymbols([&](StringRef symbol) {
        if (!isDimSymbol(symbol) && !isOperandSymbol(symbol) && !llvm::is_contained(names, symbol))
          names.push_back(symbol.str());
      });
    };
    for (Operation &node : fused.getBody().front()) {
      for (Expr extent : getDomain(&node))
        visit(extent);
      forEachExpr(&node, visit);
    }
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

  KernelOp createKernel(FusedOp fused, ArrayRef<Value> buffers, ArrayRef<Value> written, ArrayRef<std::string> names) {
    OpBuilder &b = moduleBuilder;
    SmallVector<Attribute> symbolNames;
    for (size_t i = 0; i < names.size(); ++i)
      symbolNames.push_back(b.getStringAttr("s" + Twine(i)));
    SmallVector<int64_t> writtenArguments;
    for (auto [i, buffer] : llvm::enumerate(buffers))
      if (llvm::is_contained(written, buffer))
        writtenArguments.push_back(i);
    auto kernel = KernelOp::create(b, b.getUnknownLoc(), "kernel", b.getArrayAttr(symbolNames),
                                   int64_t(fused.getParallel()), writtenArguments, DictionaryAttr(), ExprAttr(),
                                   ExprAttr(), ExprAttr(), ExprAttr(), ExprAttr(), ExprAttr());
    Block &block = kernel.getBody().emplaceBlock();
    IRMapping mapping;
    auto rename = [&](StringRef symbol) -> Expr {
      for (auto [i, name] : llvm::enumerate(names))
        if (name == symbol)
          return Expr::symbol(b.getContext(), ("s" + Twine(i)).str());
      return {};
    };
    auto renamedType = [&](Value buffer) {
      auto type = cast<BufferType>(buffer.getType());
      Expr count = type.getElementCount().substitute(rename);
      bool isForeign =
          count.usesAny([&](StringRef s) { return !s.starts_with("s") || !llvm::to_integer(s.drop_front(), ignored); });
      // The size matters to reports only; symbols that the kernel is not given are left out.
      if (isForeign)
        count = Expr::constant(b.getContext(), 0);
      return BufferType::get(b.getContext(), ArrayRef<Expr>(count), type.getElementType(),
                             LayoutAttr::getRowMajor(b.getContext(), 1));
    };
    for (Value buffer : buffers)
      mapping.map(buffer, block.addArgument(renamedType(buffer), b.getUnknownLoc()));
    OpBuilder body = OpBuilder::atBlockEnd(&block);
    fused->walk([&](Operation *op) {
      for (Value operand : op->getOperands())
        if (isa<BufferType>(operand.getType()) && !mapping.contains(operand))
          mapping.map(operand, BufferOp::create(body, b.getUnknownLoc(), renamedType(operand)).getResult());
    });
    for (Operation &node : fused.getBody().front())
      substituteExprs(body.clone(node, mapping), rename);
    return kernel;
  }

  /// Names the kernel by content; an equal one that is there already takes its place.
  StringAttr deduplicate(KernelOp kernel, StringRef stem) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    OpPrintingFlags flags;
    kernel->print(stream, flags.useLocalScope().enableDebugInfo(false));
    uint64_t hash = llvm::xxh3_64bits(text);
    auto [found, isNew] = kernels.try_emplace(text, StringAttr());
    if (!isNew) {
      kernel.erase();
      return found->second;
    }
    std::string name = (stem + "_" + llvm::utohexstr(hash, /*LowerCase=*/true, 16).substr(0, 12)).str();
    found->second = StringAttr::get(module.getContext(), name);
    kernel.setSymName(name);
    kernel->walk([&](Operation *op) { op->setLoc(UnknownLoc::get(op->getContext())); });
    return found->second;
  }

  ModuleOp module;
  OpBuilder moduleBuilder;
  llvm::StringMap<StringAttr> kernels;
  unsigned ignored = 0;
};

struct OutlineKernels : ptc::impl::OutlineKernelsBase<OutlineKernels> {
  void runOnOperation() override {
    Outliner outliner(getOperation());
    for (auto program : llvm::to_vector(getOperation().getOps<ProgramOp>())) {
      SymbolRanges symbols = prim::getSymbolRanges(program.getSymbols());
      SmallVector<FusedOp> groups;
      program.walk<WalkOrder::PreOrder>([&](FusedOp fused) { groups.push_back(fused); });
      for (FusedOp fused : groups)
        outliner.outline(fused, symbols);
    }
  }
};

} // namespace
