// ptc check: can this model be compiled? Each node with what is in its way, all at once; nothing is generated.
#include "cli/CompileSession.h"
#include "cli/Verb.h"
#include "compiler/CheckModel.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include <map>

using namespace llvm;

namespace ptc {

namespace {
struct CheckOptions {
  CompileOptions compile;
  bool nodes = false, json = false;
};
} // namespace

static std::string operatorOf(const ModelNode &node) {
  return node.domain.empty() ? node.op : node.domain + "." + node.op;
}

static std::string reasonOf(const CheckedNode &node) {
  if (node.state == CheckedNode::Refused)
    return node.code + ": " + node.reason;
  return node.state == CheckedNode::Behind ? "needs '" + node.cause + "'" : "";
}

static void printNodes(raw_ostream &os, const ModelReport &report) {
  size_t widest = 4;
  for (const CheckedNode &node : report.nodes)
    widest = std::max(widest, nameOf(node.node).size());
  widest = std::min<size_t>(widest, 60);
  for (const CheckedNode &node : report.nodes) {
    os << left_justify(nameOf(node.node), widest + 2)
       << left_justify(operatorOf(node.node) + " " + std::to_string(node.node.version), 32)
       << left_justify(nameOf(node.state), 10);
    os << reasonOf(node) << '\n';
    for (const std::string &help : node.helps)
      os << std::string(widest + 44, ' ') << "help: " << help << '\n';
  }
}

/// By operator, where one of its nodes is not supported; then the sums.
static void printSummary(raw_ostream &os, StringRef model, const ModelReport &report) {
  std::map<std::string, std::pair<size_t, size_t>> operators; // nodes, refused ones
  for (const CheckedNode &node : report.nodes) {
    auto &[all, refused] = operators[operatorOf(node.node)];
    ++all;
    refused += node.state == CheckedNode::Refused;
  }
  for (const auto &[name, counts] : operators)
    if (counts.second)
      os << model << ": " << name << ": " << counts.second << " of " << counts.first << " nodes refused\n";
  os << model << ": cannot be compiled: of " << report.nodes.size() << " nodes " << report.count(CheckedNode::Supported)
     << " supported, " << report.count(CheckedNode::Refused) << " refused, " << report.count(CheckedNode::Behind)
     << " behind those";
  if (size_t unchecked = report.count(CheckedNode::Unchecked))
    os << ", " << unchecked << " unchecked";
  os << '\n';
}

static json::Value describe(const CheckedNode &node) {
  json::Object object{{"name", json::fixUTF8(nameOf(node.node))},
                      {"operator", json::fixUTF8(node.node.op)},
                      {"domain", node.node.domain.empty() ? "ai.onnx" : json::fixUTF8(node.node.domain)},
                      {"version", node.node.version},
                      {"state", nameOf(node.state)}};
  if (node.state == CheckedNode::Refused) {
    object["code"] = node.code;
    object["reason"] = json::fixUTF8(node.reason);
    json::Array helps;
    for (const std::string &help : node.helps)
      helps.push_back(json::fixUTF8(help));
    object["helps"] = std::move(helps);
  }
  if (node.state == CheckedNode::Behind)
    object["cause"] = json::fixUTF8(node.cause);
  return object;
}

static void printJson(raw_ostream &os, const CheckOptions &options, const ModelReport &report) {
  json::Array nodes;
  for (const CheckedNode &node : report.nodes)
    nodes.push_back(describe(node));
  json::Object summary;
  for (auto state : {CheckedNode::Supported, CheckedNode::Refused, CheckedNode::Behind, CheckedNode::Unchecked})
    summary[nameOf(state)] = int64_t(report.count(state));
  os << formatv("{0:2}\n", json::Value(json::Object{{"model", json::fixUTF8(options.compile.model)},
                                                    {"target", options.compile.target},
                                                    {"can_be_compiled", report.isSupported},
                                                    {"summary", std::move(summary)},
                                                    {"nodes", std::move(nodes)}}));
}

static Error check(Session &session, const CheckOptions &options) {
  CompileHooks hooks = hooksOf(session, "check");
  hooks.findsAll = true;
  Compilation compilation(options.compile, hooks);
  Expected<ModelReport> report = checkModel(compilation);
  if (!report)
    return report.takeError();
  if (options.json)
    printJson(session.out, options, *report);
  else if (options.nodes)
    printNodes(session.out, *report);
  if (report->isSupported) {
    if (!options.json)
      session.say(options.compile.model + ": can be compiled");
    return Error::success();
  }
  // Of one node the message has said all.
  size_t stopped = report->count(CheckedNode::Refused) + report->count(CheckedNode::Behind);
  bool isText = !options.json && session.common.diagnostics == "text" && !session.common.quiet;
  if (isText && (options.nodes || stopped > 1) && !report->nodes.empty())
    printSummary(session.out, options.compile.model, *report);
  return reported();
}

Action declareCheck(CLI::App &app) {
  auto options = std::make_shared<CheckOptions>();
  addModelOption(app, options->compile);
  app.add_flag("--nodes", options->nodes, "print every node with its state, the reason and the way out");
  app.add_flag("--json", options->json, "print all of that as JSON");
  addCompileOptions(app, options->compile, {"Target", "Optimise", "Shapes", "Operators", "Running"});
  return [options](Session &session) { return check(session, *options); };
}

} // namespace ptc
