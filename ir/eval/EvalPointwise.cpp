//===- EvalPointwise.cpp - rows of the pointwise table --------------------===//
//
// Emits the row's scalar body into a scratch block, as the lowering does, and
// interprets what was emitted for every element.
//
//===----------------------------------------------------------------------===//
#include "ir/eval/EvalOps.h"
#include "ir/eval/ScalarProgram.h"
#include "ir/prim/ScalarBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace ptc;
using namespace ptc::eval;

Results eval::evalPointwise(prim::PointwiseOpInterface op, Operands x, Scope &scope) {
  llvm::Expected<Tensor> y = allocate(op->getResult(0), scope);
  if (!y)
    return y.takeError();
  for (const Tensor *operand : x)
    if (operand->getShape() != y->getShape())
      return error("operands of a pointwise operation have different dims");
  auto isWide = [](const Tensor &t) { return t.getElementType().isIntOrFloat() && t.getStride() > 8; };
  bool isChoice = llvm::isa<prim::SelectOp>(op.getOperation());
  if (!isChoice && (isWide(*y) || llvm::any_of(x, [&](const Tensor *t) { return isWide(*t); })))
    return error("arithmetic on elements of 128 bits is not evaluated");
  if (isChoice && (prim::isHandle(y->getElementType()) || isWide(*y))) {
    for (int64_t i = 0; i != y->getNumElements(); ++i)
      y->copyElement(i, *x[x[0]->getInt(i) ? 1 : 2], i);
    return result(std::move(*y));
  }
  // No-ops where they are loaded; a pass that folds declares them.
  op->getContext()->loadDialect<mlir::arith::ArithDialect, mlir::math::MathDialect>();
  mlir::Block block;
  bool isUnsigned = false;
  for (const Tensor *operand : x) {
    isUnsigned |= operand->getElementType().isUnsignedInteger();
    block.addArgument(prim::getScalarType(operand->getElementType()), op->getLoc());
  }
  mlir::OpBuilder builder(op->getContext());
  builder.setInsertionPointToStart(&block);
  prim::ScalarBuilder scalars(builder, op->getLoc(), isUnsigned);
  llvm::SmallVector<mlir::Value> arguments(block.getArguments());
  mlir::Value value = op.emitScalar(scalars, arguments);
  llvm::Expected<ScalarProgram> program = ScalarProgram::create(block, value);
  if (!program)
    return program.takeError();
  program->run(x, *y);
  return result(std::move(*y));
}
