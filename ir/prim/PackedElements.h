//===- PackedElements.h - elements of attributes as bytes -------*- C++ -*-===//
#ifndef PTC_IR_PRIM_PACKEDELEMENTS_H
#define PTC_IR_PRIM_PACKEDELEMENTS_H

#include "mlir/IR/BuiltinAttributes.h"
#include <string>
#include <vector>

namespace ptc::prim {

/// Little-endian bytes as ONNX and the ABI have them: a byte for a boolean, elements below 8 bits packed, the first in
/// the low bits. For elements that are numbers.
std::vector<char> packElements(mlir::DenseElementsAttr elements);
/// All elements that are strings.
std::vector<std::string> listStrings(mlir::DenseStringElementsAttr elements);

} // namespace ptc::prim

#endif // PTC_IR_PRIM_PACKEDELEMENTS_H
