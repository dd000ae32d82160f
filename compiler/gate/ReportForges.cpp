//===- ReportForges.cpp - reports for continuous integration --------------===//
//
//   junit   a test case a baseline; XML as Jenkins, GitLab and others read it
//   sarif   2.1.0, a rule a kind of finding; code scanning of GitHub and others
//   github  workflow commands, which become annotations of the changed files
//   gitlab  code quality: a list of issues with fingerprints
//
// All point at the line of the baseline that a finding is about: that is the file a change would touch.
//
//===----------------------------------------------------------------------===//
#include "compiler/gate/Report.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/SHA1.h"

using namespace llvm;

namespace ptc::gate {

static std::string sentenceOf(const Finding &finding) { return describeSubject(finding) + ": " + describe(finding); }

static std::string problemOf(const CheckResult &result) {
  return result.problem + (result.help.empty() ? "" : "; help: " + result.help);
}

static bool counts(const Finding &finding, const ReportStyle &style) {
  return finding.waiver.empty() && !(style.allowImprovements && finding.direction == Direction::Improvement);
}

//===----------------------------------------------------------------------===//
// JUnit
//===----------------------------------------------------------------------===//

/// Text for XML 1.0, which has no control characters but three.
static std::string xml(StringRef text) {
  std::string result;
  for (char c : text) {
    switch (c) {
    case '&':
      result += "&amp;";
      break;
    case '<':
      result += "&lt;";
      break;
    case '>':
      result += "&gt;";
      break;
    case '"':
      result += "&quot;";
      break;
    case '\n':
      result += "&#10;";
      break;
    default:
      result += static_cast<unsigned char>(c) < ' ' ? '?' : c;
    }
  }
  return result;
}

static void writeCase(raw_ostream &os, const CheckResult &result, const ReportStyle &style) {
  os << "    <testcase classname=\"ptc.gate\" name=\"" << xml(result.baseline) << "\" file=\"" << xml(result.baseline)
     << "\" time=\"" << format("%.3f", result.seconds) << "\">\n";
  std::string all;
  for (const Finding &finding : result.findings)
    all += (finding.waiver.empty() ? getName(finding.direction) : StringRef("waived")).str() + " [" +
           getRow(finding.kind).name.str() + "] " + sentenceOf(finding) + "\n";
  if (!result.problem.empty())
    os << "      <error type=\"not-checked\" message=\"" << xml(result.problem) << "\">" << xml(result.help)
       << "</error>\n";
  else if (!passes(result, style))
    os << "      <failure type=\"difference\" message=\""
       << count_if(result.findings, [&](const Finding &finding) { return counts(finding, style); })
       << " differences from the baseline\">" << xml(all + style.updateCommand) << "</failure>\n";
  else if (!all.empty())
    os << "      <system-out>" << xml(all) << "</system-out>\n";
  os << "    </testcase>\n";
}

void writeJunit(raw_ostream &os, ArrayRef<CheckResult> results, const ReportStyle &style) {
  auto problems = count_if(results, [](const CheckResult &result) { return !result.problem.empty(); });
  auto failures = count_if(results, [&](const CheckResult &r) { return r.problem.empty() && !passes(r, style); });
  double seconds = 0;
  for (const CheckResult &result : results)
    seconds += result.seconds;
  std::string numbers = formatv("tests=\"{0}\" failures=\"{1}\" errors=\"{2}\" time=\"{3:f3}\"", results.size(),
                                failures, problems, seconds);
  os << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites " << numbers << ">\n  <testsuite name=\"ptc gate\" "
     << numbers << ">\n";
  for (const CheckResult &result : results)
    writeCase(os, result, style);
  os << "  </testsuite>\n</testsuites>\n";
}

//===----------------------------------------------------------------------===//
// SARIF
//===----------------------------------------------------------------------===//

/// A path as the URI reference that SARIF wants.
static std::string uriOf(StringRef path) {
  std::string result;
  for (char c : path)
    if (isAlnum(c) || StringRef("-._~/").contains(c))
      result += c;
    else
      result += formatv("%{0:X-2}", static_cast<unsigned char>(c));
  return result;
}

static StringRef levelOf(const Finding &finding, const ReportStyle &style) {
  return counts(finding, style) ? "error" : "note";
}

static json::Value sarifResult(const CheckResult &result, StringRef rule, StringRef level, StringRef text,
                               unsigned line, ArrayRef<std::string> nodes) {
  json::Object location{
      {"physicalLocation", json::Object{{"artifactLocation", json::Object{{"uri", uriOf(result.baseline)}}},
                                        {"region", json::Object{{"startLine", line}}}}}};
  json::Array logical;
  for (const std::string &node : nodes)
    logical.push_back(json::Object{{"name", node}});
  if (!logical.empty())
    location["logicalLocations"] = std::move(logical);
  return json::Object{{"level", level},
                      {"locations", json::Array{std::move(location)}},
                      {"message", json::Object{{"text", text.str()}}},
                      {"ruleId", rule}};
}

constexpr StringLiteral notChecked = "not-checked";

void writeSarif(raw_ostream &os, ArrayRef<CheckResult> results, const ReportStyle &style) {
  json::Array rules{json::Object{{"id", notChecked},
                                 {"shortDescription", json::Object{{"text", "a baseline could not be checked"}}}}};
  for (const FindingRow &row : getFindingRows())
    rules.push_back(json::Object{{"id", row.name}, {"shortDescription", json::Object{{"text", row.text}}}});
  json::Array list;
  for (const CheckResult &result : results) {
    if (!result.problem.empty())
      list.push_back(sarifResult(result, notChecked, "error", problemOf(result), 1, {}));
    for (const Finding &finding : result.findings) {
      json::Value value = sarifResult(result, getRow(finding.kind).name, levelOf(finding, style), sentenceOf(finding),
                                      lineOf(result, finding), finding.nodes);
      if (!finding.waiver.empty())
        (*value.getAsObject())["suppressions"] =
            json::Array{json::Object{{"kind", "external"}, {"justification", finding.waiver}}};
      list.push_back(std::move(value));
    }
  }
  json::Object driver{{"name", "ptc"}, {"rules", std::move(rules)}, {"version", style.version}};
  json::Value log = json::Object{
      {"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
      {"runs",
       json::Array{json::Object{{"results", std::move(list)}, {"tool", json::Object{{"driver", std::move(driver)}}}}}},
      {"version", "2.1.0"}};
  os << formatv("{0:2}\n", log);
}

//===----------------------------------------------------------------------===//
// Annotations
//===----------------------------------------------------------------------===//

/// Escapes of GitHub's workflow commands; properties have two more.
static std::string escapeCommand(StringRef text, bool isProperty) {
  std::string result;
  for (char c : text) {
    bool isSpecial = c == '%' || c == '\r' || c == '\n' || (isProperty && (c == ':' || c == ','));
    if (isSpecial)
      result += formatv("%{0:X-2}", static_cast<unsigned char>(c));
    else
      result += c;
  }
  return result;
}

static void writeCommand(raw_ostream &os, StringRef command, const CheckResult &result, unsigned line, StringRef title,
                         StringRef text) {
  os << "::" << command << " file=" << escapeCommand(result.baseline, true) << ",line=" << line
     << ",title=" << escapeCommand(title, true) << "::" << escapeCommand(text, false) << '\n';
}

void writeGithub(raw_ostream &os, ArrayRef<CheckResult> results, const ReportStyle &style) {
  for (const CheckResult &result : results) {
    if (!result.problem.empty())
      writeCommand(os, "error", result, 1, "ptc gate", problemOf(result));
    for (const Finding &finding : result.findings)
      writeCommand(os, counts(finding, style) ? "error" : "notice", result, lineOf(result, finding),
                   ("ptc gate: " + getName(finding.direction) + " of " + getRow(finding.kind).name).str(),
                   sentenceOf(finding) + (finding.waiver.empty() ? "" : "; waived: " + finding.waiver));
  }
}

static json::Value issueOf(const CheckResult &result, StringRef check, StringRef severity, const std::string &text,
                           unsigned line) {
  std::string key = (result.baseline + "\n" + check + "\n" + text).str();
  std::array<uint8_t, 20> digest = SHA1::hash(arrayRefFromStringRef(key));
  return json::Object{{"check_name", check},
                      {"description", text},
                      {"fingerprint", toHex(digest, /*LowerCase=*/true)},
                      {"location", json::Object{{"lines", json::Object{{"begin", line}}}, {"path", result.baseline}}},
                      {"severity", severity}};
}

void writeGitlab(raw_ostream &os, ArrayRef<CheckResult> results, const ReportStyle &style) {
  json::Array issues;
  for (const CheckResult &result : results) {
    if (!result.problem.empty())
      issues.push_back(issueOf(result, notChecked, "blocker", problemOf(result), 1));
    for (const Finding &finding : result.findings)
      issues.push_back(issueOf(result, getRow(finding.kind).name, counts(finding, style) ? "major" : "info",
                               sentenceOf(finding), lineOf(result, finding)));
  }
  os << formatv("{0:2}\n", json::Value(std::move(issues)));
}

} // namespace ptc::gate
