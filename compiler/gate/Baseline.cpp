//===- Baseline.cpp - a baseline as JSON and back -------------------------===//
//
// The file is read by people in reviews, so its lines are the units of change: every element of a list of objects, a
// kernel or a buffer, has a line of its own, and everything else of the top level one line. Keys are sorted, numbers
// are integers.
//
// Reading is strict where a mistake could hide a difference (a missing list, a wrong type), and each complaint says
// which command makes a good file.
//
//===----------------------------------------------------------------------===//
#include "compiler/gate/Baseline.h"
#include "compiler/DiagnosticRendering.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace ptc::gate {

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static json::Value text(StringRef string) { return json::isUTF8(string) ? string.str() : json::fixUTF8(string); }

static json::Value textsOf(ArrayRef<std::string> strings) {
  json::Array array;
  for (const std::string &string : strings)
    array.push_back(text(string));
  return array;
}

template <typename Range, typename Function> static json::Value listOf(const Range &range, Function &&convert) {
  json::Array array;
  for (const auto &element : range)
    array.push_back(convert(element));
  return array;
}

/// A number that is one at all dims is a number; else its expression and its value at the hint.
static json::Value amountOf(const artifact::Amount &amount) {
  if (amount.text == std::to_string(amount.atHint))
    return amount.atHint;
  return json::Object{{"at_hint", amount.atHint}, {"expression", text(amount.text)}};
}

static json::Value codeOf(const artifact::CodeEntry &code) {
  json::Object object{{"bytes", code.bytes}};
#define CODE_FACT(field, name, words, better) object[name] = code.facts.field;
#include "codegen/object/CodeFacts.def"
#undef CODE_FACT
  return object;
}

static json::Value kernelOf(const artifact::KernelEntry &kernel) {
  json::Object code;
  for (const artifact::CodeEntry &entry : kernel.code)
    code[entry.level] = codeOf(entry);
  json::Object object{{"code", std::move(code)},
                      {"flops", amountOf(kernel.flops)},
                      {"kind", kernel.kind},
                      {"name", kernel.name},
                      {"nodes", listOf(kernel.launches, textsOf)},
                      {"read", amountOf(kernel.bytesRead)},
                      {"weights_read", kernel.weightBytesRead},
                      {"written", amountOf(kernel.bytesWritten)}};
  if (!kernel.variant.empty())
    object["variant"] = text(kernel.variant);
  return object;
}

static json::Value memoryOf(const artifact::MemoryEntry &memory) {
  json::Object object{{"function", text(memory.function)},
                      {"host_syncs", memory.hostSyncs},
                      {"lower_bound", amountOf(memory.lowerBound)},
                      {"peak", amountOf(memory.peak)}};
  if (!memory.variant.empty())
    object["variant"] = text(memory.variant);
  return object;
}

/// Launches are named by their first node: a number would change with every launch before it.
static json::Value bufferOf(const artifact::BufferEntry &buffer) {
  json::Object object{{"alignment", std::min<int64_t>(buffer.alignment, arenaAlignment)},
                      {"bytes", amountOf(buffer.bytes)},
                      {"function", text(buffer.function)},
                      {"last_read", text(buffer.lastReadBy)},
                      {"node", text(buffer.node)},
                      {"written", text(buffer.writtenBy)}};
  if (buffer.keptUntil != buffer.lastRead)
    object["kept_until"] = text(buffer.keptFor);
  if (!buffer.reuses.empty())
    object["reuses"] = text(buffer.reuses);
  if (!buffer.variant.empty())
    object["variant"] = text(buffer.variant);
  return object;
}

static json::Value refusalOf(const Refusal &refusal) {
  return json::Object{
      {"pairs",
       listOf(refusal.pairs, [](const auto &pair) { return json::Array{text(pair.first), text(pair.second)}; })},
      {"reason", text(refusal.reason)}};
}

static json::Value waiverOf(const Waiver &waiver) {
  json::Object object{{"reason", text(waiver.reason)}, {"until", waiver.until}};
  if (!waiver.finding.empty())
    object["finding"] = waiver.finding;
  if (!waiver.node.empty())
    object["node"] = text(waiver.node);
  return object;
}

json::Array flattenInterface(const json::Array &functions) {
  json::Array lines;
  for (const json::Value &value : functions) {
    const json::Object &function = *value.getAsObject();
    json::Object rest;
    for (const auto &[key, field] : function)
      if (key != "inputs" && key != "outputs" && key != "symbols")
        rest[key] = field;
    StringRef name = function.getString("name").value_or("");
    lines.push_back(std::move(rest));
    for (StringRef list : {"inputs", "outputs", "symbols"})
      if (const json::Array *elements = function.getArray(list))
        for (const json::Value &element : *elements) {
          json::Object line = *element.getAsObject();
          line["function"] = name.str(); // a StringRef would stay one
          line["is"] = list.drop_back().str();
          lines.push_back(std::move(line));
        }
  }
  return lines;
}

std::string writeBaseline(const Baseline &baseline) {
  json::Object root{{"buffers", listOf(baseline.buffers, bufferOf)},
                    {"flags", textsOf(baseline.flags)},
                    {"format", baselineFormat},
                    {"inputs", textsOf(baseline.inputs)},
                    {"interface", json::Array(baseline.interface)},
                    {"kernels", listOf(baseline.kernels, kernelOf)},
                    {"levels", textsOf(baseline.levels)},
                    {"memory", listOf(baseline.memory, memoryOf)},
                    {"model", text(baseline.model)},
                    {"model_digest", baseline.modelDigest},
                    {"numerics", listOf(baseline.numerics, [](const NumericRow &row) { return toJson(row); })},
                    {"refusals", listOf(baseline.refusals, refusalOf)},
                    {"target", baseline.target},
                    {"tolerances", json::Object{{"code_bytes", baseline.tolerances.codeBytes}}},
                    {"waivers", listOf(baseline.waivers, waiverOf)},
                    {"weight_bytes", baseline.weightBytes}};
  std::vector<std::string> keys;
  for (const auto &[key, value] : root)
    keys.push_back(key.str());
  llvm::sort(keys);
  std::string result;
  raw_string_ostream os(result);
  for (const std::string &key : keys) {
    os << (&key == &keys.front() ? "{\n" : ",\n") << "  " << json::Value(key) << ": ";
    const json::Array *array = root.getArray(key);
    if (!array || array->empty() || !array->front().getAsObject()) {
      os << root[key];
      continue;
    }
    for (const json::Value &element : *array)
      os << (&element == &array->front() ? "[\n    " : ",\n    ") << element;
    os << "\n  ]";
  }
  os << "\n}\n";
  return result;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {
/// Fields of one object; the first mistake is kept.
class Fields {
public:
  Fields(const json::Value &value, StringRef what, std::string &mistake)
      : object(value.getAsObject()), what(what), mistake(mistake) {
    if (!object)
      complain("is not an object");
  }

  StringRef text(StringRef key, bool isOptional = false) {
    if (std::optional<StringRef> found = object ? object->getString(key) : std::nullopt)
      return *found;
    if (!isOptional)
      complain(key, "a text");
    return "";
  }
  int64_t number(StringRef key) {
    if (std::optional<int64_t> found = object ? object->getInteger(key) : std::nullopt)
      return *found;
    complain(key, "an integer");
    return 0;
  }
  artifact::Amount amount(StringRef key) {
    const json::Value *value = object ? object->get(key) : nullptr;
    if (std::optional<int64_t> number = value ? value->getAsInteger() : std::nullopt)
      return {std::to_string(*number), *number};
    if (const json::Object *both = value ? value->getAsObject() : nullptr)
      if (both->getString("expression") && both->getInteger("at_hint"))
        return {both->getString("expression")->str(), *both->getInteger("at_hint")};
    complain(key, "an integer, or an expression with its value at the hint");
    return {};
  }
  template <typename Function> static auto listOf(const json::Array *array, Function &&parse) {
    std::vector<decltype(parse(std::declval<const json::Value &>()))> result;
    for (const json::Value &element : array ? *array : json::Array())
      result.push_back(parse(element));
    return result;
  }

  template <typename Function> auto list(StringRef key, Function &&parse) {
    const json::Array *array = object ? object->getArray(key) : nullptr;
    if (!array)
      complain(key, "a list");
    return listOf(array, std::forward<Function>(parse));
  }
  std::vector<std::string> texts(StringRef key) { return textsOf(object ? object->get(key) : nullptr, key); }
  std::vector<std::string> textsOf(const json::Value *value, StringRef key) {
    const json::Array *array = value ? value->getAsArray() : nullptr;
    if (!array)
      complain(key, "a list of texts");
    return listOf(array, [&](const json::Value &element) {
      std::optional<StringRef> text = element.getAsString();
      if (!text)
        complain(key, "a list of texts");
      return text.value_or("").str();
    });
  }
  const json::Value *value(StringRef key) { return object ? object->get(key) : nullptr; }
  void complain(StringRef key, StringRef wanted) { complain(("needs '" + key + "', " + wanted).str()); }
  void complain(const Twine &problem) {
    if (mistake.empty())
      mistake = (what + " " + problem).str();
  }
  std::string &getMistake() { return mistake; }

private:
  const json::Object *object;
  StringRef what;
  std::string &mistake;
};
} // namespace

static artifact::CodeEntry parseCode(StringRef level, const json::Value &value, std::string &mistake) {
  Fields fields(value, "the code of a kernel", mistake);
  artifact::CodeEntry code{.level = level.str(), .bytes = fields.number("bytes")};
#define CODE_FACT(field, name, words, better) code.facts.field = fields.number(name);
#include "codegen/object/CodeFacts.def"
#undef CODE_FACT
  return code;
}

static artifact::KernelEntry parseKernel(const json::Value &value, std::string &mistake) {
  Fields fields(value, "a kernel", mistake);
  artifact::KernelEntry kernel{.name = fields.text("name").str(),
                               .kind = fields.text("kind").str(),
                               .variant = fields.text("variant", true).str(),
                               .flops = fields.amount("flops"),
                               .bytesRead = fields.amount("read"),
                               .bytesWritten = fields.amount("written"),
                               .weightBytesRead = fields.number("weights_read")};
  kernel.launches = fields.list("nodes", [&](const json::Value &nodes) { return fields.textsOf(&nodes, "nodes"); });
  const json::Value *code = fields.value("code");
  if (!code || !code->getAsObject())
    fields.complain("code", "an object");
  else
    for (const auto &[level, facts] : *code->getAsObject())
      kernel.code.push_back(parseCode(level, facts, mistake));
  llvm::sort(kernel.code, [](const auto &a, const auto &b) { return a.level < b.level; });
  return kernel;
}

static artifact::MemoryEntry parseMemory(const json::Value &value, std::string &mistake) {
  Fields fields(value, "an entry of memory", mistake);
  return {.function = fields.text("function").str(),
          .variant = fields.text("variant", true).str(),
          .peak = fields.amount("peak"),
          .lowerBound = fields.amount("lower_bound"),
          .hostSyncs = fields.number("host_syncs")};
}

static artifact::BufferEntry parseBuffer(const json::Value &value, std::string &mistake) {
  Fields fields(value, "a buffer", mistake);
  artifact::BufferEntry buffer{.function = fields.text("function").str(),
                               .variant = fields.text("variant", true).str(),
                               .node = fields.text("node").str(),
                               .bytes = fields.amount("bytes"),
                               .alignment = fields.number("alignment"),
                               .writtenBy = fields.text("written").str(),
                               .lastReadBy = fields.text("last_read").str(),
                               .reuses = fields.text("reuses", true).str()};
  StringRef kept = fields.text("kept_until", true);
  buffer.keptUntil = kept.empty() ? 0 : 1; // of lastRead: 0
  buffer.keptFor = kept.empty() ? buffer.lastReadBy : kept.str();
  return buffer;
}

static Refusal parseRefusal(const json::Value &value, std::string &mistake) {
  Fields fields(value, "a refusal", mistake);
  Refusal refusal{.reason = fields.text("reason").str()};
  refusal.pairs = fields.list("pairs", [&](const json::Value &pair) -> std::pair<std::string, std::string> {
    std::vector<std::string> names = fields.textsOf(&pair, "pairs");
    if (names.size() != 2)
      fields.complain("pairs", "producer and consumer");
    names.resize(2);
    return {names[0], names[1]};
  });
  return refusal;
}

/// YYYY-MM-DD. A month 13 would sort after its year, and what it ends would not end.
static bool isDay(StringRef text) {
  auto isWithin = [](StringRef digits, size_t length, unsigned least, unsigned most) {
    unsigned number = 0;
    return digits.size() == length && all_of(digits, isDigit) && !digits.getAsInteger(10, number) && number >= least &&
           number <= most;
  };
  auto [year, rest] = text.split('-');
  auto [month, day] = rest.split('-');
  return isWithin(year, 4, 1, 9999) && isWithin(month, 2, 1, 12) && isWithin(day, 2, 1, 31);
}

static Waiver parseWaiver(const json::Value &value, std::string &mistake) {
  Fields fields(value, "a waiver", mistake);
  Waiver waiver{fields.text("finding", true).str(), fields.text("node", true).str(), fields.text("reason").str(),
                fields.text("until").str()};
  bool isKnown = waiver.finding.empty() ||
                 any_of(getFindingRows(), [&](const FindingRow &row) { return row.name == waiver.finding; });
  if (!isKnown)
    fields.complain("names the finding '" + waiver.finding + "', which there is not: " +
                    join(map_range(getFindingRows(), [](const FindingRow &row) { return row.name.str(); }), ", "));
  for (const auto &[key, ignored] : value.getAsObject() ? *value.getAsObject() : json::Object())
    if (!is_contained({"finding", "node", "reason", "until"}, StringRef(key)))
      fields.complain("has '" + key.str() + "', which is none of finding, node, reason, until");
  if (waiver.finding.empty() && waiver.node.empty())
    fields.complain("needs 'finding', 'node' or both: one for everything would be no gate");
  if (!isDay(waiver.until))
    fields.complain("until", "the last day on which it holds, as YYYY-MM-DD");
  return waiver;
}

/// Only what says that it is a baseline may be advised to be written over: the path may be the model's by mistake.
static Error notABaseline(StringRef path, const Twine &why) {
  return exitError(exitUsage, "'" + path + "' is not a baseline: " + why,
                   "a baseline is a .json file that `ptc gate record MODEL.onnx` has written");
}

static Error otherFormat(StringRef path, int64_t format) {
  return exitError(exitUsage,
                   "'" + path + "' is not a baseline that this ptc reads: it is of format " + Twine(format) +
                       ", this ptc has format " + Twine(baselineFormat),
                   "record it anew: ptc gate record MODEL.onnx -o " + path);
}

static Error isMistaken(StringRef path, const Twine &mistake) {
  return exitError(exitUsage, "'" + path + "' is not a baseline that this ptc reads: " + mistake,
                   "mend it there; or record it anew, without waivers: ptc gate record MODEL.onnx -o " + path);
}

/// Shares ("1%") and numbers of bytes.
static void parseTolerances(const json::Value &value, Tolerances &tolerances, std::string &mistake) {
  Fields fields(value, "'tolerances'", mistake);
  tolerances.codeBytes = fields.text("code_bytes").str();
  StringRef number = tolerances.codeBytes;
  number.consume_back("%");
  double amount = 0;
  if (number.getAsDouble(amount) || !(amount >= 0))
    fields.complain("code_bytes", "a share as \"1%\" or a number of bytes as \"64\"");
}

Expected<Baseline> parseBaseline(StringRef source, StringRef path) {
  Expected<json::Value> value = json::parse(source);
  if (!value)
    return notABaseline(path, toString(value.takeError()));
  const json::Object *root = value->getAsObject();
  std::optional<int64_t> format = root ? root->getInteger("format") : std::nullopt;
  if (!format)
    return notABaseline(path, "it has no 'format'");
  if (*format != baselineFormat)
    return otherFormat(path, *format);

  std::string mistake;
  Fields fields(*value, "the file", mistake);
  auto with = [&](auto parse) { return [&, parse](const json::Value &element) { return parse(element, mistake); }; };
  Baseline baseline{.model = fields.text("model").str(),
                    .modelDigest = fields.text("model_digest").str(),
                    .target = fields.text("target").str(),
                    .levels = fields.texts("levels"),
                    .flags = fields.texts("flags")};
  if (const json::Value *tolerances = root->get("tolerances"))
    parseTolerances(*tolerances, baseline.tolerances, mistake);
  baseline.waivers = fields.list("waivers", with(parseWaiver));
  if (const json::Array *interface = root->getArray("interface"))
    baseline.interface = *interface;
  else
    fields.complain("interface", "a list");
  if (any_of(baseline.interface, [](const json::Value &line) { return !line.getAsObject(); }))
    fields.complain("interface", "a list of objects");
  baseline.kernels = fields.list("kernels", with(parseKernel));
  baseline.memory = fields.list("memory", with(parseMemory));
  baseline.buffers = fields.list("buffers", with(parseBuffer));
  baseline.refusals = fields.list("refusals", with(parseRefusal));
  baseline.weightBytes = fields.number("weight_bytes");
  if (root->get("inputs"))
    baseline.inputs = fields.texts("inputs");
  if (root->get("numerics") && !root->getArray("numerics"))
    fields.complain("numerics", "a list");
  for (const json::Value &element : root->getArray("numerics") ? *root->getArray("numerics") : json::Array()) {
    Expected<NumericRow> row = parseNumericRow(element);
    if (!row)
      return isMistaken(path, toString(row.takeError()));
    baseline.numerics.push_back(std::move(*row));
  }
  if (!mistake.empty())
    return isMistaken(path, mistake);
  return baseline;
}

} // namespace ptc::gate
