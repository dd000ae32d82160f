//===- HoistedSizes.cpp - sizes found out in front of a loop --------------===//
//
// Rows stack if they have one size. Where the body computes it from what no round changes, the computation moves in
// front of the loop. It runs there although no round may: then nobody asks for the size, and it must not end the run.
//
//   loop of n rounds { s = bind(f(x)) }   =>   s = bind(0 < n ? f(x) : 0); loop of n rounds {}
//
// Operations are total but for those that check indices and for functions of the runtime. These, and what is made of
// them, are computed in a branch.
//
//===----------------------------------------------------------------------===//
#include "lowering/decomp/HoistedSizes.h"
#include "lowering/decomp/RegionSymbols.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::decomp;
using namespace ptc::prim;

/// Ends a run where its operands are not what they should be, or holds what does.
static bool mayFail(Operation *op) {
  return op
      ->walk([](Operation *part) {
        return isa<GatherOp, GatherElementsOp, GatherNdOp, ScatterElementsOp, ScatterNdOp, CallOp, GuardOp>(part)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

void HoistedSizes::hoist(Expr size, Block &body, const LoopForm &form, ShapeScope &outside) {
  SmallVector<std::string> symbols;
  size.usesAny([&](StringRef symbol) {
    if (!outside.isDeclared(symbol))
      symbols.push_back(symbol.str());
    return false;
  });
  for (const std::string &symbol : symbols) {
    auto origin = RegionSymbols(body).originOf(symbol, [&](StringRef used) { return outside.isDeclared(used); });
    if (!origin)
      continue;
    moveOut(*origin, form);
    for (Operation *op : *origin)
      if (auto bind = dyn_cast<BindOp>(op))
        outside.adopt(bind.getSymbol(), n.shapes);
  }
}

void HoistedSizes::drop() {
  for (Operation *op : llvm::reverse(moved))
    op->erase();
  moved.clear();
}

void HoistedSizes::moveOut(ArrayRef<Operation *> origin, const LoopForm &form) {
  Value runs = doesRun(form);
  llvm::SetVector<Operation *> unsure; // what may fail, or is made of that
  auto isUnsure = [&](Value value) { return unsure.contains(value.getDefiningOp()); };
  for (Operation *op : origin) {
    auto bind = dyn_cast<BindOp>(op);
    if (runs && !bind && (mayFail(op) || llvm::any_of(usedBy(op), isUnsure))) {
      unsure.insert(op); // the loop keeps it, too
      continue;
    }
    if (bind && runs) {
      Value size = bind.getX();
      bind.getXMutable().assign(isUnsure(size) ? inBranch(unsure.getArrayRef(), size, runs) : inFrontOf([&] {
        return n.select(runs, size, n.scalarLike(0, size));
      }));
    }
    move(op);
  }
}

/// Whether round 0 runs, a boolean in front of the loop; null where it does in any case.
Value HoistedSizes::doesRun(const LoopForm &form) {
  Value runs;
  auto require = [&](Value condition) { runs = runs ? n.logicalAnd(runs, condition) : condition; };
  auto isPositive = [&](Value count) { return n.less(n.scalarLike(0, count), count); };
  return inFrontOf([&] {
    if (form.trips && !n.shapes.isPositive(form.trips))
      require(isPositive(n.fromExprs(form.trips, n.si64(), /*isScalar=*/true)));
    if (form.limit)
      require(isPositive(form.limit));
    std::optional<Ints> known = form.condition ? n.knownInts(form.condition) : Ints{1};
    if (!known || !known->front())
      require(form.condition);
    return runs;
  });
}

/// `size`, if a round runs, made by those of `unsure` that it takes.
Value HoistedSizes::inBranch(ArrayRef<Operation *> unsure, Value size, Value runs) {
  llvm::SmallPtrSet<Operation *, 8> needed = {size.getDefiningOp()};
  for (Operation *op : llvm::reverse(unsure))
    if (needed.contains(op))
      for (Value operand : usedBy(op))
        needed.insert(operand.getDefiningOp());
  return inFrontOf([&] {
    OpBuilder &builder = n.getBuilder();
    OperationState state(n.getLoc(), IfOp::getOperationName());
    state.addOperands(runs);
    state.addTypes(size.getType());
    for (bool isTaken : {true, false}) {
      OpBuilder::InsertionGuard guard(builder);
      builder.createBlock(state.addRegion());
      IRMapping copies;
      for (Operation *op : unsure)
        if (isTaken && needed.contains(op))
          builder.clone(*op, copies);
      YieldOp::create(builder, n.getLoc(), isTaken ? copies.lookupOrDefault(size) : n.scalarLike(0, size));
    }
    return builder.create(state)->getResult(0);
  });
}

/// What `build` creates, in front of the loop.
Value HoistedSizes::inFrontOf(llvm::function_ref<Value()> build) {
  OpBuilder &builder = n.getBuilder();
  OpBuilder::InsertionGuard guard(builder);
  builder.restoreInsertionPoint(inFront);
  Block *block = inFront.getBlock();
  Operation *before = inFront.getPoint() == block->begin() ? nullptr : &*std::prev(inFront.getPoint());
  Value made = build();
  for (Operation &op : llvm::make_range(before ? std::next(before->getIterator()) : block->begin(), inFront.getPoint()))
    moved.push_back(&op);
  return made;
}

void HoistedSizes::move(Operation *op) {
  op->moveBefore(inFront.getBlock(), inFront.getPoint());
  moved.push_back(op);
}
