//===- PackedElements.cpp - elements of attributes as bytes ---------------===//
#include "ir/prim/PackedElements.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace ptc;

std::vector<char> prim::packElements(DenseElementsAttr elements) {
  Type type = elements.getElementType();
  unsigned width = type.getIntOrFloatBitWidth(), bits = type.isInteger(1) ? 8 : width;
  std::vector<char> bytes((size_t(elements.getNumElements()) * bits + 7) / 8);
  if (bits >= 8 && width == bits && !elements.isSplat()) {
    llvm::copy(elements.getRawData(), bytes.begin());
    return bytes;
  }
  size_t position = 0; // in bits
  auto add = [&](const llvm::APInt &value) {
    for (unsigned bit = 0; bit < width; ++bit)
      bytes[(position + bit) / 8] |= char(value[bit] << ((position + bit) % 8));
    position += bits;
  };
  if (isa<FloatType>(type))
    for (const llvm::APFloat &value : elements.getValues<llvm::APFloat>())
      add(value.bitcastToAPInt());
  else
    for (const llvm::APInt &value : elements.getValues<llvm::APInt>())
      add(value);
  return bytes;
}

std::vector<std::string> prim::listStrings(DenseStringElementsAttr elements) {
  llvm::ArrayRef<llvm::StringRef> texts = elements.getRawStringData();
  std::vector<std::string> list;
  for (int64_t i = 0; i < elements.getNumElements(); ++i)
    list.push_back(texts[elements.isSplat() ? 0 : i].str());
  return list;
}
