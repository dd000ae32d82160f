#include "compiler/Capabilities.h"
#include "lowering/decomp/OnnxOps.h"
#include <algorithm>
#include <map>

namespace ptc {

std::vector<SupportedOperator> supportedOperators() {
  std::map<std::pair<llvm::StringRef, llvm::StringRef>, int64_t> oldest;
  for (const decomp::OnnxOp &op : decomp::getOnnxOps()) {
    auto [entry, isNew] = oldest.try_emplace({op.domain, op.name}, op.since);
    entry->second = std::min(entry->second, op.since);
  }
  std::vector<SupportedOperator> operators;
  for (const auto &[name, since] : oldest)
    operators.push_back({name.first, name.second, since});
  return operators;
}

} // namespace ptc
