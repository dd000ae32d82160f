#include "compiler/artifact/Weights.h"
#include "compiler/artifact/MappedFile.h"
#include "runtime/include/ptc/descriptor.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/MathExtras.h"
#include <cassert>
#include <cstring>

using namespace llvm;

namespace ptc::artifact {

WeightLayout layOutWeights(ArrayRef<WeightBlob> blobs) {
  WeightLayout layout;
  StringMap<size_t> first;
  for (size_t i = 0; i < blobs.size(); ++i) {
    const WeightBlob &blob = blobs[i];
    assert(isPowerOf2_64(blob.align) && blob.align <= 4096 && "the section is aligned to 4096 bytes");
    size_t writer = blob.key.empty() ? i : first.try_emplace(blob.key, i).first->second;
    assert(blobs[writer].bytes == blob.bytes && "equal keys name equal contents");
    if (writer == i) {
      layout.offsets.push_back(alignTo(layout.bytes, blob.align));
      layout.bytes = layout.offsets.back() + blob.bytes;
    } else {
      layout.offsets.push_back(layout.offsets[writer]);
    }
    layout.writer.push_back(writer);
  }
  return layout;
}

Digest digestOf(ArrayRef<char> bytes, unsigned jobs) {
  constexpr size_t block = 1 << 20;
  std::vector<std::array<uint8_t, 32>> blocks(divideCeil(bytes.size(), block));
  auto hash = [&](size_t i) -> Error {
    ArrayRef<char> part = bytes.drop_front(i * block).take_front(block);
    blocks[i] = BLAKE3::hash({reinterpret_cast<const uint8_t *>(part.data()), part.size()});
    return Error::success();
  };
  cantFail(parallelFor(jobs, blocks.size(), hash));
  return BLAKE3::hash({reinterpret_cast<const uint8_t *>(blocks.data()), blocks.size() * 32});
}

Expected<Digest> fillWeights(ArrayRef<WeightBlob> blobs, const WeightLayout &layout, MutableArrayRef<char> target,
                             unsigned jobs) {
  assert(target.size() == layout.bytes);
  auto fill = [&](size_t i) -> Error {
    if (layout.writer[i] != i)
      return Error::success();
    return blobs[i].fill(target.slice(layout.offsets[i], blobs[i].bytes));
  };
  if (Error error = parallelFor(jobs, blobs.size(), fill))
    return error;
  return digestOf(target, jobs);
}

Expected<Digest> writeWeightsFile(StringRef path, ArrayRef<WeightBlob> blobs, const WeightLayout &layout,
                                  unsigned jobs) {
  Expected<MappedFile> file = MappedFile::extend(path, PTC_RT_WEIGHTS_START + layout.bytes);
  if (!file)
    return file.takeError();
  MutableArrayRef<char> bytes = file->bytes();
  Expected<Digest> digest = fillWeights(blobs, layout, bytes.drop_front(PTC_RT_WEIGHTS_START), jobs);
  if (!digest)
    return digest.takeError();
  ptc_rt_weights_header header = {};
  std::memcpy(header.magic, PTC_RT_WEIGHTS_MAGIC, sizeof(header.magic));
  header.bytes = layout.bytes;
  std::memcpy(header.digest, digest->data(), digest->size());
  std::memcpy(bytes.data(), &header, sizeof(header));
  return digest;
}

} // namespace ptc::artifact
