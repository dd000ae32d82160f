// The arena against what it was. The sums say that something happened; the buffers, known by the node whose result they
// hold, say to what: one is kept longer, is not reused in place any more, lies unaligned, is larger, or is new.
#include "compiler/gate/Compare.h"
#include "llvm/ADT/STLExtras.h"
#include <set>

using namespace llvm;

namespace ptc::gate {

using artifact::BufferEntry;

static Finding about(const BufferEntry &buffer, FindingKind kind, Direction direction, StringRef what) {
  return {.kind = kind,
          .direction = direction,
          .subject = "buffer of '" + buffer.node + "'",
          .nodes = {buffer.node},
          .what = what.str()};
}

static void compareLife(const BufferEntry &before, const BufferEntry &after, std::vector<Finding> &findings) {
  bool wasKept = before.keptUntil != before.lastRead, isKept = after.keptUntil != after.lastRead;
  if (wasKept != isKept || (isKept && before.keptFor != after.keptFor)) {
    Direction direction = isKept && !wasKept   ? Direction::Regression
                          : wasKept && !isKept ? Direction::Improvement
                                               : Direction::Change;
    Finding finding = about(after, FindingKind::LiveRange, direction, "reserved in the arena up to the launch of");
    finding.before = "'" + before.keptFor + "'";
    finding.after = "'" + after.keptFor + "'";
    if (isKept)
      finding.reason = "it is read for the last time by '" + after.lastReadBy + "'";
    findings.push_back(std::move(finding));
  } else if (before.lastReadBy != after.lastReadBy) {
    Finding finding = about(after, FindingKind::LiveRange, Direction::Change, "read for the last time by");
    finding.before = "'" + before.lastReadBy + "'";
    finding.after = "'" + after.lastReadBy + "'";
    findings.push_back(std::move(finding));
  }
  if (before.reuses != after.reuses) {
    Direction direction = after.reuses.empty()    ? Direction::Regression
                          : before.reuses.empty() ? Direction::Improvement
                                                  : Direction::Change;
    Finding finding = about(after, FindingKind::LiveRange, direction, "written in place of the buffer of");
    finding.before = before.reuses.empty() ? "none" : "'" + before.reuses + "'";
    finding.after = after.reuses.empty() ? "none" : "'" + after.reuses + "'";
    findings.push_back(std::move(finding));
  }
}

static void compareBuffer(const BufferEntry &before, const BufferEntry &after, std::vector<Finding> &findings) {
  int64_t was = std::min(before.alignment, arenaAlignment), now = std::min(after.alignment, arenaAlignment);
  if (was != now) {
    findings.push_back(about(after, FindingKind::Alignment, now < was ? Direction::Regression : Direction::Improvement,
                             "alignment of its offset in bytes"));
    findings.back().before = std::to_string(was);
    findings.back().after = std::to_string(now);
    if (now < was)
      findings.back().reason =
          "vectors straddle cache lines where it is not a multiple of " + std::to_string(arenaAlignment);
  }
  size_t first = findings.size();
  compareAmounts(FindingKind::PeakMemory, "buffer of '" + after.node + "'", "bytes", before.bytes, after.bytes,
                 findings);
  if (findings.size() > first)
    findings.back().nodes = {after.node};
  compareLife(before, after, findings);
}

static void compareBuffers(const Baseline &before, const Baseline &after, std::vector<Finding> &findings) {
  std::set<std::string> explained;
  for (const Finding &finding : findings)
    if (finding.kind == FindingKind::Fusion || finding.kind == FindingKind::Kernel)
      explained.insert(finding.nodes.begin(), finding.nodes.end());
  auto isExplained = [&](const BufferEntry &buffer) {
    return explained.count(buffer.node) || explained.count(buffer.writtenBy);
  };
  std::vector<const BufferEntry *> open;
  for (const BufferEntry &buffer : before.buffers)
    open.push_back(&buffer);
  for (const BufferEntry &buffer : after.buffers) {
    auto found = find_if(open, [&](const BufferEntry *other) {
      return other->function == buffer.function && other->variant == buffer.variant && other->node == buffer.node &&
             other->writtenBy == buffer.writtenBy;
    });
    if (found != open.end()) {
      compareBuffer(**found, buffer, findings);
      open.erase(found);
    } else if (!isExplained(buffer)) {
      findings.push_back(about(buffer, FindingKind::PeakMemory, Direction::Regression, "a buffer that was not there"));
      findings.back().after = std::to_string(buffer.bytes.atHint) + " bytes";
    }
  }
  for (const BufferEntry *buffer : open)
    if (!isExplained(*buffer)) {
      findings.push_back(about(*buffer, FindingKind::PeakMemory, Direction::Improvement, "a buffer that is gone"));
      findings.back().before = std::to_string(buffer->bytes.atHint) + " bytes";
    }
}

void compareMemory(const Baseline &before, const Baseline &after, std::vector<Finding> &findings) {
  for (const artifact::MemoryEntry &memory : after.memory) {
    std::string subject = "function " + memory.function + (memory.variant.empty() ? "" : " for " + memory.variant);
    auto old = find_if(before.memory, [&](const auto &entry) {
      return entry.function == memory.function && entry.variant == memory.variant;
    });
    if (old == before.memory.end()) {
      findings.push_back({.kind = FindingKind::PeakMemory,
                          .direction = Direction::Change,
                          .subject = subject,
                          .what = "bytes of the arena",
                          .before = "not recorded",
                          .after = std::to_string(memory.peak.atHint)});
      continue;
    }
    compareAmounts(FindingKind::PeakMemory, subject, "bytes of the arena", old->peak, memory.peak, findings);
    compareAmounts(FindingKind::PeakMemory, subject, "bytes of the largest live set", old->lowerBound,
                   memory.lowerBound, findings);
    if (old->hostSyncs != memory.hostSyncs)
      findings.push_back(findingOf(FindingKind::HostSync, subject, "places where the host waits for a value",
                                   old->hostSyncs, memory.hostSyncs));
  }
  compareBuffers(before, after, findings);
}

} // namespace ptc::gate
