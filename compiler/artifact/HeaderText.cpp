#include "compiler/artifact/HeaderText.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace ptc::artifact {

std::string inComment(StringRef text) {
  std::string result;
  for (char c : text) {
    if (!result.empty() && ((c == '/' && result.back() == '*') || (c == '*' && result.back() == '/')))
      result += ' ';
    result += isPrint(c) ? c : '?';
  }
  if (!result.empty() && result.back() == '\\')
    result += ' ';
  return result;
}

std::string dimsText(const host::Value &value) {
  SmallVector<std::string> dims;
  for (const host::Dim &dim : value.dims)
    dims.push_back(dim.text);
  return "[" + join(dims, ", ") + "]";
}

/// "x: float32 [batch, 3]", with the source model's name where it differs.
static std::string describe(const host::Value &value) {
  std::string text = value.cName + ": " + value.dtype.name() + " " + dimsText(value);
  if (value.name != value.cName)
    text += ", '" + value.name + "' in the model";
  return inComment(text);
}

std::string describeRange(const host::Symbol &symbol) {
  std::string text = std::to_string(symbol.min) + " <= " + symbol.cName;
  if (symbol.max != std::numeric_limits<int64_t>::max())
    text += " <= " + std::to_string(symbol.max);
  if (symbol.divisor > 1)
    text += ", a multiple of " + std::to_string(symbol.divisor);
  if (symbol.name != symbol.cName)
    text += "; '" + symbol.name + "' in the model";
  return inComment(text);
}

void describeValues(raw_ostream &os, const host::Function &function, StringRef prefix) {
  os << prefix << "Inputs\n";
  for (const host::Value &value : function.inputs)
    os << prefix << "  " << describe(value)
       << (value.alias >= 0 ? "; read and updated: also output '" + inComment(function.outputs[value.alias].name) + "'"
                            : "")
       << "\n";
  os << prefix << "Outputs\n";
  for (const host::Value &value : function.outputs)
    os << prefix << "  " << describe(value)
       << (value.alias >= 0 ? "; in the buffer of input " + function.inputs[value.alias].cName : "")
       << (value.isFound() ? "; its size is known when the model has run" : "") << "\n";
  if (!function.guards.empty())
    os << prefix << "Guards: a call whose sizes fail one of these returns PTC_GUARD_FAILED\n";
  for (const host::Guard &guard : function.guards)
    os << prefix << "  " << inComment(guard.text) << "\n";
  if (!function.variants.empty())
    os << prefix << "Variants: sizes with code of their own; all others run the general one\n";
  for (const host::Variant &variant : function.variants)
    os << prefix << "  " << inComment(variant.name) << "\n";
}

std::string includeGuard(const host::ModelInterface &model, StringRef fileName) {
  return StringRef(host::cIdentifier((model.name + "_" + fileName).str())).upper();
}

} // namespace ptc::artifact
