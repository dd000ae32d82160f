// numpy's .npy: magic, version, length of a Python dictionary literal, the dictionary, the bytes
// (numpy/lib/format.py describes it). Only what numpy itself writes is read; Fortran order and other byte orders are
// refused by name.
#include "cli/tensor/TensorFiles.h"
#include "compiler/DiagnosticRendering.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"

using namespace llvm;

namespace ptc {

static constexpr StringLiteral magic("\x93NUMPY");

static Error badNpy(StringRef path, const Twine &what) {
  return exitError(exitUsage, "'" + path + "' cannot be read as .npy: " + what);
}

/// The text of 'key': VALUE in a Python dictionary literal without nested dictionaries.
static StringRef valueOf(StringRef dictionary, StringRef key) {
  size_t at = dictionary.find(("'" + key + "'").str());
  if (at == StringRef::npos)
    return "";
  StringRef rest = dictionary.substr(at + key.size() + 2).ltrim(" :");
  if (rest.starts_with("("))
    return rest.take_until([](char c) { return c == ')'; }).drop_front();
  if (rest.starts_with("'"))
    return rest.drop_front().take_until([](char c) { return c == '\''; });
  return rest.take_until([](char c) { return c == ',' || c == '}'; }).trim();
}

static std::optional<ptc_dtype> parseType(StringRef descr) {
  if (descr.size() < 3 || (descr[0] == '>' && descr.drop_front(2) != "1"))
    return std::nullopt;
  unsigned bytes;
  if (descr.drop_front(2).getAsInteger(10, bytes) || bytes == 0 || bytes > 16)
    return std::nullopt;
  auto make = [&](uint8_t code) { return ptc_dtype{code, static_cast<uint8_t>(bytes * 8), 1}; };
  switch (descr[1]) {
  case 'i':
    return make(PTC_INT);
  case 'u':
    return make(PTC_UINT);
  case 'f':
    return make(PTC_FLOAT);
  case 'c':
    return make(PTC_COMPLEX);
  case 'b':
    return make(PTC_BOOL);
  case 'V':
    return make(opaqueCode);
  }
  return std::nullopt;
}

static bool parseShape(StringRef text, std::vector<int64_t> &shape) {
  uint64_t count = 1;
  while (!(text = text.ltrim(" ,")).empty()) {
    int64_t extent;
    if (text.consumeInteger(10, extent) || extent < 0 || extent > (int64_t(1) << 40))
      return false;
    shape.push_back(extent);
    count *= std::max<int64_t>(extent, 1);
    if (count > (uint64_t(1) << 40))
      return false;
  }
  return true;
}

Expected<Tensor> parseNpy(StringRef bytes, StringRef path) {
  if (!bytes.starts_with(magic) || bytes.size() < 12)
    return badNpy(path, "it does not begin as one");
  bool isFirst = bytes[6] == 1; // version 1 has a 16-bit length
  size_t length = isFirst ? support::endian::read16le(bytes.data() + 8) : support::endian::read32le(bytes.data() + 8);
  size_t start = isFirst ? 10 : 12;
  if (length > bytes.size() - start)
    return badNpy(path, "its header is cut off");
  StringRef header = bytes.substr(start, length), contents = bytes.substr(start + length);
  Tensor tensor;
  StringRef descr = valueOf(header, "descr");
  std::optional<ptc_dtype> dtype = parseType(descr);
  if (!dtype)
    return badNpy(path, "element type '" + descr + "' is not supported");
  tensor.dtype = *dtype;
  if (!parseShape(valueOf(header, "shape"), tensor.shape))
    return badNpy(path, "its shape (" + valueOf(header, "shape") + ") is not valid");
  if (valueOf(header, "fortran_order") == "True" && tensor.shape.size() > 1)
    return badNpy(path, "it is in Fortran order; save numpy.ascontiguousarray(x)");
  size_t needed = byteSize(tensor.dtype, tensor.elementCount());
  if (contents.size() < needed)
    return badNpy(path, "it has " + Twine(contents.size()) + " bytes of elements, its shape needs " + Twine(needed));
  tensor.bytes.assign(contents.begin(), contents.begin() + needed);
  return tensor;
}

std::string formatNpy(const Tensor &tensor) {
  ptc_dtype dtype = tensor.dtype;
  char kind = dtype.code == PTC_INT       ? 'i'
              : dtype.code == PTC_UINT    ? 'u'
              : dtype.code == PTC_FLOAT   ? 'f'
              : dtype.code == PTC_COMPLEX ? 'c'
              : dtype.code == PTC_BOOL    ? 'b'
                                          : 'V';
  // Packed types are written as the bytes they are packed in.
  bool packed = dtype.bits < 8;
  std::string header = "{'descr': '";
  header += packed ? "|u1" : std::string(dtype.bits == 8 ? "|" : "<") + kind + std::to_string(dtype.bits / 8);
  header += "', 'fortran_order': False, 'shape': (";
  std::vector<int64_t> shape = packed ? std::vector<int64_t>{static_cast<int64_t>(tensor.bytes.size())} : tensor.shape;
  for (int64_t extent : shape)
    header += std::to_string(extent) + ", ";
  if (shape.size() > 1)
    header.resize(header.size() - 2);
  else if (shape.size() == 1)
    header.pop_back();
  header += "), }";
  header.append(63 - (10 + header.size()) % 64, ' '); // the elements begin at a multiple of 64
  header += '\n';
  std::string result = magic.str() + std::string("\x01\x00", 2);
  result += static_cast<char>(header.size() & 255);
  result += static_cast<char>(header.size() >> 8);
  return result + header + std::string(tensor.bytes.data(), tensor.bytes.size());
}

} // namespace ptc
