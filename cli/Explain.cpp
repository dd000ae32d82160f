// ptc explain: how a model's nodes were lowered and fused, and why not otherwise; also what a diagnostic's code means.
#include "cli/CompileSession.h"
#include "cli/Verb.h"
#include "compiler/DiagnosticAdvice.h"
#include "ir/loop/Loop.h"
#include "ir/prim/Variants.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;

namespace ptc {

namespace {
struct ExplainOptions {
  CompileOptions compile;
  std::string node;
};
} // namespace

static void printCode(raw_ostream &os, DiagId id) {
  const DiagRow &row = getDiagRow(id);
  const DiagnosticAdvice &advice = getAdvice(id);
  os << getCode(id) << " (" << row.name << "): " << describe(row.exitClass) << "\n  " << row.format << "\n  "
     << advice.meaning << "\n  help: " << advice.remedy << '\n';
}

static Error explainCode(Session &session, StringRef code) {
  std::optional<DiagId> id = parseCode(("[" + code.upper() + "]"));
  if (!id)
    return exitError(exitUsage, "there is no diagnostic " + code, "`ptc explain codes` lists them");
  printCode(session.out, *id);
  session.out << "  {0}, {1}, ... stand for what was found in the model\n";
  return Error::success();
}

static Error listCodes(Session &session) {
  for (auto [i, row] : llvm::enumerate(getDiagRows()))
    session.out << getCode(static_cast<DiagId>(i)) << "  " << row.format << '\n';
  return Error::success();
}

/// The user's nodes that a location stems from.
static std::vector<std::string> nodesOf(mlir::Location location) {
  std::vector<std::string> names;
  location->walk([&](mlir::Location part) {
    if (std::optional<NodeLocation> node = describeLocation(part)) {
      std::string name = formatLocation(part);
      if (!is_contained(names, name))
        names.push_back(name);
    }
    return mlir::WalkResult::advance();
  });
  return names;
}

static bool matches(StringRef text, StringRef node) { return node.empty() || text.contains(node); }

static Error explainModel(Session &session, const ExplainOptions &options) {
  if (Error error = requireOneTarget(options.compile, "`ptc explain`"))
    return error;
  session.diagnostics.showRemarks(true);
  bool hasMatch = false;
  StringSet<> told; // fusion tries a pair again after each change
  session.diagnostics.onRemark = [&](const DiagnosticRecord &remark) {
    std::string text;
    raw_string_ostream os(text);
    printText(os, remark, false);
    std::string node = remark.node.empty() ? remark.output : remark.node;
    bool isAsked = matches(node, options.node);
    hasMatch |= isAsked;
    if (isAsked && told.insert(text).second)
      session.out << text;
  };
  CompileOptions compile = options.compile;
  compile.remarks = true;
  CompileHooks hooks = hooksOf(session, "explain");
  Compilation compilation(compile, hooks);
  if (Error error = compilation.runTo(Phase::PlanMemory))
    return error;
  for (auto program : compilation.getModule().getOps<loop::ProgramOp>()) {
    unsigned index = 0;
    std::string variant = prim::getVariantName(program);
    program.walk([&](loop::LaunchOp launch) {
      std::string nodes = join(nodesOf(launch.getLoc()), ", ");
      if (matches(nodes, options.node)) {
        hasMatch = true;
        if (!variant.empty())
          session.out << "variant " << std::exchange(variant, "") << ":\n";
        session.out << "launch " << index << ": " << launch.getKernel() << ": " << nodes << '\n';
      }
      ++index;
    });
  }
  if (!hasMatch && !options.node.empty())
    return exitError(exitUsage, "no launch and no remark is about a node whose name contains '" + options.node + "'",
                     "without --node all are listed; a node that was folded away is in none");
  return Error::success();
}

Action declareExplain(CLI::App &app) {
  auto options = std::make_shared<ExplainOptions>();
  app.add_option("subject", options->compile.model, "an ONNX file, the code of a diagnostic, or `codes`: all of them")
      ->required()
      ->type_name("MODEL.onnx|CODE|codes");
  app.add_option("--node", options->node, "only what concerns nodes whose name contains this")->type_name("NAME");
  addCompileOptions(app, options->compile, {"Target", "Optimise", "Shapes", "Operators", "Running"});
  return [options](Session &session) {
    StringRef subject = options->compile.model;
    if (subject == "codes")
      return listCodes(session);
    bool isCode = subject.starts_with_insensitive("PTC") && subject.size() == 7 && all_of(subject.substr(3), isDigit);
    return isCode ? explainCode(session, subject) : explainModel(session, *options);
  };
}

} // namespace ptc
