// A value in memory, as a command line names it: a dense tensor of numbers (element type, shape and row-major bytes) or
// of strings, or a sequence of such values.
#ifndef PTC_CLI_TENSOR_TENSOR_H
#define PTC_CLI_TENSOR_TENSOR_H

#include "runtime/include/ptc/abi.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <new>
#include <string>
#include <vector>

namespace ptc {

inline bool operator==(ptc_dtype a, ptc_dtype b) { return a.code == b.code && a.bits == b.bits; }
/// "float32", "int64", "bool", "bfloat16", "float8_e4m3fn", "uint4"; "void16" for 16 bits of no known type.
std::string formatType(ptc_dtype dtype);
/// "2x3", "scalar".
std::string formatShape(llvm::ArrayRef<int64_t> shape);
/// 16 bits of no known type: what a .npy file says of types that numpy lacks.
constexpr uint8_t opaqueCode = 255;

/// Memory that begins with a line of the cache: stores that each cross into another line take up to 1.35 times as long.
template <typename T> struct LineAllocator {
  using value_type = T;
  static constexpr std::align_val_t line{64};
  LineAllocator() = default;
  template <typename U> LineAllocator(const LineAllocator<U> &) {}
  T *allocate(size_t count) { return static_cast<T *>(::operator new(count * sizeof(T), line)); }
  void deallocate(T *memory, size_t) { ::operator delete(memory, line); }
  bool operator==(const LineAllocator &) const { return true; }
};
using Bytes = std::vector<char, LineAllocator<char>>;

struct Tensor {
  ptc_dtype dtype = {PTC_FLOAT, 32, 1};
  std::vector<int64_t> shape;
  Bytes bytes;                    // of strings and sequences: the structs that the ABI passes, made by view()
  std::vector<std::string> texts; // the elements of a tensor of strings
  std::vector<Tensor> items;      // the tensors of a sequence
  std::vector<ptc_tensor> views;  // of the items, made by view()
  bool isMadeUp = false;          // of a size that flags choose

  static Tensor zeros(ptc_dtype dtype, std::vector<int64_t> shape);
  /// Zeros for the dtype and shape; false, and no bytes, where their size overflows or the memory is not to be had.
  [[nodiscard]] bool allocate();
  int64_t elementCount() const;
  /// The tensor as the ABI passes it. It refers to this object's members.
  ptc_tensor view();
  /// Takes over what a run has written: strings and sequences lie in the context that ran.
  void collect();
  bool isNumeric() const { return dtype.code != PTC_STRING && dtype.code != PTC_SEQUENCE; }
  /// Element i as a person reads it.
  std::string text(int64_t i) const;
  /// Element i as the nearest double; `complex` numbers: their real part. Integers beyond 2^53 are rounded.
  double at(int64_t i) const;
  bool isFloat() const {
    return isNumeric() && (dtype.code == PTC_FLOAT || dtype.code == PTC_BFLOAT || dtype.code >= PTC_FLOAT8_E4M3FN);
  }
};

/// Bytes of `count` elements, packed below 8 bits.
size_t byteSize(ptc_dtype dtype, int64_t count);

/// Pseudo-random values that depend on the seed alone: floats from a normal distribution, integers from 0 to 99 within
/// their type, booleans fair, strings words of one to eight letters. A sequence stays empty.
void fillRandom(Tensor &tensor, uint64_t seed);
void fillOnes(Tensor &tensor);

} // namespace ptc

#endif // PTC_CLI_TENSOR_TENSOR_H
