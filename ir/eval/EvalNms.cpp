//===- EvalNms.cpp - greedy suppression of boxes ---------------------------===//
#include "ir/eval/EvalOps.h"

using namespace ptc;
using namespace ptc::eval;

namespace {
struct Box {
  float a0, b0, a1, b1;
  float area() const { return (a1 - a0) * (b1 - b0); }
};
} // namespace

static bool overlap(const Box &x, const Box &y, float threshold) {
  float height = std::min(x.a1, y.a1) - std::max(x.a0, y.a0), width = std::min(x.b1, y.b1) - std::max(x.b0, y.b0);
  if (!(height > 0) || !(width > 0))
    return false;
  float common = height * width, all = x.area() + y.area() - common;
  return common > 0 && x.area() > 0 && y.area() > 0 && all > 0 && common / all > threshold;
}

Results eval::evalNms(prim::NmsOp op, Operands x, Scope &scope) {
  llvm::Expected<Tensor> kept = allocate(op.getKept(), scope);
  if (!kept)
    return kept.takeError();
  int64_t length = kept->getRank() ? kept->getDim(kept->getRank() - 1) : 0;
  if (length == 0)
    return result(std::move(*kept));
  int64_t limit = x[2]->getInt(0);
  float threshold = float(x[3]->getFloat(0));
  auto boxAt = [&](int64_t i) {
    const Tensor &b = *x[0];
    return Box{float(b.getFloat(4 * i)), float(b.getFloat(4 * i + 1)), float(b.getFloat(4 * i + 2)),
               float(b.getFloat(4 * i + 3))};
  };
  for (int64_t row = 0; row != kept->getNumElements() / length; ++row) {
    std::vector<Box> chosen;
    int64_t candidates = std::min(length, x[1]->getInt(row));
    for (int64_t i = 0; i < candidates && int64_t(chosen.size()) < limit; ++i) {
      Box box = boxAt(row * length + i);
      if (llvm::any_of(chosen, [&](const Box &other) { return overlap(box, other, threshold); }))
        continue;
      chosen.push_back(box);
      kept->setInt(row * length + i, 1);
    }
  }
  return result(std::move(*kept));
}
