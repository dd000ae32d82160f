#include "ir/loop/Rounds.h"

namespace ptc::loop {

int64_t countRounds(mlir::Operation *op, const SymbolValues &values) {
  int64_t rounds = 1;
  for (auto loop = op->getParentOfType<RepeatOp>(); loop; loop = loop->getParentOfType<RepeatOp>()) {
    std::optional<Expr> trips = loop.getTrips();
    std::optional<int64_t> count = trips ? trips->evaluate(values) : std::nullopt;
    rounds *= std::max<int64_t>(count.value_or(1), 0);
  }
  return rounds;
}

} // namespace ptc::loop
