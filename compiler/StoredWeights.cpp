// Weights from the model's file to the artefact, through the recipes that PackWeights left in the IR.
//
// A recipe is a strided gather: each dim of the stored form steps a fixed number of elements through the source. The
// innermost dim is a plain loop; the others count like an odometer, so that any number of dims costs one addition a
// row. In panels the lane dim continues the panel dim, and lanes past the limit stay zero, which the target is already.
// Both source and target are mapped files: nothing is held in memory.
#include "compiler/StoredWeights.h"
#include "llvm/Support/Path.h"
#include <cstring>

using namespace llvm;

namespace ptc {

Expected<ArrayRef<char>> WeightFiles::getBytes(prim::WeightRefAttr ref) {
  std::unique_ptr<MemoryBuffer> &file = files[ref.getFile()];
  if (!file) {
    SmallString<128> path(modelPath);
    if (!ref.getFile().empty()) {
      path = sys::path::parent_path(modelPath);
      sys::path::append(path, ref.getFile());
    }
    ErrorOr<std::unique_ptr<MemoryBuffer>> opened = MemoryBuffer::getFile(path, false, false);
    if (!opened)
      return createStringError(opened.getError(), "cannot read '" + path + "': " + opened.getError().message());
    file = std::move(*opened);
    paths.push_back(path.str().str());
  }
  StringRef bytes = file->getBuffer();
  uint64_t offset = ref.getOffset(), size = ref.getSize();
  if (offset > bytes.size() || size > bytes.size() - offset)
    return createStringError(std::make_error_code(std::errc::io_error),
                             "'" + file->getBufferIdentifier() + "' has become shorter while it was read");
  return ArrayRef<char>(bytes.data() + offset, size);
}

//===----------------------------------------------------------------------===//
// Recipes
//===----------------------------------------------------------------------===//

/// Smallest and largest source element that the recipe touches.
static std::pair<int64_t, int64_t> reachOf(loop::RecipeAttr recipe) {
  int64_t least = recipe.getOffset(), most = recipe.getOffset();
  ArrayRef<int64_t> extents = recipe.getExtents(), strides = recipe.getStrides();
  bool isPaneled = recipe.getPanel() >= 0;
  for (size_t i = 0; i < extents.size(); ++i) {
    bool partOfPanels = isPaneled && (int64_t(i) == recipe.getPanel() || int64_t(i) == recipe.getLane());
    if (partOfPanels)
      continue;
    (strides[i] < 0 ? least : most) += (extents[i] - 1) * strides[i];
  }
  if (isPaneled) { // panel and lane together run to the limit
    int64_t lane = recipe.getLane();
    (strides[lane] < 0 ? least : most) += (recipe.getLimit() - 1) * strides[lane];
  }
  return {least, most};
}

template <typename T> static void gather(loop::RecipeAttr recipe, const T *source, T *target) {
  ArrayRef<int64_t> extents = recipe.getExtents(), strides = recipe.getStrides();
  int64_t rank = extents.size(), inner = rank - 1;
  int64_t count = 1;
  for (int64_t extent : extents.drop_back())
    count *= extent;
  SmallVector<int64_t> index(rank, 0);
  int64_t position = recipe.getOffset(), innerExtent = extents[inner], innerStride = strides[inner];
  int64_t panel = recipe.getPanel(), lane = recipe.getLane(), lanes = panel >= 0 ? extents[lane] : 0;
  for (int64_t row = 0; row < count; ++row, target += innerExtent) {
    int64_t end = innerExtent;
    if (panel >= 0 && lane == inner)
      end = std::clamp<int64_t>(recipe.getLimit() - index[panel] * lanes, 0, innerExtent);
    else if (panel >= 0 && panel == inner)
      end = std::clamp<int64_t>((recipe.getLimit() - index[lane] + lanes - 1) / lanes, 0, innerExtent);
    else if (panel >= 0 && index[panel] * lanes + index[lane] >= recipe.getLimit())
      end = 0;
    if (innerStride == 1)
      std::memcpy(target, source + position, end * sizeof(T));
    else
      for (int64_t i = 0; i < end; ++i)
        target[i] = source[position + i * innerStride];
    for (int64_t dim = inner - 1; dim >= 0; --dim) {
      position += strides[dim];
      if (++index[dim] < extents[dim])
        break;
      position -= strides[dim] * extents[dim];
      index[dim] = 0;
    }
  }
}

Error applyRecipe(loop::RecipeAttr recipe, unsigned elementBytes, ArrayRef<char> source, MutableArrayRef<char> target) {
  auto internal = [](const Twine &what) { return createStringError(inconvertibleErrorCode(), what); };
  uint64_t needed = elementBytes;
  for (int64_t extent : recipe.getExtents())
    needed *= extent;
  if (needed != target.size())
    return internal("a weight's recipe makes " + Twine(needed) + " bytes where " + Twine(target.size()) +
                    " are stored");
  if (target.empty())
    return Error::success();
  auto [least, most] = reachOf(recipe);
  if (least < 0 || static_cast<uint64_t>(most + 1) * elementBytes > source.size())
    return internal("a weight's recipe reads outside its source");
  auto run = [&]<typename T>(T) {
    gather(recipe, reinterpret_cast<const T *>(source.data()), reinterpret_cast<T *>(target.data()));
  };
  switch (elementBytes) {
  case 1:
    return run(uint8_t()), Error::success();
  case 2:
    return run(uint16_t()), Error::success();
  case 4:
    return run(uint32_t()), Error::success();
  case 8:
    return run(uint64_t()), Error::success();
  }
  return internal("a weight has elements of " + Twine(elementBytes) + " bytes");
}

//===----------------------------------------------------------------------===//
// Collection
//===----------------------------------------------------------------------===//

static std::string keyOf(loop::WeightOp weight) {
  std::string key;
  raw_string_ostream os(key);
  prim::WeightRefAttr ref = weight.getRef();
  os << ref.getFile() << ':' << ref.getOffset() << ':' << ref.getSize() << ':';
  if (loop::RecipeAttr recipe = weight.getRecipeAttr())
    os << mlir::Attribute(recipe);
  return key;
}

static host::Weight describe(loop::WeightOp weight, uint64_t bytes) {
  auto type = cast<loop::BufferType>(weight.getType());
  mlir::Type element = type.getElementType();
  host::Weight shown{.name = weight.getRef().getName().str(), .storedBytes = bytes};
  unsigned bits = element.getIntOrFloatBitWidth();
  bool isFloat = isa<mlir::FloatType>(element);
  // DLPack's codes of runtime/include/ptc/abi.h: 0 integer, 2 float, 4 bfloat, 6 boolean.
  uint8_t code = element.isBF16() ? 4 : isFloat ? 2 : bits == 1 ? 6 : 0;
  shown.dtype = {code, static_cast<uint8_t>(bits == 1 ? 8 : bits)};
  for (Expr extent : type.getShape())
    shown.shape.push_back(extent.getValue());
  return shown;
}

Expected<StoredWeights> StoredWeights::collect(mlir::ModuleOp module, WeightFiles &files) {
  StoredWeights weights;
  StringMap<size_t> known;
  Error error = Error::success();
  module.walk([&](loop::WeightOp weight) {
    if (error)
      return mlir::WalkResult::interrupt();
    auto [entry, isNew] = known.try_emplace(keyOf(weight), weights.blobs.size());
    weights.indices[weight] = entry->second;
    if (!isNew)
      return mlir::WalkResult::advance();
    Expected<ArrayRef<char>> source = files.getBytes(weight.getRef());
    if (!source) {
      error = source.takeError();
      return mlir::WalkResult::interrupt();
    }
    auto type = cast<loop::BufferType>(weight.getType());
    unsigned elementBytes = type.getElementBytes();
    uint64_t bytes = elementBytes * type.getElementCount().getValue();
    loop::RecipeAttr recipe = weight.getRecipeAttr();
    artifact::WeightBlob blob{.name = weight.getRef().getName().str(), .bytes = bytes, .key = entry->getKey().str()};
    blob.fill = [recipe, elementBytes, source = *source](MutableArrayRef<char> target) -> Error {
      if (recipe)
        return applyRecipe(recipe, elementBytes, source, target);
      if (source.size() != target.size())
        return createStringError(inconvertibleErrorCode(), "a weight's stored size is not that of its source");
      std::memcpy(target.data(), source.data(), target.size());
      return Error::success();
    };
    bool isPlainFloat =
        isa<mlir::FloatType>(type.getElementType()) && type.getElementType().getIntOrFloatBitWidth() > 8;
    if (!recipe && isPlainFloat && !blob.name.empty())
      weights.shown.push_back(describe(weight, bytes));
    weights.blobs.push_back(std::move(blob));
    return mlir::WalkResult::advance();
  });
  if (error)
    return std::move(error);
  weights.layout = artifact::layOutWeights(weights.blobs);
  for (host::Weight &shown : weights.shown)
    for (size_t i = 0; i < weights.blobs.size(); ++i)
      if (weights.blobs[i].name == shown.name && weights.blobs[i].bytes == shown.storedBytes)
        shown.offset = weights.layout.offsets[i];
  return weights;
}

} // namespace ptc
