#include "compiler/CheckModel.h"
#include "compiler/CustomOps.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace ptc {

StringRef nameOf(CheckedNode::State state) {
  switch (state) {
  case CheckedNode::Supported:
    return "supported";
  case CheckedNode::Refused:
    return "refused";
  case CheckedNode::Behind:
    return "behind";
  case CheckedNode::Unchecked:
    return "unchecked";
  }
  return "";
}

std::string nameOf(const ModelNode &node) {
  if (!node.name.empty())
    return node.name;
  auto output = llvm::find_if(node.outputs, [](const std::string &name) { return !name.empty(); });
  return output == node.outputs.end() ? node.op : *output;
}

size_t ModelReport::count(CheckedNode::State state) const {
  return llvm::count_if(nodes, [&](const CheckedNode &node) { return node.state == state; });
}

static bool isAbout(const DiagnosticRecord &record, const ModelNode &node) {
  // A node inside a function that the node calls: its name is a path.
  if (!nameOf(node).empty() && StringRef(record.node).starts_with(nameOf(node) + "/"))
    return true;
  auto output = llvm::find_if(node.outputs, [](const std::string &name) { return !name.empty(); });
  bool isOutput = record.output.empty() || (output != node.outputs.end() && *output == record.output);
  return record.op == node.op && record.node == node.name && isOutput;
}

static void refuse(CheckedNode &node, const DiagnosticRecord &record) {
  node.state = CheckedNode::Refused;
  node.code = record.code;
  node.reason = record.message;
  node.helps = record.helps;
}

/// The record of the operator that a node shares with the one at which it was reported.
static const DiagnosticRecord *findOperatorRecord(ArrayRef<DiagnosticRecord> records, const ModelNode &node) {
  for (const DiagnosticRecord &record : records)
    if (record.name == "UnsupportedOperator" && record.op == node.op)
      return &record;
  return nullptr;
}

static void markRefused(ModelReport &report, ArrayRef<DiagnosticRecord> records) {
  bool isWholeModel = false; // something is wrong that is no node's
  for (const DiagnosticRecord &record : records) {
    if (record.severity != DiagnosticRecord::Severity::Error)
      continue;
    auto node = llvm::find_if(report.nodes, [&](const CheckedNode &n) { return isAbout(record, n.node); });
    if (node != report.nodes.end())
      refuse(*node, record);
    else
      isWholeModel = true;
  }
  for (CheckedNode &node : report.nodes) {
    if (node.state == CheckedNode::Supported && !node.node.isImported)
      if (const DiagnosticRecord *record = findOperatorRecord(records, node.node))
        refuse(node, *record);
    if (node.state == CheckedNode::Supported && isWholeModel)
      node.state = CheckedNode::Unchecked;
  }
}

/// What the target has no code for: the last records, one for each list of names.
static void markKernels(ModelReport &report, ArrayRef<DiagnosticRecord> records,
                        ArrayRef<std::vector<std::string>> refused) {
  for (auto [record, names] : llvm::zip_equal(records.take_back(refused.size()), refused))
    for (CheckedNode &node : report.nodes)
      if (node.state == CheckedNode::Supported && is_contained(names, nameOf(node.node)))
        refuse(node, record);
}

/// Producers stand before what needs them, but for those in a node's own graphs.
static void markBehind(ModelReport &report) {
  bool hasChanged = true;
  while (hasChanged) {
    hasChanged = false;
    for (CheckedNode &node : report.nodes)
      for (size_t producer : node.node.producers) {
        const CheckedNode &needed = report.nodes[producer];
        bool isStopped = needed.state == CheckedNode::Refused || needed.state == CheckedNode::Behind;
        if (!isStopped || node.state == CheckedNode::Refused || node.state == CheckedNode::Behind)
          continue;
        node.state = CheckedNode::Behind;
        node.cause = needed.state == CheckedNode::Refused ? nameOf(needed.node) : needed.cause;
        hasChanged = true;
      }
  }
}

Expected<ModelReport> checkModel(Compilation &compilation) {
  std::vector<std::vector<std::string>> refused;
  Error error = compilation.runTo(Phase::PlanMemory);
  if (!error)
    error = compilation.checkKernels(&refused);
  ModelReport report;
  report.isSupported = !error;
  bool isReported = error.isA<ReportedError>();
  if (error && !isReported)
    return std::move(error);
  consumeError(std::move(error));
  std::vector<DiagnosticRecord> records = compilation.hooks.diagnostics.getRecords();
  Expected<std::vector<CustomOp>> customOps = openCustomOps(compilation.options.customOps);
  if (!customOps)
    return customOps.takeError();
  mlir::ScopedDiagnosticHandler silence(&compilation.getContext(), [](mlir::Diagnostic &) { return mlir::success(); });
  for (ModelNode &node : listNodes(compilation.getContext(), compilation.options.model, *customOps))
    report.nodes.push_back({.state = CheckedNode::Supported, .node = std::move(node)});
  if (report.isSupported)
    return report;
  markRefused(report, records);
  markKernels(report, records, refused);
  if (refused.empty()) // what a target lacks stops no other node
    markBehind(report);
  return report;
}

} // namespace ptc
