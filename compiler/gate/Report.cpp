// Text and JSON reports, and what all forms share.
#include "compiler/gate/Report.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace ptc::gate {

namespace {
struct FormatRow {
  StringLiteral name;
  void (*write)(raw_ostream &, ArrayRef<CheckResult>, const ReportStyle &);
};
} // namespace

static constexpr FormatRow formats[] = {{"text", writeText},   {"json", writeJson},     {"junit", writeJunit},
                                        {"sarif", writeSarif}, {"github", writeGithub}, {"gitlab", writeGitlab}};

ArrayRef<StringLiteral> getFormats() {
  static constexpr StringLiteral names[] = {"text", "json", "junit", "sarif", "github", "gitlab"};
  return names;
}

void writeReport(raw_ostream &os, StringRef format, ArrayRef<CheckResult> results, const ReportStyle &style) {
  for (const FormatRow &row : formats)
    if (row.name == format)
      return row.write(os, results, style);
}

bool passes(const CheckResult &result, const ReportStyle &style) {
  return result.problem.empty() && result.verdict().passes(style.allowImprovements);
}

unsigned lineOf(const CheckResult &result, const Finding &finding) {
  auto [kind, named] = StringRef(finding.subject).split(' ');
  auto [name, variant] = named.split(" for "); // of functions and kernels with variants
  std::string node = finding.nodes.empty() ? "" : formatv("{0}", json::Value(finding.nodes.front())).str();
  StringRef field = getRow(finding.kind).tier == Tier::Numeric                                     ? "output"
                    : is_contained({FindingKind::PeakMemory, FindingKind::HostSync}, finding.kind) ? "host_syncs"
                                                                                                   : "name";
  std::string key = kind == "kernel"        ? "\"code\":"
                    : kind == "buffer"      ? "\"alignment\":"
                    : kind == "waiver"      ? "\"until\":"
                    : field == "host_syncs" ? formatv("\"function\":{0},\"host_syncs\":", json::Value(name)).str()
                                            : formatv("\"{0}\":{1}", field, json::Value(name)).str();
  for (auto [number, line] : llvm::enumerate(result.lines))
    if (StringRef(line).contains(key) && StringRef(line).contains(node) &&
        (variant.empty() || StringRef(line).contains("\"variant\":\"" + variant.str() + "\"")))
      return unsigned(number) + 1;
  return 1;
}

static std::string counted(unsigned count, StringRef noun) {
  return (Twine(count) + " " + noun + (count == 1 ? "" : "s")).str();
}

static std::string summarize(const CheckResult &result) {
  if (!result.problem.empty())
    return "not checked: " + result.problem;
  Verdict verdict = result.verdict();
  SmallVector<std::string> parts;
  if (verdict.regressions)
    parts.push_back(counted(verdict.regressions, "regression"));
  if (verdict.improvements)
    parts.push_back(counted(verdict.improvements, "improvement"));
  if (verdict.waived)
    parts.push_back(std::to_string(verdict.waived) + " waived");
  return parts.empty() ? "as recorded" : join(parts, ", ");
}

void writeText(raw_ostream &os, ArrayRef<CheckResult> results, const ReportStyle &style) {
  unsigned failed = 0;
  for (const CheckResult &result : results) {
    failed += !passes(result, style);
    os << result.baseline << ": " << summarize(result) << '\n';
    if (!result.help.empty())
      os << "  help: " << result.help << '\n';
    for (const Finding &finding : result.findings) {
      os << "  " << (finding.waiver.empty() ? getName(finding.direction) : "waived") << " ["
         << getRow(finding.kind).name << "] " << describeSubject(finding) << ": " << describe(finding) << '\n';
      if (!finding.waiver.empty())
        os << "    waiver: " << finding.waiver << '\n';
    }
  }
  if (results.size() > 1)
    os << counted(unsigned(results.size()), "baseline") << " checked, " << failed << " failed\n";
}

static json::Value toJson(const CheckResult &result, const Finding &finding) {
  json::Object object{{"alike", finding.alike},
                      {"direction", getName(finding.direction)},
                      {"finding", getRow(finding.kind).name},
                      {"line", lineOf(result, finding)},
                      {"message", describe(finding)},
                      {"nodes", json::Array(finding.nodes)},
                      {"subject", finding.subject},
                      {"what", finding.what}};
  for (auto [key, value] : {std::pair<StringRef, const std::string &>("before", finding.before),
                            {"after", finding.after},
                            {"tolerance", finding.tolerance},
                            {"reason", finding.reason},
                            {"waiver", finding.waiver}})
    if (!value.empty())
      object[key] = value;
  return object;
}

void writeJson(raw_ostream &os, ArrayRef<CheckResult> results, const ReportStyle &style) {
  json::Array checks;
  bool passed = true;
  for (const CheckResult &result : results) {
    json::Array findings;
    for (const Finding &finding : result.findings)
      findings.push_back(toJson(result, finding));
    Verdict verdict = result.verdict();
    passed &= passes(result, style);
    json::Object object{
        {"baseline", result.baseline}, {"findings", std::move(findings)}, {"improvements", verdict.improvements},
        {"model", result.model},       {"passed", passes(result, style)}, {"regressions", verdict.regressions},
        {"waived", verdict.waived}};
    if (!result.problem.empty())
      object["problem"] = result.problem;
    if (!result.help.empty())
      object["help"] = result.help;
    checks.push_back(std::move(object));
  }
  os << formatv("{0:2}\n", json::Value(json::Object{{"checks", std::move(checks)}, {"passed", passed}}));
}

} // namespace ptc::gate
