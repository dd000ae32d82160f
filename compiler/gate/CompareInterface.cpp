// What callers see: functions, inputs, outputs, symbols, guards, levels; and the weights that go with them. Every
// change is one of the ABI, better or worse for nobody but the caller.
#include "compiler/gate/Compare.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace ptc::gate {

static std::string subjectOf(const json::Object &line) {
  return (line.getString("is").value_or("function") + " " + line.getString("name").value_or("")).str();
}

static bool isSame(const json::Object &a, const json::Object &b) {
  return a.getString("is") == b.getString("is") && a.getString("name") == b.getString("name") &&
         a.getString("function") == b.getString("function");
}

static std::string textOf(const json::Value *value) { return value ? formatv("{0}", *value).str() : "none"; }

static Finding change(std::string subject, std::string what, std::string before = "", std::string after = "") {
  return {.kind = FindingKind::Interface,
          .direction = Direction::Change,
          .subject = std::move(subject),
          .what = std::move(what),
          .before = std::move(before),
          .after = std::move(after)};
}

static void compareLines(const json::Object &before, const json::Object &after, std::vector<Finding> &findings) {
  std::vector<StringRef> keys;
  for (const json::Object *line : {&before, &after})
    for (const auto &[key, value] : *line)
      if (!is_contained(keys, StringRef(key)))
        keys.push_back(key);
  llvm::sort(keys);
  for (StringRef key : keys) {
    const json::Value *was = before.get(key), *now = after.get(key);
    if (!was || !now || *was != *now)
      findings.push_back(change(subjectOf(after), key.str(), textOf(was), textOf(now)));
  }
}

static const json::Object *findLine(const json::Array &lines, const json::Object &wanted) {
  for (const json::Value &line : lines)
    if (isSame(*line.getAsObject(), wanted))
      return line.getAsObject();
  return nullptr;
}

void compareInterface(const Baseline &before, const Baseline &after, std::vector<Finding> &findings) {
  for (const json::Value &line : before.interface)
    if (!findLine(after.interface, *line.getAsObject()))
      findings.push_back(change(subjectOf(*line.getAsObject()), "is gone"));
  for (const json::Value &line : after.interface) {
    const json::Object *old = findLine(before.interface, *line.getAsObject());
    if (old)
      compareLines(*old, *line.getAsObject(), findings);
    else
      findings.push_back(change(subjectOf(*line.getAsObject()), "was not there"));
  }
  if (before.target != after.target)
    findings.push_back(change("model", "target", before.target, after.target));
  if (before.levels != after.levels)
    findings.push_back(change("model", "levels", join(before.levels, ","), join(after.levels, ",")));
  if (before.weightBytes != after.weightBytes)
    findings.push_back(
        findingOf(FindingKind::Weights, "model", "bytes of stored weights", before.weightBytes, after.weightBytes));
}

} // namespace ptc::gate
