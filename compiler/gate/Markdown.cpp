// `gate diff`: two baselines as a page for a review. Totals first, then what changed, lost fusions with their reason on
// top.
#include "compiler/gate/Report.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace ptc::gate {

/// Names come from models: what Markdown would read as its own is taken out.
static std::string code(StringRef text) {
  std::string result = "`";
  for (char c : text)
    result += c == '`' ? '\'' : c == '\n' ? ' ' : c;
  return result + "`";
}

static std::string plain(StringRef text) {
  std::string result;
  for (char c : text) {
    if (StringRef("\\`*_{}[]<>|#").contains(c))
      result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result;
}

static void writeTotal(raw_ostream &os, StringRef what, int64_t before, int64_t after) {
  os << "| " << what << " | " << before << " | " << after << " | ";
  if (before == after)
    os << "equal";
  else
    os << (after > before ? "+" : "") << after - before;
  os << " |\n";
}

static void writeTotals(raw_ostream &os, const Baseline &before, const Baseline &after) {
  auto sum = [](const Baseline &baseline, function_ref<int64_t(const artifact::KernelEntry &)> of) {
    int64_t total = 0;
    for (const artifact::KernelEntry &kernel : baseline.kernels)
      total += of(kernel);
    return total;
  };
  auto total = [&](StringRef what, function_ref<int64_t(const artifact::KernelEntry &)> of) {
    writeTotal(os, what, sum(before, of), sum(after, of));
  };
  using Kernel = artifact::KernelEntry;
  os << "| | before | after | |\n|---|--:|--:|--:|\n";
  total("kernels", [](const Kernel &) { return 1; });
  total("launches", [](const Kernel &k) { return int64_t(k.launches.size()); });
  total("floating-point operations", [](const Kernel &k) { return k.flops.atHint * int64_t(k.launches.size()); });
  total("bytes read", [](const Kernel &k) { return k.bytesRead.atHint * int64_t(k.launches.size()); });
  total("bytes written", [](const Kernel &k) { return k.bytesWritten.atHint * int64_t(k.launches.size()); });
  for (const std::string &level : after.levels)
    total("bytes of code for " + level, [&](const Kernel &k) {
      auto found = find_if(k.code, [&](const auto &entry) { return entry.level == level; });
      return found == k.code.end() ? 0 : found->bytes;
    });
  for (const artifact::MemoryEntry &memory : after.memory)
    for (const artifact::MemoryEntry &old : before.memory)
      if (old.function == memory.function && old.variant == memory.variant)
        writeTotal(
            os, "bytes of the arena of " + memory.function + (memory.variant.empty() ? "" : " for " + memory.variant),
            old.peak.atHint, memory.peak.atHint);
}

void writeMarkdown(raw_ostream &os, const Baseline &before, const Baseline &after, ArrayRef<Finding> findings) {
  os << "## " << code(after.model) << " for " << after.target << "\n\n";
  if (before.modelDigest != after.modelDigest)
    os << "The models differ: " << code(before.model) << " and " << code(after.model) << ".\n\n";
  if (before.flags != after.flags) {
    os << "The flags differ:";
    for (const auto &[what, flags] : {std::pair("before", &before.flags), {"after", &after.flags}}) {
      os << ' ' << what;
      for (const std::string &flag : *flags)
        os << ' ' << code(flag);
      os << (flags->empty() ? " none" : "") << (flags == &before.flags ? "," : ".\n\n");
    }
  }
  writeTotals(os, before, after);
  for (Direction direction : {Direction::Regression, Direction::Change, Direction::Improvement}) {
    bool isFirst = true;
    for (const Finding &finding : findings) {
      if (finding.direction != direction)
        continue;
      if (std::exchange(isFirst, false))
        os << "\n### "
           << (direction == Direction::Regression    ? "Regressions"
               : direction == Direction::Improvement ? "Improvements"
                                                     : "Changes")
           << "\n\n";
      os << "- **" << getRow(finding.kind).name << "** " << plain(describeSubject(finding)) << ": "
         << plain(describe(finding)) << (finding.waiver.empty() ? "" : " (waived: " + plain(finding.waiver) + ")")
         << '\n';
    }
  }
  if (findings.empty())
    os << "\nNothing differs.\n";
}

} // namespace ptc::gate
