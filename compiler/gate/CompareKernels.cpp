//===- CompareKernels.cpp - launches matched by the nodes they hold -------===//
//
// A kernel's name ends in a digest of its content, so any change of code would make every kernel a new one. What stays
// is what the user wrote: nodes. Each launch is therefore known by the set of nodes that are fused in it.
//
// 1. Launches with equal sets are pairs, those of one work and kind first, in program order. Their kernels are compared
// fact by
//    fact, each pair of kernels once.
// 2. What is left has been cut otherwise. Launches, old and new, that share a node are one group (a connected
// component),
//    and each group is one finding: more launches than before are a lost fusion, fewer a gained one, equally many
//    another cut. New launches in a group without an old one compute what no kernel computed alone (a copy), and the
//    reverse.
//
// A lost fusion's reason is the scheduler's own: its refusals name two nodes, and the ones told are those whose nodes
// stood in one old launch and stand in two new ones.
//
// Cost: sorting, and a pass over all nodes.
//
//===----------------------------------------------------------------------===//
#include "compiler/gate/Compare.h"
#include "llvm/ADT/IntEqClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <map>
#include <set>

using namespace llvm;

namespace ptc::gate {

namespace {
struct Launch {
  const artifact::KernelEntry *kernel;
  std::vector<std::string> nodes; // as recorded
  std::set<std::string> key;
  bool isNew, isMatched = false;
};
using Group = std::vector<const Launch *>;
} // namespace

static std::vector<Launch> launchesOf(const Baseline &baseline, bool isNew) {
  std::vector<Launch> launches;
  for (const artifact::KernelEntry &kernel : baseline.kernels)
    for (const std::vector<std::string> &nodes : kernel.launches) {
      std::vector<std::string> names = nodes;
      if (names.empty()) // of no node of the user's
        names.push_back(kernel.name);
      launches.push_back({&kernel, names, {names.begin(), names.end()}, isNew});
    }
  return launches;
}

static std::string subjectOf(const artifact::KernelEntry &kernel) {
  return "kernel " + kernel.name + (kernel.variant.empty() ? "" : " for " + kernel.variant);
}

//===----------------------------------------------------------------------===//
// Pairs
//===----------------------------------------------------------------------===//

static void compareFacts(const artifact::KernelEntry &before, const artifact::KernelEntry &after,
                         const Tolerances &tolerances, std::vector<Finding> &findings) {
  std::string subject = subjectOf(after);
  if (before.kind != after.kind)
    findings.push_back({.kind = FindingKind::Kernel,
                        .subject = subject,
                        .what = "kind of its nodes",
                        .before = before.kind,
                        .after = after.kind});
  compareAmounts(FindingKind::Work, subject, "floating-point operations", before.flops, after.flops, findings);
  compareAmounts(FindingKind::Traffic, subject, "bytes read", before.bytesRead, after.bytesRead, findings);
  compareAmounts(FindingKind::Traffic, subject, "bytes written", before.bytesWritten, after.bytesWritten, findings);
  if (before.weightBytesRead != after.weightBytesRead)
    findings.push_back(findingOf(FindingKind::Weights, subject, "bytes of weights read at the hint",
                                 before.weightBytesRead, after.weightBytesRead));
  compareCode(before, after, tolerances, findings);
}

namespace {
using KernelPair = std::pair<const artifact::KernelEntry *, const artifact::KernelEntry *>;
/// Pairs of kernels with the nodes of their first pair of launches, and how many such pairs there are.
struct Pairing {
  std::vector<std::string> nodes;
  unsigned launches = 0;
};
} // namespace

/// How much two kernels of the same nodes have in common: a copy has its reader's nodes, and not its work.
enum class Likeness { None, Kind, Work };

static bool areAlike(const artifact::KernelEntry &a, const artifact::KernelEntry &b, Likeness wanted) {
  bool isKind = a.kind == b.kind; // the variants are equal
  bool isWork = isKind && a.flops.text == b.flops.text && a.bytesRead.text == b.bytesRead.text &&
                a.bytesWritten.text == b.bytesWritten.text;
  return wanted == Likeness::None || (wanted == Likeness::Kind ? isKind : isWork);
}

static MapVector<KernelPair, Pairing, std::map<KernelPair, unsigned>> pairEqual(std::vector<Launch> &before,
                                                                                std::vector<Launch> &after) {
  MapVector<KernelPair, Pairing, std::map<KernelPair, unsigned>> pairs;
  for (Likeness wanted : {Likeness::Work, Likeness::Kind, Likeness::None}) {
    std::map<std::pair<std::string, std::set<std::string>>, std::vector<Launch *>> open;
    for (Launch &launch : before)
      if (!launch.isMatched)
        open[{launch.kernel->variant, launch.key}].push_back(&launch);
    for (Launch &launch : after) {
      auto found = open.find({launch.kernel->variant, launch.key});
      if (launch.isMatched || found == open.end())
        continue;
      auto partner = find_if(found->second, [&](const Launch *other) {
        return !other->isMatched && areAlike(*other->kernel, *launch.kernel, wanted);
      });
      if (partner == found->second.end())
        continue;
      (*partner)->isMatched = launch.isMatched = true;
      Pairing &pairing = pairs[{(*partner)->kernel, launch.kernel}];
      if (!pairing.launches++)
        pairing.nodes = launch.nodes;
    }
  }
  return pairs;
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

static std::vector<Group> groupRest(ArrayRef<Launch> before, ArrayRef<Launch> after) {
  SmallVector<const Launch *> rest;
  for (const Launch &launch : concat<const Launch>(before, after))
    if (!launch.isMatched)
      rest.push_back(&launch);
  IntEqClasses classes(unsigned(rest.size()));
  std::map<std::pair<std::string, std::string>, unsigned> holder; // by variant and node
  for (auto [number, launch] : llvm::enumerate(rest))
    for (const std::string &node : launch->key) {
      auto [found, isFirst] = holder.try_emplace({launch->kernel->variant, node}, unsigned(number));
      if (!isFirst)
        classes.join(found->second, unsigned(number));
    }
  classes.compress();
  std::vector<Group> groups(classes.getNumClasses());
  for (auto [number, launch] : llvm::enumerate(rest))
    groups[classes[unsigned(number)]].push_back(launch);
  return groups;
}

static bool isCut(const Group &group, const std::string &a, const std::string &b) {
  auto holdsBoth = [&](const Launch *launch) { return launch->key.count(a) && launch->key.count(b); };
  return any_of(group, [&](const Launch *launch) { return !launch->isNew && holdsBoth(launch); }) &&
         none_of(group, [&](const Launch *launch) { return launch->isNew && holdsBoth(launch); });
}

static bool isRefused(const Baseline &baseline, const std::pair<std::string, std::string> &pair) {
  return any_of(baseline.refusals, [&](const Refusal &refusal) { return is_contained(refusal.pairs, pair); });
}

/// Whether a refusal is about a group: it names two nodes that were together, or, where all launches are new, one of
/// their nodes, and was not there before.
static bool concerns(const std::pair<std::string, std::string> &pair, const Group &group, const Baseline &before) {
  if (any_of(group, [](const Launch *launch) { return !launch->isNew; }))
    return isCut(group, pair.first, pair.second);
  auto holdsOne = [&](const Launch *launch) { return launch->key.count(pair.first) || launch->key.count(pair.second); };
  return any_of(group, holdsOne) && !isRefused(before, pair);
}

/// The reasons of refusals that fit a group, and the pairs that they are about.
static void explain(const Group &group, const Baseline &before, const Baseline &after, Finding &finding) {
  SmallVector<std::string> reasons, pairs;
  for (const Refusal &refusal : after.refusals)
    for (const auto &pair : refusal.pairs) {
      if (!concerns(pair, group, before))
        continue;
      const auto &[producer, consumer] = pair;
      if (!is_contained(reasons, refusal.reason))
        reasons.push_back(refusal.reason);
      if (pairs.size() < 3)
        pairs.push_back("'" + consumer + "' is not fused with its producer '" + producer + "'");
    }
  finding.reason = reasons.empty() ? "no refusal of the scheduler is about these nodes" : join(reasons, "; ");
  finding.detail = join(pairs, ", ");
}

static std::string listLaunches(const Group &group, bool isNew) {
  SmallVector<std::string> parts;
  for (const Launch *launch : group)
    if (launch->isNew == isNew)
      parts.push_back("[" + join(ArrayRef(launch->nodes).take_front(4), ", ") +
                      (launch->nodes.size() > 4 ? ", ..." : "") + "]");
  return join(parts, " ");
}

static Finding findingOfGroup(const Group &group, const Baseline &before, const Baseline &after) {
  auto isNew = [](const Launch *launch) { return launch->isNew; };
  unsigned now = unsigned(count_if(group, isNew)), was = unsigned(group.size()) - now;
  const Launch *first = group.front(); // an old one, if there is any
  Finding finding{.kind = was && now ? FindingKind::Fusion : FindingKind::Kernel,
                  .direction = now > was   ? Direction::Regression
                               : now < was ? Direction::Improvement
                                           : Direction::Change,
                  .subject = subjectOf(*first->kernel),
                  .nodes = first->nodes,
                  .what = now > was   ? (was ? "fusion lost, kernels for its nodes" : "a launch that was not there")
                          : now < was ? (now ? "fusion gained, kernels for its nodes" : "a launch that is gone")
                                      : "other nodes share a kernel"};
  for (const Launch *launch : group)
    for (const std::string &node : launch->nodes)
      if (!is_contained(finding.nodes, node))
        finding.nodes.push_back(node);
  if (was && now && was != now) {
    finding.before = std::to_string(was);
    finding.after = std::to_string(now);
  }
  if (now >= was)
    explain(group, before, after, finding);
  if (was && now)
    finding.detail += (finding.detail.empty() ? "now " : "; now ") + listLaunches(group, true) + ", was " +
                      listLaunches(group, false);
  return finding;
}

static int64_t sumOf(const Baseline &baseline, function_ref<int64_t(const artifact::KernelEntry &)> amount) {
  int64_t sum = 0;
  for (const artifact::KernelEntry &kernel : baseline.kernels)
    sum += amount(kernel) * int64_t(kernel.launches.size());
  return sum;
}

static void compareSums(const Baseline &before, const Baseline &after, std::vector<Finding> &findings) {
  struct Sum {
    FindingKind kind;
    const char *what;
    int64_t (*of)(const artifact::KernelEntry &);
  };
  using Kernel = artifact::KernelEntry;
  static constexpr Sum sums[] = {
      {FindingKind::Kernel, "launches in all", [](const Kernel &) { return int64_t(1); }},
      {FindingKind::Work, "floating-point operations in all at the hint",
       [](const Kernel &k) { return k.flops.atHint; }},
      {FindingKind::Traffic, "bytes read in all at the hint", [](const Kernel &k) { return k.bytesRead.atHint; }},
      {FindingKind::Traffic, "bytes written in all at the hint",
       [](const Kernel &k) { return k.bytesWritten.atHint; }}};
  for (const Sum &sum : sums) {
    int64_t was = sumOf(before, sum.of), now = sumOf(after, sum.of);
    if (was != now)
      findings.push_back(findingOf(sum.kind, "model", sum.what, was, now));
  }
}

void compareKernels(const Baseline &before, const Baseline &after, std::vector<Finding> &findings) {
  std::vector<Launch> was = launchesOf(before, false), now = launchesOf(after, true);
  auto pairs = pairEqual(was, now);
  for (const Group &group : groupRest(was, now))
    findings.push_back(findingOfGroup(group, before, after));
  compareSums(before, after, findings);
  for (auto &[pair, pairing] : pairs) {
    std::vector<Finding> own;
    compareFacts(*pair.first, *pair.second, before.tolerances, own);
    for (Finding &finding : own) {
      finding.nodes = pairing.nodes;
      finding.alike = pairing.launches - 1;
      findings.push_back(std::move(finding));
    }
  }
}

} // namespace ptc::gate
