#include "ir/loop/Tuned.h"

using namespace mlir;

namespace ptc::loop {

static DictionaryAttr getDictionary(Operation *op) {
  auto kernel = dyn_cast<KernelOp>(op);
  if (!kernel)
    kernel = op->getParentOfType<KernelOp>();
  return kernel ? kernel->getAttrOfType<DictionaryAttr>(tunedAttr) : DictionaryAttr();
}

std::optional<int64_t> getTuned(Operation *op, StringRef name) {
  DictionaryAttr tuned = getDictionary(op);
  auto number = tuned ? tuned.getAs<IntegerAttr>(name) : IntegerAttr();
  return number ? std::optional(number.getInt()) : std::nullopt;
}

std::optional<int64_t> getTuned(Operation *op, StringRef name, StringRef level) {
  DictionaryAttr tuned = getDictionary(op);
  auto measured = tuned ? tuned.getAs<StringAttr>(tunedLevelAttr) : StringAttr();
  return measured && measured == level ? getTuned(op, name) : std::nullopt;
}

} // namespace ptc::loop
