//===- WireFormat.cpp - cuts tensor bytes out of an ONNX file -------------===//
//
// A model is mostly weights, and protobuf would copy all of them. So the file is
// scanned first, over the map of the file: the scanner walks the wire format
// (tag, then varint, fixed width or length) and descends into exactly those
// messages that can contain tensors:
//
//   ModelProto > graph, functions > nodes > attributes > tensors and graphs
//              > initializers, sparse initializers
//
// Everything else is copied as it is. Of a tensor, raw_data and the packed
// float_data and double_data (which hold the same little-endian bytes) are left
// out when they are large; where they lay is written into the tensor's
// doc_string, whose own text is dropped from every tensor so that a model cannot
// forge it. The result is a valid model of a few hundred kilobytes, which protobuf
// parses and the ONNX checker accepts.
//
// Lengths of the enclosing messages change, so each message is rebuilt from the
// inside out; the cost is the stripped size times the nesting depth.
//
//===----------------------------------------------------------------------===//
#include "lowering/onnx/WireFormat.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

using namespace llvm;
using namespace ptc::onnx_import;

namespace {

enum class Message { Model, Graph, Node, Attribute, Tensor, SparseTensor, Function, Opaque };

/// The message in a length-delimited field, if tensors can lie below it.
Message messageAt(Message parent, uint64_t field) {
  switch (parent) {
  case Message::Model:
    return field == 7 ? Message::Graph : field == 25 ? Message::Function : Message::Opaque;
  case Message::Graph:
    return field == 1    ? Message::Node
           : field == 5  ? Message::Tensor
           : field == 15 ? Message::SparseTensor
                         : Message::Opaque;
  case Message::Function:
    return field == 7 ? Message::Node : field == 11 ? Message::Attribute : Message::Opaque;
  case Message::Node:
    return field == 5 ? Message::Attribute : Message::Opaque;
  case Message::Attribute:
    return field == 5 || field == 10    ? Message::Tensor
           : field == 6 || field == 11  ? Message::Graph
           : field == 22 || field == 23 ? Message::SparseTensor
                                        : Message::Opaque;
  case Message::SparseTensor:
    return field == 1 || field == 2 ? Message::Tensor : Message::Opaque;
  default:
    return Message::Opaque;
  }
}

enum TensorField : uint64_t { FloatData = 4, RawData = 9, DoubleData = 10, DocString = 12 };
enum WireType : unsigned { Varint = 0, Fixed64 = 1, Length = 2, Fixed32 = 5 };
constexpr unsigned maxMessageDepth = 200;

/// The fields of ModelProto: anything else at the top means that the file is something else.
bool isModelField(uint64_t field) { return (field >= 1 && field <= 8) || is_contained({14, 20, 25, 26}, field); }

void writeVarint(std::string &out, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    out.push_back(char(value | 0x80));
  out.push_back(char(value));
}

void writeLengthField(std::string &out, uint64_t field, StringRef bytes) {
  writeVarint(out, field << 3 | Length);
  writeVarint(out, bytes.size());
  out.append(bytes.begin(), bytes.end());
}

class Scanner {
public:
  Scanner(StringRef file, WireError &error) : file(file), error(error) {}

  /// Copies the message in [position, end) to `out`.
  bool copy(Message message, uint64_t position, uint64_t end, std::string &out, unsigned depth) {
    if (depth > maxMessageDepth)
      return malformed(position, "messages are nested too deep");
    while (position < end) {
      uint64_t start = position, tag = 0;
      if (!readVarint(position, end, tag))
        return malformed(start, "a field has no valid tag");
      uint64_t field = tag >> 3, length = 0;
      if (field == 0 || (message == Message::Model && !isModelField(field)))
        return malformed(start, "it does not begin like one");
      if ((tag & 7) != Length) {
        if (!skipScalar(tag & 7, start, position, end))
          return false;
        append(out, start, position);
        continue;
      }
      if (!readVarint(position, end, length))
        return malformed(start, "a field has no valid length");
      if (length > end - position)
        return truncated(position, length, end - position);
      if (!copyField(message, field, start, position, position + length, out, depth))
        return false;
      position += length;
    }
    return true;
  }

private:
  bool copyField(Message message, uint64_t field, uint64_t start, uint64_t position, uint64_t end, std::string &out,
                 unsigned depth) {
    if (message == Message::Tensor) {
      bool isBytes = field == RawData || field == FloatData || field == DoubleData;
      if (isBytes && end - position > maxInlineBytes) {
        writeLengthField(out, RawData, "");
        writeLengthField(out, DocString, writeMark({position, end - position, ""}));
      } else if (field != DocString) {
        append(out, start, end);
      }
      return true;
    }
    Message inner = messageAt(message, field);
    if (inner == Message::Opaque) {
      append(out, start, end);
      return true;
    }
    std::string rebuilt;
    if (!copy(inner, position, end, rebuilt, depth + 1))
      return false;
    writeLengthField(out, field, rebuilt);
    return true;
  }

  bool readVarint(uint64_t &position, uint64_t end, uint64_t &value) {
    value = 0;
    for (unsigned shift = 0; shift < 64 && position < end; shift += 7) {
      uint8_t byte = file[position++];
      value |= uint64_t(byte & 0x7f) << shift;
      if (byte < 0x80)
        return true;
    }
    return false;
  }

  bool skipScalar(unsigned wireType, uint64_t start, uint64_t &position, uint64_t end) {
    uint64_t ignored;
    if (wireType == Varint)
      return readVarint(position, end, ignored) || malformed(start, "a number has no end");
    if (wireType != Fixed32 && wireType != Fixed64)
      return malformed(start, "a field has an unknown wire type");
    uint64_t width = wireType == Fixed32 ? 4 : 8;
    if (width > end - position)
      return truncated(position, width, end - position);
    position += width;
    return true;
  }

  void append(std::string &out, uint64_t start, uint64_t end) { out.append(file.data() + start, end - start); }

  bool malformed(uint64_t offset, const Twine &reason) {
    error = {false, offset, 0, 0, reason.str()};
    return false;
  }
  bool truncated(uint64_t offset, uint64_t announced, uint64_t available) {
    error = {true, offset, announced, available, ""};
    return false;
  }

  StringRef file;
  WireError &error;
};

} // namespace

bool ptc::onnx_import::stripTensors(StringRef bytes, std::string &stripped, WireError &error) {
  return Scanner(bytes, error).copy(Message::Model, 0, bytes.size(), stripped, 0);
}

std::string ptc::onnx_import::writeMark(const ByteRange &range) {
  return ("@" + Twine(range.offset) + "+" + Twine(range.size) + ":" + range.file).str();
}

bool ptc::onnx_import::readMark(StringRef mark, ByteRange &range) {
  if (!mark.consume_front("@") || mark.consumeInteger(10, range.offset) || !mark.consume_front("+") ||
      mark.consumeInteger(10, range.size) || !mark.consume_front(":"))
    return false;
  range.file = mark;
  return true;
}
