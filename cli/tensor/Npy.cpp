// numpy's .npy: magic, version, length of a Python dictionary literal, the dictionary, the bytes
// (numpy/lib/format.py describes it). Only what numpy itself writes is read.
#include "cli/tensor/TensorFiles.h"
#include "compiler/DiagnosticRendering.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/Endian.h"

#include <algorithm>
#include <cstring>

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
  unsigned bytes;
  if (descr.size() < 3 || descr.drop_front(2).getAsInteger(10, bytes) || bytes == 0 || bytes > 16)
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

/// numpy's strings: all elements have the room of the longest, zeros behind them. 'U': code points of 4 bytes.
static std::optional<Error> readStrings(StringRef descr, StringRef contents, Tensor &tensor, StringRef path) {
  unsigned width;
  if (descr.size() < 3 || (descr[1] != 'U' && descr[1] != 'S') || descr[0] == '>' ||
      descr.drop_front(2).getAsInteger(10, width) || width > (1u << 28))
    return std::nullopt;
  bool isWide = descr[1] == 'U';
  tensor.dtype = {PTC_STRING, 128, 1};
  uint64_t each = uint64_t(width) * (isWide ? 4 : 1), count = tensor.elementCount();
  if (contents.size() < each * count)
    return badNpy(path,
                  "it has " + Twine(contents.size()) + " bytes of elements, its shape needs " + Twine(each * count));
  for (uint64_t i = 0; i < count; ++i) {
    StringRef raw = contents.substr(i * each, each);
    std::string text;
    for (; isWide && !raw.empty(); raw = raw.drop_front(4)) {
      char utf8[4], *end = utf8;
      uint32_t code = support::endian::read32le(raw.data());
      if (code == 0)
        break;
      if (!ConvertCodePointToUTF8(code, end))
        return badNpy(path, "element " + Twine(i) + " has a character that is none");
      text.append(utf8, end);
    }
    tensor.texts.push_back(isWide ? text : raw.rtrim('\0').str());
  }
  return Error::success();
}

/// As numpy would write them: UTF-32, where all are UTF-8; else bytes.
static std::pair<std::string, std::string> formatStrings(const Tensor &tensor) {
  std::vector<SmallVector<UTF32>> wide;
  size_t width = 1, bytes = 1;
  bool isUtf8 = true;
  for (const std::string &text : tensor.texts) {
    const auto *at = reinterpret_cast<const UTF8 *>(text.data()), *end = at + text.size();
    bytes = std::max(bytes, text.size());
    for (wide.emplace_back(); at != end && isUtf8;) {
      wide.back().push_back(0);
      isUtf8 = convertUTF8Sequence(&at, end, &wide.back().back(), strictConversion) == conversionOK;
    }
    width = std::max(width, wide.back().size());
  }
  std::string contents;
  for (auto [text, codes] : zip(tensor.texts, wide)) {
    if (!isUtf8) {
      contents += text + std::string(bytes - text.size(), '\0');
      continue;
    }
    codes.resize(width);
    contents.append(reinterpret_cast<const char *>(codes.data()), 4 * width);
  }
  return {isUtf8 ? "<U" + std::to_string(width) : "|S" + std::to_string(bytes), contents};
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

/// From an array whose first dim is innermost, as transposed ones are written.
static void readFortranOrder(StringRef contents, Tensor &tensor) {
  size_t count = tensor.elementCount(), element = count ? tensor.bytes.size() / count : 0;
  for (size_t number = 0; number < count; ++number) {
    size_t rest = number, place = 0, step = count;
    for (int64_t extent : reverse(tensor.shape)) {
      step /= size_t(extent);
      place += rest % size_t(extent) * step;
      rest /= size_t(extent);
    }
    std::memcpy(&tensor.bytes[number * element], contents.data() + place * element, element);
  }
}

/// Bytes of each number, of which a complex one has two, from the first to the last.
static void swapBytes(Tensor &tensor) {
  size_t bytes = tensor.dtype.bits / 8u / (tensor.dtype.code == PTC_COMPLEX ? 2 : 1);
  for (size_t first = 0; first + bytes <= tensor.bytes.size(); first += bytes)
    std::reverse(tensor.bytes.begin() + first, tensor.bytes.begin() + first + bytes);
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
  if (!parseShape(valueOf(header, "shape"), tensor.shape))
    return badNpy(path, "its shape (" + valueOf(header, "shape") + ") is not valid");
  bool isTurned = valueOf(header, "fortran_order") == "True" && tensor.shape.size() > 1;
  bool hasStrings = !descr.empty() && StringRef("US").contains(descr.drop_front().take_front());
  if (isTurned && hasStrings)
    return badNpy(path, "its strings are in Fortran order; save numpy.ascontiguousarray(x)");
  if (std::optional<Error> strings = readStrings(descr, contents, tensor, path))
    return *strings ? Expected<Tensor>(std::move(*strings)) : Expected<Tensor>(std::move(tensor));
  if (!dtype)
    return badNpy(path, "element type '" + descr + "' is not supported; save x.astype(TYPE) of the model's type");
  tensor.dtype = *dtype;
  size_t needed = byteSize(tensor.dtype, tensor.elementCount());
  if (contents.size() < needed)
    return badNpy(path, "it has " + Twine(contents.size()) + " bytes of elements, its shape needs " + Twine(needed));
  tensor.bytes.assign(contents.begin(), contents.begin() + needed);
  if (isTurned)
    readFortranOrder(contents, tensor);
  if (descr[0] == '>')
    swapBytes(tensor);
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
  std::pair<std::string, std::string> strings;
  if (dtype.code == PTC_STRING)
    strings = formatStrings(tensor);
  header += dtype.code == PTC_STRING ? strings.first
            : packed                 ? "|u1"
                                     : std::string(dtype.bits == 8 ? "|" : "<") + kind + std::to_string(dtype.bits / 8);
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
  if (dtype.code == PTC_STRING)
    return result + header + strings.second;
  return result + header + std::string(tensor.bytes.data(), tensor.bytes.size());
}

} // namespace ptc
