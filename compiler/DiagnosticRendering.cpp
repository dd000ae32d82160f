#include "compiler/DiagnosticRendering.h"
#include "compiler/DiagnosticAdvice.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

using namespace llvm;

namespace ptc {

char ReportedError::ID = 0;
char ExitError::ID = 0;

Error exitError(int code, const Twine &message, const Twine &help) {
  return make_error<ExitError>(code, message.str(), help.str());
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static StringRef severityName(const DiagnosticRecord &record) {
  switch (record.severity) {
  case DiagnosticRecord::Severity::Error:
    return "error";
  case DiagnosticRecord::Severity::Warning:
    return "warning";
  case DiagnosticRecord::Severity::Remark:
    return "remark";
  }
  llvm_unreachable("all severities have a name");
}

static raw_ostream::Colors severityColor(const DiagnosticRecord &record) {
  switch (record.severity) {
  case DiagnosticRecord::Severity::Error:
    return raw_ostream::RED;
  case DiagnosticRecord::Severity::Warning:
    return raw_ostream::MAGENTA;
  case DiagnosticRecord::Severity::Remark:
    return raw_ostream::BLUE;
  }
  llvm_unreachable("all severities have a color");
}

static void printColored(raw_ostream &os, StringRef text, raw_ostream::Colors color, bool on) {
  if (on)
    os.changeColor(color, /*Bold=*/true);
  os << text;
  if (on)
    os.resetColor();
}

void printText(raw_ostream &os, const DiagnosticRecord &record, bool color) {
  std::string where = record.subject;
  if (!where.empty())
    where += ": ";
  if (!record.op.empty()) {
    where += "node ";
    if (!record.node.empty())
      where += "'" + record.node + "' ";
    where += "(" + record.op + (record.output.empty() ? "" : " → " + record.output) + "): ";
  }
  printColored(os, where, raw_ostream::SAVEDCOLOR, color);
  std::string kind = severityName(record).str();
  if (!record.code.empty())
    kind += "[" + record.code + "]";
  printColored(os, kind + ":", severityColor(record), color);
  os << ' ' << record.message << '\n';
  for (const std::string &note : record.notes)
    os << "  note: " << note << '\n';
  for (const std::string &help : record.helps) {
    printColored(os, "  help:", raw_ostream::GREEN, color);
    os << ' ' << help << '\n';
  }
}

//===----------------------------------------------------------------------===//
// JSON and SARIF
//===----------------------------------------------------------------------===//

static json::Value toJson(const DiagnosticRecord &record) {
  json::Object object{{"severity", severityName(record)}, {"message", record.message}, {"subject", record.subject}};
  auto add = [&](StringRef key, const std::string &value) {
    if (!value.empty())
      object[key] = value;
  };
  add("code", record.code);
  add("name", record.name);
  add("node", record.node);
  add("op", record.op);
  add("output", record.output);
  if (!record.notes.empty())
    object["notes"] = json::Array(record.notes);
  if (!record.helps.empty())
    object["help"] = json::Array(record.helps);
  return object;
}

static json::Value toSarif(const DiagnosticRecord &record) {
  std::string text = record.message;
  for (const std::string &note : record.notes)
    text += "; note: " + note;
  for (const std::string &help : record.helps)
    text += "; help: " + help;
  json::Object location{
      {"physicalLocation", json::Object{{"artifactLocation", json::Object{{"uri", record.subject}}}}}};
  if (!record.op.empty())
    location["logicalLocations"] =
        json::Array{json::Object{{"name", record.node.empty() ? record.output : record.node}, {"kind", record.op}}};
  json::Object result{
      {"level", record.severity == DiagnosticRecord::Severity::Remark ? StringRef("note") : severityName(record)},
      {"message", json::Object{{"text", text}}},
      {"locations", json::Array{std::move(location)}}};
  if (!record.code.empty())
    result["ruleId"] = record.code;
  return result;
}

static json::Value sarifLog(ArrayRef<DiagnosticRecord> records) {
  json::Array rules, results;
  for (auto [i, row] : llvm::enumerate(getDiagRows())) {
    const DiagnosticAdvice &advice = getAdvice(static_cast<DiagId>(i));
    rules.push_back(json::Object{{"id", getCode(static_cast<DiagId>(i))},
                                 {"name", row.name},
                                 {"shortDescription", json::Object{{"text", row.format}}},
                                 {"fullDescription", json::Object{{"text", advice.meaning}}},
                                 {"help", json::Object{{"text", advice.remedy}}}});
  }
  for (const DiagnosticRecord &record : records)
    results.push_back(toSarif(record));
  json::Object driver{{"name", "ptc"}, {"rules", std::move(rules)}};
  return json::Object{{"version", "2.1.0"},
                      {"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                      {"runs", json::Array{json::Object{{"tool", json::Object{{"driver", std::move(driver)}}},
                                                        {"results", std::move(results)}}}}};
}

Diagnostics::~Diagnostics() {
  if (style.format == DiagnosticFormat::Text)
    return;
  json::Array list;
  for (const DiagnosticRecord &record : records)
    list.push_back(toJson(record));
  json::Value all = style.format == DiagnosticFormat::Sarif
                        ? sarifLog(records)
                        : json::Value(json::Object{{"diagnostics", std::move(list)}, {"exit_code", exit}});
  os << formatv("{0:2}", all) << '\n';
}

//===----------------------------------------------------------------------===//
// Collection
//===----------------------------------------------------------------------===//

void Diagnostics::report(DiagnosticRecord record) {
  std::lock_guard<std::mutex> lock(mutex);
  if (record.severity == DiagnosticRecord::Severity::Error) {
    ++errors;
    exit = std::max(exit, record.exitCode);
  }
  if (record.severity == DiagnosticRecord::Severity::Remark && onRemark)
    return onRemark(record);
  if (style.format == DiagnosticFormat::Text) {
    if (beforePrint)
      beforePrint();
    printText(os, record, style.color);
    os.flush();
  }
  records.push_back(std::move(record));
}

static DiagnosticRecord::Severity severityOf(mlir::DiagnosticSeverity severity) {
  switch (severity) {
  case mlir::DiagnosticSeverity::Error:
    return DiagnosticRecord::Severity::Error;
  case mlir::DiagnosticSeverity::Warning:
    return DiagnosticRecord::Severity::Warning;
  case mlir::DiagnosticSeverity::Note:
  case mlir::DiagnosticSeverity::Remark:
    return DiagnosticRecord::Severity::Remark;
  }
  llvm_unreachable("all severities are mapped");
}

void Diagnostics::report(mlir::Diagnostic &diagnostic) {
  DiagnosticRecord record;
  record.severity = severityOf(diagnostic.getSeverity());
  if (record.severity == DiagnosticRecord::Severity::Remark && !style.remarks)
    return;
  record.subject = subject;
  std::string message = diagnostic.str();
  record.message = stripCode(message).str();
  if (std::optional<DiagId> id = parseCode(message)) {
    record.code = getCode(*id);
    record.name = getDiagRow(*id).name.str();
    record.exitCode = ptc::exitCode(*id);
  }
  if (std::optional<NodeLocation> node = describeLocation(diagnostic.getLocation()))
    std::tie(record.node, record.op, record.output) = std::tuple(node->node.str(), node->op.str(), node->output.str());
  for (const mlir::DiagnosticArgument &part : diagnostic.getMetadata())
    if (part.getKind() == mlir::DiagnosticArgument::DiagnosticArgumentKind::Attribute)
      if (auto text = dyn_cast<mlir::StringAttr>(part.getAsAttribute()))
        record.parts.push_back(text.str());
  for (mlir::Diagnostic &note : diagnostic.getNotes()) {
    std::string text = note.str();
    bool isHelp = StringRef(text).starts_with("help: ");
    (isHelp ? record.helps : record.notes).push_back(isHelp ? text.substr(6) : text);
  }
  report(std::move(record));
}

void Diagnostics::report(Error error) {
  handleAllErrors(
      std::move(error), [](const ReportedError &) {},
      [&](const ExitError &e) { this->error(e.code, e.message, e.help); },
      [&](const ErrorInfoBase &e) {
        bool outside = e.convertToErrorCode() != inconvertibleErrorCode();
        this->error(outside ? exitFile : exitInternal, e.message());
      });
}

void Diagnostics::error(int exitCode, const Twine &message, const Twine &help) {
  DiagnosticRecord record;
  record.subject = "ptc";
  record.message = message.str();
  if (std::string text = help.str(); !text.empty())
    record.helps.push_back(std::move(text));
  record.exitCode = exitCode;
  report(std::move(record));
}

} // namespace ptc
