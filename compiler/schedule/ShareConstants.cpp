//===- ShareConstants.cpp - kernels that differ in numbers alone ----------===//
//
// A detector does the same for each of ninety classes: it takes the scores of its column, and writes its number beside
// the boxes that stay.
//
//   load scores[91 * i + 7]          store 7, labels[d0 + s0]
//
// Ninety kernels that differ in the place where they begin to read, or in an i64 that they store, become one that is
// told it:
//
//   load scores[91 * i + s1]         store s1, labels[d0 + s0]
//
// as a symbol more, whose value stands at the launch. Numbers whose differences are the same in all of them share one.
// SSDlite has 116 kernels for 290 then, a quarter of the code, compiles in 0.42 of the time and runs in 0.89. It takes
// a number of kernels to be worth it, since one that knows its numbers may have better code: templates keep theirs.
//
// Scalars that are computed with: ShareScalars.cpp.
//
// On CPUs; a device's threads access several elements at places whose alignment they know.
//
//===----------------------------------------------------------------------===//
#include "compiler/schedule/KernelNames.h"
#include "compiler/schedule/MergeNodes.h"
#include "compiler/schedule/Passes.h"
#include "compiler/schedule/ShareScalars.h"
#include "ir/loop/Recurrence.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace ptc {
#define GEN_PASS_DEF_SHARECONSTANTS
#include "compiler/schedule/Passes.h.inc"
} // namespace ptc

namespace {

constexpr size_t fewestKernels = 8, mostSymbols = 4;

/// Numbers that a symbol may take the place of, in the order of the kernel's ops.
using Constants = SmallVector<int64_t>;

struct Member {
  KernelOp kernel;
  Constants constants;
};

} // namespace

static int64_t getConstantTerm(Expr expr) {
  if (expr.isConstant())
    return expr.getValue();
  if (expr.getKind() == ExprKind::Add)
    for (Expr term : expr.getOperands())
      if (term.isConstant())
        return term.getValue();
  return 0;
}

/// Whether the op is a 64-bit integer that is stored as it is.
static bool isStoredInteger(Operation *op) {
  auto constant = dyn_cast<arith::ConstantOp>(op);
  return constant && constant.getType().isInteger(64) && llvm::all_of(op->getUses(), [](OpOperand &use) {
           auto store = dyn_cast<StoreOp>(use.getOwner());
           return store && use.get() == store.getValue() && !store.getCombine();
         });
}

static void setAddress(Operation *op, Expr address) {
  op->setAttr("indices", prim::getExprArray(op->getContext(), {address}));
}

/// Calls `visit` with each op that has such a number. Kernels take these symbols for sizes, so it is none below 0, nor
/// a large one.
static void forEachConstant(KernelOp kernel, llvm::function_ref<void(Operation *, int64_t)> visit) {
  kernel.getBody().walk([&](Operation *op) {
    int64_t value = -1;
    if (isa<LoadOp, StoreOp>(op))
      value = getConstantTerm(getAddress(op));
    else if (isStoredInteger(op))
      value = cast<IntegerAttr>(cast<arith::ConstantOp>(op).getValue()).getInt();
    if (value >= 0 && value <= std::numeric_limits<int32_t>::max())
      visit(op, value);
  });
}

static Constants collectConstants(KernelOp kernel) {
  Constants constants;
  forEachConstant(kernel, [&](Operation *, int64_t value) { constants.push_back(value); });
  return constants;
}

/// Adds `values` to the kernel's numbers, in their order; null ones are none.
static void addToConstants(KernelOp kernel, ArrayRef<Expr> values) {
  const Expr *next = values.begin();
  forEachConstant(kernel, [&](Operation *op, int64_t value) {
    Expr added = *next++;
    if (!added)
      return;
    if (isa<LoadOp, StoreOp>(op))
      return setAddress(op, getAddress(op) + added);
    Expr sum = added + value;
    OpBuilder b(op);
    Operation *index = IndexOp::create(b, op->getLoc(), sum, ValueRange());
    op->replaceAllUsesWith(index);
    op->erase();
  });
}

/// The kernel's text without its numbers.
static std::string getSkeleton(KernelOp kernel, ArrayRef<int64_t> constants) {
  MLIRContext *context = kernel.getContext();
  KernelOp copy = kernel.clone();
  SmallVector<Expr> negated;
  for (int64_t constant : constants)
    negated.push_back(Expr::constant(context, -constant));
  addToConstants(copy, negated);
  std::string text = getKernelText(copy);
  copy.erase();
  return text;
}

/// Templates are none, nor kernels that have what a number becomes in the skeleton.
static bool isCandidate(KernelOp kernel) {
  return !kernel
              .walk([](Operation *op) {
                auto index = dyn_cast<IndexOp>(op);
                bool isNone =
                    isa<ContractionOp, AttentionOp, RecurrenceOp>(op) || (index && Expr(index.getExpr()).isConstant());
                return isNone ? WalkResult::interrupt() : WalkResult::advance();
              })
              .wasInterrupted();
}

/// Whether the numbers of each member are as far from each other as those of the first.
static bool differAlike(const Constants &a, const Constants &b) {
  return llvm::all_of(llvm::zip_equal(a, b),
                      [&](auto pair) { return std::get<0>(pair) - a[0] == std::get<1>(pair) - b[0]; });
}

/// Makes the kernels one, whose launches say what differs: one that the program has already, if it has such a one.
static void share(MutableArrayRef<Member> members, llvm::StringMap<SmallVector<LaunchOp>> &launches) {
  KernelOp kernel = members[0].kernel;
  MLIRContext *context = kernel.getContext();
  SmallVector<std::pair<Constants, Expr>> symbols; // what each stands for in the members
  SmallVector<Expr> added;
  size_t known = kernel.getSymbols().size();
  for (size_t place = 0; place < members[0].constants.size(); ++place) {
    Constants values;
    for (const Member &member : members)
      values.push_back(member.constants[place]);
    if (llvm::all_equal(values)) {
      added.push_back({});
      continue;
    }
    auto *found = llvm::find_if(symbols, [&](const auto &symbol) { return differAlike(symbol.first, values); });
    if (found == symbols.end()) {
      if (symbols.size() == mostSymbols)
        return;
      symbols.push_back({values, Expr::symbol(context, "s" + std::to_string(known + symbols.size()))});
      found = &symbols.back();
    }
    added.push_back(found->second - found->first.front());
  }
  addToConstants(kernel, added);
  SmallVector<Attribute> names(kernel.getSymbols().getValue());
  for (const auto &[values, symbol] : symbols)
    names.push_back(StringAttr::get(context, symbol.getSymbol()));
  kernel.setSymbolsAttr(ArrayAttr::get(context, names));
  std::string name = makeKernelName(getKernelStem(kernel.getSymName()), getKernelText(kernel));
  bool isKnown = launches.contains(name);
  SmallVector<LaunchOp> moved;
  for (auto [number, member] : llvm::enumerate(members)) {
    SmallVector<LaunchOp> own = launches.lookup(member.kernel.getSymName());
    launches.erase(member.kernel.getSymName());
    for (LaunchOp launch : own) {
      SmallVector<Expr> values = prim::getExprs(launch.getSymbols());
      for (const auto &[numbers, symbol] : symbols)
        values.push_back(Expr::constant(context, numbers[number]));
      launch.setSymbolsAttr(prim::getExprArray(context, values));
      launch.setKernelAttr(FlatSymbolRefAttr::get(context, name));
      moved.push_back(launch);
    }
    if (number || isKnown)
      member.kernel.erase();
    else
      kernel.setSymName(name);
  }
  llvm::append_range(launches[name], moved);
}

namespace {
struct ShareConstants : ptc::impl::ShareConstantsBase<ShareConstants> {
  void runOnOperation() override {
    SmallVector<SmallVector<Member>> families;
    llvm::StringMap<size_t> numbers;
    for (KernelOp kernel : getOperation().getOps<KernelOp>()) {
      if (!isCandidate(kernel))
        continue;
      Constants constants = collectConstants(kernel);
      auto [number, isNew] = numbers.try_emplace(getSkeleton(kernel, constants), families.size());
      if (isNew)
        families.emplace_back();
      families[number->second].push_back({kernel, constants});
    }
    llvm::StringMap<SmallVector<LaunchOp>> launches;
    getOperation().walk([&](LaunchOp launch) { launches[launch.getKernel()].push_back(launch); });
    for (SmallVector<Member> &members : families)
      if (members.size() >= fewestKernels)
        share(members, launches);
    shareScalars(getOperation());
  }
};
} // namespace
