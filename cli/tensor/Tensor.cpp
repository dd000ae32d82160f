#include "cli/tensor/Tensor.h"
#include "compiler/artifact/Header.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numbers>

using namespace llvm;

namespace ptc {

//===----------------------------------------------------------------------===//
// Names and sizes
//===----------------------------------------------------------------------===//

std::string formatType(ptc_dtype dtype) {
  if (dtype.code == opaqueCode)
    return "void" + std::to_string(dtype.bits);
  return host::DType{dtype.code, dtype.bits}.name();
}

std::string formatShape(ArrayRef<int64_t> shape) {
  if (shape.empty())
    return "scalar";
  return join(map_range(shape, [](int64_t extent) { return std::to_string(extent); }), "x");
}

size_t byteSize(ptc_dtype dtype, int64_t count) { return (static_cast<size_t>(count) * dtype.bits + 7) / 8; }

Tensor Tensor::zeros(ptc_dtype dtype, std::vector<int64_t> shape) {
  Tensor tensor{dtype, std::move(shape), {}};
  tensor.bytes.resize(byteSize(dtype, tensor.elementCount()));
  return tensor;
}

bool Tensor::allocate() {
  int64_t bits = dtype.bits;
  for (int64_t extent : shape)
    if (extent < 0 || __builtin_mul_overflow(bits, std::max<int64_t>(extent, 1), &bits))
      return false;
  size_t size = byteSize(dtype, elementCount());
  void *volatile probe = std::malloc(size); // tried first: what a vector cannot get ends the program
  if (!probe)
    return false;
  std::free(probe);
  bytes.assign(size, 0);
  return true;
}

int64_t Tensor::elementCount() const {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

template <typename Struct> static Struct *structsOf(Bytes &bytes) {
  return reinterpret_cast<Struct *>(bytes.data()); // aligned as all that is allocated
}

static Tensor copyOf(const ptc_tensor &view) {
  Tensor tensor{view.dtype, {view.shape, view.shape + view.rank}, {}};
  tensor.bytes.resize(byteSize(view.dtype, tensor.elementCount()));
  if (!tensor.bytes.empty())
    std::memcpy(tensor.bytes.data(), static_cast<const char *>(view.data) + view.byte_offset, tensor.bytes.size());
  tensor.collect();
  return tensor;
}

void Tensor::collect() {
  if (dtype.code == PTC_STRING) {
    texts.clear();
    for (const ptc_string &string : ArrayRef(structsOf<ptc_string>(bytes), elementCount()))
      texts.emplace_back(string.bytes ? string.data : "", string.bytes);
  } else if (dtype.code == PTC_SEQUENCE) {
    items.clear();
    auto *sequence = structsOf<ptc_sequence>(bytes);
    for (const ptc_tensor &item : ArrayRef(sequence->tensors, sequence->count))
      items.push_back(copyOf(item));
  }
}

std::string Tensor::text(int64_t i) const {
  if (dtype.code == PTC_STRING) {
    std::string quoted;
    raw_string_ostream(quoted) << '"';
    for (char c : texts[i])
      quoted += (c == '"' || c == '\\') ? std::string("\\") + c : std::string(1, c);
    return quoted + '"';
  }
  std::string number;
  raw_string_ostream os(number);
  os << format("%.6g", at(i));
  if (dtype.code == PTC_COMPLEX) {
    Tensor parts{{PTC_FLOAT, static_cast<uint8_t>(dtype.bits / 2), 1}, {2 * elementCount()}, bytes};
    os << format("%+.6gi", parts.at(2 * i + 1));
  }
  return number;
}

ptc_tensor Tensor::view() {
  if (!isNumeric())
    bytes.resize(byteSize(dtype, elementCount()));
  for (auto [i, string] : enumerate(texts))
    structsOf<ptc_string>(bytes)[i] = {string.data(), static_cast<int64_t>(string.size())};
  if (dtype.code == PTC_SEQUENCE) {
    views.clear();
    for (Tensor &item : items)
      views.push_back(item.view());
    *structsOf<ptc_sequence>(bytes) = {static_cast<int64_t>(views.size()), views.data()};
  }
  return {bytes.data(), {PTC_CPU, 0}, static_cast<int32_t>(shape.size()), dtype, shape.data(), nullptr, 0};
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

static const fltSemantics *semanticsOf(ptc_dtype dtype) {
  switch (dtype.code) {
  case PTC_FLOAT:
    return dtype.bits == 16 ? &APFloat::IEEEhalf() : dtype.bits == 32 ? &APFloat::IEEEsingle() : &APFloat::IEEEdouble();
  case PTC_BFLOAT:
    return &APFloat::BFloat();
  case PTC_FLOAT8_E4M3FN:
    return &APFloat::Float8E4M3FN();
  case PTC_FLOAT8_E4M3FNUZ:
    return &APFloat::Float8E4M3FNUZ();
  case PTC_FLOAT8_E5M2:
    return &APFloat::Float8E5M2();
  case PTC_FLOAT8_E5M2FNUZ:
    return &APFloat::Float8E5M2FNUZ();
  case PTC_FLOAT8_E8M0FNU:
    return &APFloat::Float8E8M0FNU();
  case PTC_FLOAT6_E2M3FN:
    return &APFloat::Float6E2M3FN();
  case PTC_FLOAT6_E3M2FN:
    return &APFloat::Float6E3M2FN();
  case PTC_FLOAT4_E2M1FN:
    return &APFloat::Float4E2M1FN();
  }
  return nullptr;
}

/// The element's bits, zero-extended.
static uint64_t bitsAt(const Tensor &tensor, int64_t i) {
  unsigned bits = tensor.dtype.bits;
  uint64_t word = 0;
  if (bits < 8) {
    word = static_cast<uint8_t>(tensor.bytes[i * bits / 8]);
    if (i * bits % 8 + bits > 8)
      word |= uint64_t(static_cast<uint8_t>(tensor.bytes[i * bits / 8 + 1])) << 8;
    return (word >> (i * bits % 8)) & ((1u << bits) - 1);
  }
  unsigned bytes = std::min(bits / 8, 8u);
  std::memcpy(&word, tensor.bytes.data() + i * (bits / 8), bytes);
  return word;
}

double Tensor::at(int64_t i) const {
  if (!isNumeric())
    return 0;
  uint64_t word = bitsAt(*this, i);
  if (dtype.code == PTC_FLOAT && dtype.bits == 32)
    return std::bit_cast<float>(static_cast<uint32_t>(word));
  if (dtype.code == PTC_FLOAT && dtype.bits == 64)
    return std::bit_cast<double>(word);
  if (dtype.code == PTC_COMPLEX)
    return dtype.bits == 64 ? std::bit_cast<float>(static_cast<uint32_t>(word)) : std::bit_cast<double>(word);
  if (const fltSemantics *semantics = semanticsOf(dtype)) {
    APFloat value(*semantics, APInt(dtype.bits, word));
    bool lossy;
    value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lossy);
    return value.convertToDouble();
  }
  if (dtype.code == PTC_INT)
    return static_cast<double>(static_cast<int64_t>(word << (64 - dtype.bits)) >> (64 - dtype.bits));
  return static_cast<double>(word);
}

static uint64_t encode(ptc_dtype dtype, double value) {
  if (dtype.code == PTC_FLOAT && dtype.bits == 32)
    return std::bit_cast<uint32_t>(static_cast<float>(value));
  if (const fltSemantics *semantics = semanticsOf(dtype)) {
    APFloat encoded(value);
    bool lossy;
    encoded.convert(*semantics, APFloat::rmNearestTiesToEven, &lossy);
    return encoded.bitcastToAPInt().getZExtValue();
  }
  if (dtype.code == PTC_COMPLEX) // the imaginary part stays 0
    return dtype.bits == 64 ? std::bit_cast<uint32_t>(static_cast<float>(value)) : std::bit_cast<uint64_t>(value);
  return static_cast<uint64_t>(static_cast<int64_t>(value));
}

static void setElement(Tensor &tensor, int64_t i, double value) {
  uint64_t word = encode(tensor.dtype, value);
  unsigned bits = tensor.dtype.bits;
  if (bits < 8) {
    for (unsigned bit = 0; bit < bits; ++bit) { // of 6, some may lie in the next byte
      int64_t place = i * bits + bit;
      auto &byte = reinterpret_cast<uint8_t &>(tensor.bytes[place / 8]);
      byte = (byte & ~(1u << place % 8)) | ((word >> bit & 1) << place % 8);
    }
    return;
  }
  std::memcpy(tensor.bytes.data() + i * (bits / 8), &word, std::min(bits / 8, 8u));
}

//===----------------------------------------------------------------------===//
// Made-up contents
//===----------------------------------------------------------------------===//

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
static uint64_t nextWord(uint64_t &state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

static double nextUniform(uint64_t &state) { return ((nextWord(state) >> 11) + 0.5) * 0x1p-53; }

/// Box and Muller: one of the two normal values that a pair of uniform ones gives.
static double nextNormal(uint64_t &state) {
  double radius = std::sqrt(-2 * std::log(nextUniform(state)));
  return radius * std::cos(2 * std::numbers::pi * nextUniform(state));
}

static void fillWords(Tensor &tensor, uint64_t &state) {
  tensor.texts.resize(tensor.dtype.code == PTC_STRING ? tensor.elementCount() : 0);
  for (std::string &text : tensor.texts)
    for (uint64_t word = nextWord(state), left = 1 + word % 8; left > 0; --left)
      text += static_cast<char>('a' + (word = word / 11) % 26);
}

void fillRandom(Tensor &tensor, uint64_t seed) {
  uint64_t state = seed;
  if (!tensor.isNumeric())
    return fillWords(tensor, state);
  if (tensor.dtype.code == PTC_COMPLEX) {
    Tensor parts{
        {PTC_FLOAT, static_cast<uint8_t>(tensor.dtype.bits / 2), 1}, {2 * tensor.elementCount()}, tensor.bytes};
    fillRandom(parts, seed);
    tensor.bytes = std::move(parts.bytes);
    return;
  }
  int64_t limit = tensor.dtype.bits >= 8 ? 100 : int64_t(1) << (tensor.dtype.bits - (tensor.dtype.code == PTC_INT));
  for (int64_t i = 0, count = tensor.elementCount(); i < count; ++i) {
    if (tensor.isFloat())
      setElement(tensor, i, nextNormal(state));
    else
      setElement(tensor, i, nextWord(state) % (tensor.dtype.code == PTC_BOOL ? 2 : limit));
  }
}

void fillOnes(Tensor &tensor) {
  if (!tensor.isNumeric())
    return tensor.texts.assign(tensor.dtype.code == PTC_STRING ? tensor.elementCount() : 0, "1");
  for (int64_t i = 0, count = tensor.elementCount(); i < count; ++i)
    setElement(tensor, i, 1);
}

} // namespace ptc
