#include "codegen/host/Interface.h"
#include "runtime/include/ptc/abi.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace ptc::host {

std::string DType::name() const {
  switch (code) {
  case PTC_INT:
    return "int" + std::to_string(bits);
  case PTC_UINT:
    return "uint" + std::to_string(bits);
  case PTC_FLOAT:
    return "float" + std::to_string(bits);
  case PTC_BFLOAT:
    return "bfloat" + std::to_string(bits);
  case PTC_COMPLEX:
    return "complex" + std::to_string(bits);
  case PTC_BOOL:
    return "bool";
  case PTC_FLOAT8_E4M3FN:
    return "float8_e4m3fn";
  case PTC_FLOAT8_E4M3FNUZ:
    return "float8_e4m3fnuz";
  case PTC_FLOAT8_E5M2:
    return "float8_e5m2";
  case PTC_FLOAT8_E5M2FNUZ:
    return "float8_e5m2fnuz";
  case PTC_FLOAT8_E8M0FNU:
    return "float8_e8m0fnu";
  case PTC_FLOAT6_E2M3FN:
    return "float6_e2m3fn";
  case PTC_FLOAT6_E3M2FN:
    return "float6_e3m2fn";
  case PTC_FLOAT4_E2M1FN:
    return "float4_e2m1fn";
  case PTC_STRING:
    return "string";
  case PTC_SEQUENCE:
    return "sequence";
  default:
    return "type" + std::to_string(code) + "_" + std::to_string(bits);
  }
}

StringRef DType::cType() const {
  return StringSwitch<StringRef>(name())
      .Case("float32", "float")
      .Case("float64", "double")
      .Case("float16", "ptc_float16")
      .Case("bfloat16", "ptc_bfloat16")
      .Case("bool", "ptc_bool")
      .Case("int8", "int8_t")
      .Case("int16", "int16_t")
      .Case("int32", "int32_t")
      .Case("int64", "int64_t")
      .Case("uint16", "uint16_t")
      .Case("uint32", "uint32_t")
      .Case("uint64", "uint64_t")
      .Case("complex64", "float") // pairs
      .Case("complex128", "double")
      .Case("string", "ptc_string")
      .Case("sequence", "ptc_sequence")
      .StartsWith("float8", "ptc_float8")
      .Default("uint8_t");
}

bool Value::isFound() const {
  return llvm::any_of(dims, [](const Dim &dim) { return dim.isFound; });
}

uint64_t Weight::bytes() const {
  uint64_t bits = dtype.bits;
  for (int64_t extent : shape)
    bits *= extent;
  return (bits + 7) / 8;
}

static const StringSet<> &keywords() {
  static const StringSet<> words = {
      "alignas",      "alignof",       "and",         "and_eq",   "asm",       "auto",
      "bitand",       "bitor",         "bool",        "break",    "case",      "catch",
      "char",         "class",         "compl",       "concept",  "const",     "const_cast",
      "consteval",    "constexpr",     "constinit",   "continue", "co_await",  "co_return",
      "co_yield",     "decltype",      "default",     "delete",   "do",        "double",
      "dynamic_cast", "else",          "enum",        "explicit", "export",    "extern",
      "false",        "float",         "for",         "friend",   "goto",      "if",
      "inline",       "int",           "long",        "mutable",  "namespace", "new",
      "noexcept",     "not",           "not_eq",      "nullptr",  "operator",  "or",
      "or_eq",        "private",       "protected",   "public",   "register",  "reinterpret_cast",
      "requires",     "restrict",      "return",      "short",    "signed",    "sizeof",
      "static",       "static_assert", "static_cast", "struct",   "switch",    "template",
      "this",         "thread_local",  "throw",       "true",     "try",       "typedef",
      "typeid",       "typename",      "typeof",      "union",    "unsigned",  "using",
      "virtual",      "void",          "volatile",    "wchar_t",  "while",     "xor",
      "xor_eq",       "char8_t",       "char16_t",    "char32_t", "linux",     "unix"};
  return words;
}

std::string cIdentifier(StringRef name) {
  std::string result;
  for (char c : name)
    result += isAlnum(c) ? c : '_';
  if (result.empty())
    result = "unnamed";
  if (isDigit(result[0]))
    result.insert(result.begin(), '_');
  if (keywords().contains(result))
    result += '_';
  return result;
}

/// `wanted`, or the first of wanted_2, wanted_3, ... that is not taken.
static std::string claim(StringSet<> &taken, const std::string &wanted) {
  std::string name = wanted;
  for (unsigned i = 2; !taken.insert(name).second; ++i)
    name = wanted + "_" + std::to_string(i);
  return name;
}

static void assignCNames(Function &function) {
  StringSet<> parameters = {"ctx", "model", "dims", "workspace", "stream", "status", "shapes"}, members;
  for (std::vector<Value> *values : {&function.inputs, &function.outputs})
    for (Value &value : *values)
      value.cName = claim(parameters, cIdentifier(value.name));
  for (Value &value : function.outputs)
    if (value.isFound())
      value.shapeName = claim(parameters, value.cName + "_shape");
  for (Symbol &symbol : function.symbols)
    symbol.cName = claim(members, cIdentifier(symbol.name));
}

void assignCNames(ModelInterface &model) {
  // What follows the prefix in names of the model itself.
  StringSet<> prefixes;
  for (size_t i = 0; i < model.functions.size(); ++i) {
    Function &function = model.functions[i];
    function.cPrefix = claim(prefixes, i == 0 ? model.name : model.name + "_" + cIdentifier(function.name));
    assignCNames(function);
  }
}

std::vector<std::string> typedNames(const ModelInterface &model) {
  std::vector<std::string> names;
  for (const char *verb : {"_create", "_destroy", "_ctx_create", "_ctx_destroy", "_set_weight", "_last_error"})
    names.push_back(model.name + verb);
  for (const Function &function : model.functions)
    for (const char *verb : {"_workspace_size", "_output_shapes", "_warmup", "_run"})
      names.push_back(function.cPrefix + verb);
  return names;
}

} // namespace ptc::host
