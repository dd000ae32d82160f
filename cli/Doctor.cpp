// ptc doctor: what this machine has of what ptc and its libraries use, and what to do about the rest.
#include "cli/Verb.h"
#include "compiler/Machine.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace llvm;

namespace ptc {

static StringRef word(Finding::State state) {
  switch (state) {
  case Finding::State::Ok:
    return "ok";
  case Finding::State::Absent:
    return "absent";
  case Finding::State::Missing:
    return "missing";
  }
  llvm_unreachable("all states have a word");
}

/// The lines of a finding stand below each other.
static void print(raw_ostream &os, const Finding &finding) {
  StringRef head = word(finding.state), subject = finding.subject;
  SmallVector<StringRef> lines;
  StringRef(finding.found).split(lines, '\n');
  for (StringRef line : lines) {
    os << left_justify(head, 9) << left_justify(subject, 18) << line << '\n';
    head = subject = "";
  }
  if (!finding.help.empty())
    os << left_justify("", 27) << "help: " << finding.help << '\n';
}

static json::Value describe(const Finding &finding) {
  json::Object row{{"subject", finding.subject}, {"state", word(finding.state)}, {"found", finding.found}};
  if (!finding.help.empty())
    row["help"] = finding.help;
  return row;
}

static Error examine(Session &session, bool json) {
  std::vector<Finding> findings = examineMachine();
  auto missing = find_if(findings, [](const Finding &f) { return f.state == Finding::State::Missing; });
  bool isReady = missing == findings.end();
  if (json)
    session.out << formatv(
        "{0:2}\n",
        json::Value(json::Object{{"ready", isReady}, {"findings", json::Array(map_range(findings, describe))}}));
  else
    for (const Finding &finding : findings)
      print(session.out, finding);
  if (!isReady)
    return exitError(exitTarget, "this machine misses something that libraries for its CPU need: " + missing->subject,
                     missing->help);
  if (!json)
    session.out << "libraries can be made for this machine's CPU, and run on it\n";
  return Error::success();
}

Action declareDoctor(CLI::App &app) {
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "print JSON");
  return [json](Session &session) { return examine(session, *json); };
}

} // namespace ptc
