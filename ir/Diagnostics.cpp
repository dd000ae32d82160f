//===- Diagnostics.cpp - coded diagnostics at a model's nodes -------------===//
#include "ir/Diagnostics.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace ptc {

// 0412 in the table is decimal: the leading zero must not make it octal.
static constexpr unsigned decimal(const char *digits) {
  unsigned value = 0;
  for (; *digits; ++digits)
    value = value * 10 + (*digits - '0');
  return value;
}

static constexpr DiagRow rows[] = {
#define DIAG(code, name, exitClass, format) {decimal(#code), #name, ExitClass::exitClass, format},
#include "ir/Diagnostics.def"
#undef DIAG
};

const DiagRow &getDiagRow(DiagId id) { return rows[static_cast<size_t>(id)]; }
ArrayRef<DiagRow> getDiagRows() { return rows; }

std::string getCode(DiagId id) { return llvm::formatv("PTC{0,0+4}", getDiagRow(id).code).str(); }

std::optional<DiagId> parseCode(StringRef message) {
  unsigned code = 0;
  if (!message.consume_front("[PTC") || message.consumeInteger(10, code) || !message.starts_with("]"))
    return std::nullopt;
  for (auto [i, row] : llvm::enumerate(rows))
    if (row.code == code)
      return static_cast<DiagId>(i);
  return std::nullopt;
}

StringRef stripCode(StringRef message) {
  return parseCode(message) ? message.substr(message.find(']') + 1).ltrim() : message;
}

void addHelp(InFlightDiagnostic &diag, const Twine &text) { diag.attachNote() << "help: " << text; }

Location makeNodeLocation(MLIRContext *context, StringRef node, StringRef op, StringRef output) {
  auto str = [&](StringRef s) { return StringAttr::get(context, s); };
  SmallVector<NamedAttribute> entries = {{str("node"), str(node)}, {str("op"), str(op)}, {str("output"), str(output)}};
  return FusedLoc::get(context, {UnknownLoc::get(context)}, DictionaryAttr::get(context, entries));
}

static std::optional<NodeLocation> readNode(FusedLoc loc) {
  auto dictionary = dyn_cast_if_present<DictionaryAttr>(loc.getMetadata());
  if (!dictionary || !dictionary.contains("op"))
    return std::nullopt;
  auto get = [&](StringRef key) {
    auto value = dictionary.getAs<StringAttr>(key);
    return value ? value.getValue() : StringRef();
  };
  return NodeLocation{get("node"), get("op"), get("output")};
}

std::optional<NodeLocation> describeLocation(Location loc) {
  if (auto call = dyn_cast<CallSiteLoc>(loc))
    return describeLocation(call.getCallee());
  if (auto name = dyn_cast<NameLoc>(loc))
    return describeLocation(name.getChildLoc());
  auto fused = dyn_cast<FusedLoc>(loc);
  if (!fused)
    return std::nullopt;
  if (std::optional<NodeLocation> node = readNode(fused))
    return node;
  for (Location part : fused.getLocations())
    if (std::optional<NodeLocation> node = describeLocation(part))
      return node;
  return std::nullopt;
}

std::string formatLocation(Location loc) {
  std::optional<NodeLocation> node = describeLocation(loc);
  if (!node)
    return "";
  std::string text = "node";
  if (!node->node.empty())
    text += " '" + node->node.str() + "'";
  text += " (" + node->op.str();
  if (!node->output.empty())
    text += " → " + node->output.str();
  return text + ")";
}

} // namespace ptc
