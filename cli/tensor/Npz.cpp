// numpy's .npz: a zip archive of .npy files. Read: the central directory, entries stored or deflated, with 64-bit sizes
// where they are needed. Written: stored entries, as numpy.savez writes them, with a fixed time stamp.
#include "cli/tensor/TensorFiles.h"
#include "compiler/DiagnosticRendering.h"
#include "llvm/Support/CRC.h"
#include "llvm/Support/Endian.h"
#include <zlib.h>

using namespace llvm;
using namespace llvm::support;

namespace ptc {

static Error badNpz(StringRef path, const Twine &what) {
  return exitError(exitUsage, "'" + path + "' cannot be read as .npz: " + what);
}

namespace {
struct Entry {
  StringRef name;
  unsigned method = 0;
  uint64_t stored = 0, bytes = 0, offset = 0;
};
} // namespace

/// 64-bit sizes of an entry whose 32-bit fields are all ones stand in an extra field of id 1, in this order.
static void readZip64(StringRef extra, Entry &entry) {
  while (extra.size() >= 4) {
    unsigned id = endian::read16le(extra.data()), size = endian::read16le(extra.data() + 2);
    StringRef field = extra.substr(4, size);
    extra = extra.drop_front(std::min<size_t>(extra.size(), 4 + size));
    if (id != 1)
      continue;
    for (uint64_t *value : {&entry.bytes, &entry.stored, &entry.offset})
      if (*value == UINT32_MAX && field.size() >= 8) {
        *value = endian::read64le(field.data());
        field = field.drop_front(8);
      }
  }
}

/// deflate's own limit: a byte stands for at most 1032, so that a damaged size asks for no more memory than a sound
/// one.
static constexpr uint64_t mostOfByte = 1032;

static Expected<std::string> inflateEntry(StringRef compressed, uint64_t bytes, StringRef path) {
  if (bytes / mostOfByte > compressed.size())
    return badNpz(path, "an array's compressed bytes are damaged");
  std::string result(bytes, '\0');
  z_stream stream = {};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
    return badNpz(path, "zlib cannot start");
  stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(compressed.data()));
  stream.next_out = reinterpret_cast<Bytef *>(result.data());
  uint64_t in = compressed.size(), out = bytes;
  int status = Z_OK;
  while (status == Z_OK) {
    stream.avail_in = static_cast<uInt>(std::min<uint64_t>(in, 1u << 30));
    stream.avail_out = static_cast<uInt>(std::min<uint64_t>(out, 1u << 30));
    in -= stream.avail_in;
    out -= stream.avail_out;
    status = inflate(&stream, Z_NO_FLUSH);
    in += stream.avail_in;
    out += stream.avail_out;
  }
  inflateEnd(&stream);
  if (status != Z_STREAM_END || out != 0)
    return badNpz(path, "an array's compressed bytes are damaged");
  return result;
}

static Expected<std::vector<Entry>> readDirectory(StringRef bytes, StringRef path) {
  size_t end = bytes.rfind(StringRef("PK\5\6", 4));
  if (end == StringRef::npos || bytes.size() - end < 22)
    return badNpz(path, "it has no zip directory");
  unsigned count = endian::read16le(bytes.data() + end + 10);
  uint64_t at = endian::read32le(bytes.data() + end + 16);
  std::vector<Entry> entries;
  for (unsigned i = 0; i < count; ++i) {
    StringRef record = bytes.substr(std::min<uint64_t>(at, bytes.size()));
    if (record.size() < 46 || !record.starts_with(StringRef("PK\1\2", 4)))
      return badNpz(path, "its directory is damaged");
    const char *p = record.data();
    unsigned name = endian::read16le(p + 28), extra = endian::read16le(p + 30), comment = endian::read16le(p + 32);
    Entry entry{record.substr(46, name), endian::read16le(p + 10), endian::read32le(p + 20), endian::read32le(p + 24),
                endian::read32le(p + 42)};
    readZip64(record.substr(46 + name, extra), entry);
    entries.push_back(entry);
    at += 46 + name + extra + comment;
  }
  return entries;
}

Expected<NamedTensors> parseNpz(StringRef bytes, StringRef path) {
  Expected<std::vector<Entry>> entries = readDirectory(bytes, path);
  if (!entries)
    return entries.takeError();
  NamedTensors tensors;
  for (const Entry &entry : *entries) {
    StringRef local = bytes.substr(std::min<uint64_t>(entry.offset, bytes.size()));
    if (local.size() < 30 || !local.starts_with(StringRef("PK\3\4", 4)))
      return badNpz(path, "an entry is damaged");
    uint64_t skip = 30 + endian::read16le(local.data() + 26) + endian::read16le(local.data() + 28);
    if (local.size() < skip || local.size() - skip < entry.stored || entry.bytes > (uint64_t(1) << 40))
      return badNpz(path, "an entry is cut off");
    StringRef stored = local.substr(skip, entry.stored);
    if (entry.method != 0 && entry.method != 8)
      return badNpz(path, "compression method " + Twine(entry.method) + " is not supported");
    Expected<std::string> contents =
        entry.method == 0 ? Expected<std::string>(stored.str()) : inflateEntry(stored, entry.bytes, path);
    if (!contents)
      return contents.takeError();
    Expected<Tensor> tensor = parseNpy(*contents, (path + ":" + entry.name).str());
    if (!tensor)
      return tensor.takeError();
    StringRef name = entry.name;
    name.consume_back(".npy");
    tensors.emplace_back(name.str(), std::move(*tensor));
  }
  return tensors;
}

static void put16(std::string &to, uint64_t value) {
  char raw[2];
  endian::write16le(raw, static_cast<uint16_t>(value));
  to.append(raw, 2);
}
static void put32(std::string &to, uint64_t value) {
  char raw[4];
  endian::write32le(raw, static_cast<uint32_t>(std::min<uint64_t>(value, UINT32_MAX)));
  to.append(raw, 4);
}

/// What the local record and the directory's have in common.
static void putEntryFields(std::string &to, StringRef contents, size_t nameSize) {
  put16(to, 20);
  put16(to, 0);
  put16(to, 0);      // stored
  put16(to, 0);      // 00:00:00
  put16(to, 0x0021); // 1 January 1980
  put32(to, crc32(ArrayRef<uint8_t>(contents.bytes_begin(), contents.size())));
  put32(to, contents.size());
  put32(to, contents.size());
  put16(to, nameSize);
  put16(to, 0);
}

std::string formatNpz(const NamedTensors &tensors) {
  std::string archive, directory;
  for (const auto &[stem, tensor] : tensors) {
    std::string name = stem + ".npy", contents = formatNpy(tensor);
    directory += std::string("PK\1\2", 4);
    put16(directory, 20);
    putEntryFields(directory, contents, name.size());
    put16(directory, 0);
    put16(directory, 0);
    put16(directory, 0);
    put32(directory, 0);
    put32(directory, archive.size());
    directory += name;
    archive += std::string("PK\3\4", 4);
    putEntryFields(archive, contents, name.size());
    archive += name + contents;
  }
  uint64_t start = archive.size();
  archive += directory + std::string("PK\5\6", 4);
  put16(archive, 0);
  put16(archive, 0);
  put16(archive, tensors.size());
  put16(archive, tensors.size());
  put32(archive, directory.size());
  put32(archive, start);
  put16(archive, 0);
  return archive;
}

} // namespace ptc
