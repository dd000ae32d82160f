//===- Tensor.h - a tensor on the host --------------------------*- C++ -*-===//
//
// Element type, shape and elements of the reference interpreter. Invariant: the
// elements lie row-major, each in ceil(width / 8) bytes of its own (booleans and
// sub-byte types one a byte, upper bits zero), little endian. Strings lie in a list
// of their own, and a tensor of a sequence type has a list of tensors.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_IR_EVAL_TENSOR_H
#define PTC_IR_EVAL_TENSOR_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ptc::eval {

class Tensor {
public:
  /// Zeros, or empty strings. Fails for element types that are neither strings nor sequences nor complex nor integers
  /// or floats of at most 64 bits, for negative dims and for sizes above `maxBytes`.
  static llvm::Expected<Tensor> create(mlir::Type elementType, llvm::ArrayRef<int64_t> shape);
  /// From the bytes of a model or file: sub-byte elements are packed, the first in the low bits.
  static llvm::Expected<Tensor> fromPacked(mlir::Type elementType, llvm::ArrayRef<int64_t> shape,
                                           llvm::ArrayRef<char> bytes);
  static llvm::Expected<Tensor> fromAttribute(mlir::ElementsAttr attr);
  /// The attribute of a static tensor type with these dims.
  mlir::DenseElementsAttr toAttribute() const;

  mlir::Type getElementType() const { return elementType; }
  llvm::ArrayRef<int64_t> getShape() const { return shape; }
  int64_t getRank() const { return shape.size(); }
  int64_t getDim(int64_t axis) const { return shape[axis]; }
  int64_t getNumElements() const { return count; }
  bool isFloat() const { return llvm::isa<mlir::FloatType>(elementType); }
  bool isUnsigned() const { return elementType.isUnsignedInteger() || elementType.isInteger(1); }
  /// Bytes of one element in this tensor.
  int64_t getStride() const { return stride; }
  llvm::ArrayRef<uint8_t> getBytes() const { return bytes; }
  llvm::MutableArrayRef<uint8_t> getBytes() { return bytes; }

  /// Elements by row-major position. Floats are exact in double; setFloat rounds
  /// to nearest even. Integers are sign- or zero-extended; setInt wraps.
  double getFloat(int64_t i) const;
  void setFloat(int64_t i, double value);
  int64_t getInt(int64_t i) const;
  void setInt(int64_t i, int64_t value);
  /// The element's bits, whatever its type; of complex128 the lower ones.
  uint64_t getBits(int64_t i) const;
  void setBits(int64_t i, uint64_t bits);
  void copyElement(int64_t to, const Tensor &from, int64_t fromIndex);
  /// Many elements that lie together, as getFloat and setFloat have one each.
  void getFloats(int64_t first, llvm::MutableArrayRef<double> values) const;
  void setFloats(int64_t first, llvm::ArrayRef<double> values);
  /// `count` elements that lie together here, and `step` apart in `from`.
  void copyElements(int64_t to, int64_t count, const Tensor &from, int64_t fromIndex, int64_t step);
  /// Elements of a tensor of strings.
  llvm::ArrayRef<std::string> getTexts() const { return texts; }
  llvm::MutableArrayRef<std::string> getTexts() { return texts; }
  /// The tensors of a sequence, which a tensor of rank 0 is.
  const std::vector<Tensor> &getItems() const { return items; }
  std::vector<Tensor> &getItems() { return items; }

  /// All elements as double (integers too, rounded beyond 2^53).
  std::vector<double> toDoubles() const;
  /// The same elements under other dims, whose product must be the same.
  Tensor reshaped(llvm::ArrayRef<int64_t> dims) &&;

  static constexpr int64_t maxBytes = int64_t(1) << 38;

private:
  Tensor() = default;
  static llvm::Expected<Tensor> createOfHandles(mlir::Type elementType, llvm::ArrayRef<int64_t> shape);
  mlir::Type elementType;
  llvm::SmallVector<int64_t, 4> shape;
  int64_t count = 0, stride = 1;
  std::vector<uint8_t> bytes;
  std::vector<std::string> texts;
  std::vector<Tensor> items;
};

/// A double rounded to nearest even in a float type.
double roundToType(double value, mlir::FloatType type);
/// The bits of the value rounded to `type`, and back. Types of at most 8 bits that lack NaN have -0 for it, and their
/// largest value for infinity; those without a sign have NaN for negative values.
uint64_t encodeFloat(double value, mlir::FloatType type);
double decodeFloat(uint64_t bits, mlir::FloatType type);

/// Product of dims, or nothing where one is negative or 64 bits do not hold it.
std::optional<int64_t> countElements(llvm::ArrayRef<int64_t> shape);

/// Row-major strides in elements.
llvm::SmallVector<int64_t, 4> rowMajorStrides(llvm::ArrayRef<int64_t> shape);

/// Visits all indices of a shape in row-major order.
template <typename Visit> void forEachIndex(llvm::ArrayRef<int64_t> shape, Visit visit) {
  llvm::SmallVector<int64_t, 6> index(shape.size(), 0);
  for (int64_t dim : shape)
    if (dim == 0)
      return;
  for (int64_t position = 0;; ++position) {
    visit(llvm::ArrayRef<int64_t>(index), position);
    int64_t axis = int64_t(shape.size()) - 1;
    while (axis >= 0 && ++index[axis] == shape[axis])
      index[axis--] = 0;
    if (axis < 0)
      return;
  }
}

/// Visits the rows of a shape along its last axis, whose index is 0: visit(index, position of the first element,
/// length). A scalar is a row of one.
template <typename Visit> void forEachRow(llvm::ArrayRef<int64_t> shape, Visit visit) {
  if (shape.empty())
    return visit(shape, int64_t(0), int64_t(1));
  llvm::SmallVector<int64_t, 6> starts(shape);
  int64_t length = std::exchange(starts.back(), 1);
  if (length != 0)
    forEachIndex(starts, [&](llvm::ArrayRef<int64_t> index, int64_t row) { visit(index, row * length, length); });
}

/// Sum of index times stride.
inline int64_t dot(llvm::ArrayRef<int64_t> index, llvm::ArrayRef<int64_t> strides) {
  int64_t sum = 0;
  for (size_t i = 0; i != index.size(); ++i)
    sum += index[i] * strides[i];
  return sum;
}

} // namespace ptc::eval

#endif // PTC_IR_EVAL_TENSOR_H
