//===- Variants.cpp - one function for some sizes --------------------------===//

#include "ir/prim/Variants.h"
#include "ir/prim/Prim.h"
#include "mlir/IR/AttrTypeSubElements.h"

using namespace mlir;
using namespace ptc;

std::string prim::getVariantName(Operation *function) {
  std::string name;
  if (auto pins = function->getAttrOfType<DictionaryAttr>(pinsAttr))
    for (NamedAttribute pin : pins) {
      auto size = dyn_cast<IntegerAttr>(pin.getValue());
      std::string value = size ? std::to_string(size.getInt()) : Expr(cast<ExprAttr>(pin.getValue())).str();
      name += (name.empty() ? "" : ",") + pin.getName().str() + "=" + value;
    }
  return name;
}

void prim::substituteSymbols(Operation *root, llvm::function_ref<Expr(StringRef)> map) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](ExprAttr expr) -> std::optional<std::pair<Attribute, WalkResult>> {
    return std::pair<Attribute, WalkResult>(Expr(expr).substitute(map), WalkResult::skip());
  });
  // A tensor whose dims have all become constants has no encoding.
  replacer.addReplacement([&](RankedTensorType type) -> std::optional<std::pair<Type, WalkResult>> {
    if (!isa_and_nonnull<DimsAttr>(type.getEncoding()))
      return std::nullopt;
    SmallVector<Expr> dims;
    for (Expr dim : getDims(type))
      dims.push_back(dim.substitute(map));
    return std::pair<Type, WalkResult>(getTensorType(dims, type.getElementType()), WalkResult::skip());
  });
  replacer.recursivelyReplaceElementsIn(root, /*replaceAttrs=*/true, /*replaceLocs=*/false, /*replaceTypes=*/true);
}
