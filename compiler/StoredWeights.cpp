// Weights from the model's file to the artefact, through the recipes that PackWeights left in the IR.
//
// A recipe is a strided gather: each dim of the stored form steps a fixed number of elements through the source. The
// innermost dim is a plain loop; the others count like an odometer, so that any number of dims costs one addition a
// row. In panels the lane dim continues the panel dim, and lanes past the limit stay zero, which the target is already.
// Both source and target are mapped files: nothing is held in memory.
#include "compiler/StoredWeights.h"
#include "codegen/host/HostModule.h"
#include "ir/loop/Winograd.h"
#include "ir/prim/WeightAttrs.h"
#include "runtime/include/ptc/descriptor.h"
#include "runtime/include/ptc/narrow.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/Path.h"
#include <cstring>
#include <numeric>
#include <set>

using namespace llvm;

namespace ptc {

/// The bytes of a file beside the model, or of the model itself if the name is empty.
Expected<StringRef> WeightFiles::open(StringRef name) {
  std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<MemoryBuffer> &file = files[name];
  if (!file) {
    SmallString<128> path(modelPath);
    if (!name.empty()) {
      path = sys::path::parent_path(modelPath);
      sys::path::append(path, name);
    }
    ErrorOr<std::unique_ptr<MemoryBuffer>> opened = MemoryBuffer::getFile(path, false, false);
    if (!opened)
      return createStringError(opened.getError(), "cannot read '" + path + "': " + opened.getError().message());
    file = std::move(*opened);
  }
  return file->getBuffer();
}

Expected<ArrayRef<char>> WeightFiles::getBytes(prim::WeightRefAttr ref) {
  Expected<StringRef> bytes = open(ref.getFile());
  if (!bytes)
    return bytes.takeError();
  uint64_t offset = ref.getOffset(), size = ref.getSize();
  if (offset > bytes->size() || size > bytes->size() - offset)
    return createStringError(std::make_error_code(std::errc::io_error),
                             "'" + (ref.getFile().empty() ? StringRef(modelPath) : ref.getFile()) +
                                 "' has become shorter while it was read");
  return ArrayRef<char>(bytes->data() + offset, size);
}

prim::WeightRefAttr WeightFiles::keep(mlir::MLIRContext *context, ArrayRef<char> bytes) {
  std::string name = "computed:" + toHex(BLAKE3::hash({reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()}));
  std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<MemoryBuffer> &file = files[name];
  if (!file)
    file = MemoryBuffer::getMemBufferCopy(StringRef(bytes.data(), bytes.size()));
  return prim::WeightRefAttr::get(context, "", name, 0, int64_t(bytes.size()));
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

/// The tensor type that the model declares.
static mlir::RankedTensorType sourceTypeOf(loop::WeightOp weight) {
  auto attribute = weight->getAttrOfType<mlir::TypeAttr>(prim::sourceTypeAttr);
  return attribute ? dyn_cast<mlir::RankedTensorType>(attribute.getValue()) : mlir::RankedTensorType();
}

/// Whether floats of 32 bits are stored in 16.
static bool isNarrowed(loop::WeightOp weight) {
  mlir::RankedTensorType declared = sourceTypeOf(weight);
  mlir::Type stored = cast<loop::BufferType>(weight.getType()).getElementType();
  return declared && declared.getElementType().isF32() && (stored.isF16() || stored.isBF16());
}

static std::string keyOf(loop::WeightOp weight) {
  std::string key;
  raw_string_ostream os(key);
  for (prim::WeightRefAttr ref : weight.getRefs())
    os << ref.getFile() << ':' << ref.getOffset() << ':' << ref.getSize() << ':';
  if (loop::RecipeAttr recipe = weight.getRecipeAttr())
    os << mlir::Attribute(recipe);
  if (mlir::Attribute tile = weight->getAttr(loop::winogradAttr))
    os << ":winograd" << tile;
  if (auto bits = weight->getAttrOfType<mlir::IntegerAttr>(prim::packedBitsAttr))
    os << ":packed" << bits.getInt();
  if (mlir::Attribute turned = weight->getAttr(prim::turnedAttr))
    os << ":turned" << turned;
  if (isNarrowed(weight))
    os << ':' << cast<loop::BufferType>(weight.getType()).getElementType();
  return key;
}

/// Elements of less than a byte lie packed in the model's file, the first in the low bits, and one a byte where kernels
/// read them.
static std::vector<char> unpack(ArrayRef<char> packed, unsigned bits) {
  std::vector<char> elements;
  unsigned pending = 0, count = 0; // bits that were read, an element of 6 may lie in two bytes
  for (char byte : packed)
    for (pending |= unsigned(static_cast<uint8_t>(byte)) << count, count += 8; count >= bits; count -= bits) {
      elements.push_back(char(pending & ((1u << bits) - 1)));
      pending >>= bits;
    }
  return elements;
}

/// The inverse: elements that lie one a byte, side by side in as few bytes as hold them.
static void pack(ArrayRef<char> elements, unsigned bits, MutableArrayRef<char> target) {
  unsigned perByte = 8 / bits, mask = (1u << bits) - 1;
  for (auto [index, element] : llvm::enumerate(elements)) {
    unsigned part = (unsigned(static_cast<uint8_t>(element)) & mask) << index % perByte * bits;
    target[index / perByte] = char(unsigned(static_cast<uint8_t>(target[index / perByte])) | part);
  }
}

/// Floats of 32 bits, rounded as set_weight rounds them.
static std::vector<char> narrow(ArrayRef<char> floats, bool isBfloat) {
  std::vector<char> narrowed(floats.size() / 2);
  for (size_t i = 0; i < floats.size() / 4; ++i) {
    uint32_t bits;
    std::memcpy(&bits, &floats[i * 4], sizeof(bits));
    uint16_t half = isBfloat ? ptc_rt_bfloat_bits(bits) : ptc_rt_half_bits(bits);
    std::memcpy(&narrowed[i * 2], &half, sizeof(half));
  }
  return narrowed;
}

/// The gathered planes lie at the start of what they are transformed to.
static Error fillTransformed(loop::RecipeAttr recipe, loop::WinogradTile tile, ArrayRef<char> source,
                             MutableArrayRef<char> target) {
  size_t gathered = target.size() / size_t(tile.positions()) * size_t(tile.elements());
  if (Error error = applyRecipe(recipe, sizeof(float), source, target.take_front(gathered)))
    return error;
  loop::transformWinogradWeights(tile, {reinterpret_cast<float *>(target.data()), target.size() / sizeof(float)});
  return Error::success();
}

static Error fillStored(loop::RecipeAttr recipe, unsigned elementBytes, ArrayRef<char> source,
                        MutableArrayRef<char> target) {
  if (recipe)
    return applyRecipe(recipe, elementBytes, source, target);
  if (source.size() != target.size())
    return createStringError(inconvertibleErrorCode(), "a weight's stored size is not that of its source");
  std::memcpy(target.data(), source.data(), target.size());
  return Error::success();
}

/// How many rows each of several weights has that lie one behind another along the first dim; empty if they lie along a
/// new one.
static ArrayRef<int64_t> partRowsOf(loop::WeightOp weight) {
  auto rows = weight->getAttrOfType<mlir::DenseI64ArrayAttr>(prim::partRowsAttr);
  return rows ? rows.asArrayRef() : ArrayRef<int64_t>();
}

/// Rows and columns of a weight's part that is a matrix, as kernels have it.
static std::pair<int64_t, int64_t> shapeOfPart(loop::WeightOp weight, size_t part) {
  ArrayRef<int64_t> shape = sourceTypeOf(weight).getShape(), rows = partRowsOf(weight);
  bool isTurned = prim::isTurnedPart(weight, 0); // the declared type is that of the first
  return {rows.empty() ? shape[isTurned ? 1 : 0] : rows[part], shape[isTurned ? 0 : 1]};
}

/// The transpose of a matrix with so many columns.
static std::vector<char> turn(ArrayRef<char> matrix, size_t columns, size_t elementBytes) {
  std::vector<char> turned(matrix.size());
  size_t rows = matrix.size() / (columns * elementBytes);
  for (size_t row = 0; row < rows; ++row)
    for (size_t column = 0; column < columns; ++column)
      std::memcpy(&turned[(column * rows + row) * elementBytes], &matrix[(row * columns + column) * elementBytes],
                  elementBytes);
  return turned;
}

/// The elements of a weight, or of several one behind another, as kernels have them: each in bytes of its own,
/// rounded where the stored ones are narrower, and turned where their transposes lie so.
class Elements {
public:
  Elements(loop::WeightOp weight, std::vector<ArrayRef<char>> sources) : sources(std::move(sources)) {
    mlir::Type type = cast<loop::BufferType>(weight.getType()).getElementType();
    auto packedBits = weight->getAttrOfType<mlir::IntegerAttr>(prim::packedBitsAttr);
    unsigned width = packedBits ? unsigned(packedBits.getInt()) : type.getIntOrFloatBitWidth();
    mlir::RankedTensorType declared = sourceTypeOf(weight);
    narrows = isNarrowed(weight);
    isBfloat = type.isBF16();
    bits = width != 1 && width < 8 && declared ? width : 0;
    count = bits ? size_t(declared.getNumElements()) : 0;
    for (size_t part = 0; part < this->sources.size(); ++part)
      turnedRows.push_back(prim::isTurnedPart(weight, part) ? shapeOfPart(weight, part).first : 0);
    elementBytes = cast<loop::BufferType>(weight.getType()).getElementBytes();
  }

  /// Calls `use` with the bytes.
  Error withBytes(function_ref<Error(ArrayRef<char>)> use) const {
    if (sources.size() == 1 && !narrows && !bits)
      return use(sources.front());
    std::vector<char> all;
    for (auto [part, source] : llvm::enumerate(sources)) {
      std::vector<char> elements = convert(source);
      llvm::append_range(all, turnedRows[part] ? turn(elements, size_t(turnedRows[part]), elementBytes) : elements);
    }
    return use(all);
  }

private:
  std::vector<char> convert(ArrayRef<char> source) const {
    if (narrows)
      return narrow(source, isBfloat);
    if (!bits)
      return source.vec();
    std::vector<char> elements = unpack(source, bits);
    elements.resize(count); // the last byte may be part filled
    return elements;
  }

  std::vector<ArrayRef<char>> sources;
  bool narrows, isBfloat;
  unsigned bits;                   // of elements that share bytes, or 0
  size_t count;                    // of those, in each weight
  SmallVector<int64_t> turnedRows; // of each weight's transpose, if it is to be turned; else 0
  size_t elementBytes;
};

static std::function<Error(MutableArrayRef<char>)> filler(loop::WeightOp weight, std::vector<ArrayRef<char>> sources) {
  loop::RecipeAttr recipe = weight.getRecipeAttr();
  unsigned elementBytes = cast<loop::BufferType>(weight.getType()).getElementBytes();
  auto packedBits = weight->getAttrOfType<mlir::IntegerAttr>(prim::packedBitsAttr);
  return [=, elements = Elements(weight, std::move(sources)), tile = loop::getWinogradTile(weight.getOperation()),
          packed = packedBits ? unsigned(packedBits.getInt()) : 8](MutableArrayRef<char> target) {
    return elements.withBytes([&](ArrayRef<char> source) -> Error {
      if (tile)
        return fillTransformed(recipe, tile, source, target);
      if (packed >= 8)
        return fillStored(recipe, elementBytes, source, target);
      std::vector<char> gathered(target.size() * (8 / packed));
      if (Error error = applyRecipe(recipe, elementBytes, source, gathered))
        return error;
      pack(gathered, packed, target);
      return Error::success();
    });
  };
}

/// Small constants (biases, tables of indices) stay where code and its data lie.
static constexpr int64_t largestSmallConstant = 4096; // bytes

/// The bytes of a constant that is to lie among the weights; empty if it does not.
static ArrayRef<char> storedBytes(loop::ConstantOp constant) {
  auto elements = dyn_cast<mlir::DenseElementsAttr>(constant.getValue());
  if (!elements || elements.isSplat() || !elements.getElementType().isIntOrFloat() ||
      elements.getElementType().getIntOrFloatBitWidth() % 8 != 0)
    return {};
  ArrayRef<char> bytes = elements.getRawData();
  return int64_t(bytes.size()) <= largestSmallConstant ? ArrayRef<char>() : bytes;
}

void StoredWeights::place(size_t module, mlir::Operation *op, artifact::WeightBlob blob) {
  auto [entry, isNew] = known.try_emplace(blob.key, blobs.size());
  indices[op] = entry->second;
  if (isNew) {
    blobs.push_back(std::move(blob));
    users.emplace_back(module, module);
  }
  users[entry->second].second = module;
}

static artifact::WeightBlob blobOf(loop::ConstantOp constant, ArrayRef<char> bytes) {
  auto hash = BLAKE3::hash({reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()});
  return {.name = "a constant",
          .bytes = bytes.size(),
          .key = "constant:" + toHex(hash),
          .fill = [bytes](MutableArrayRef<char> target) {
            llvm::copy(bytes, target.begin());
            return Error::success();
          }};
}

static Expected<artifact::WeightBlob> blobOf(loop::WeightOp weight, WeightFiles &files) {
  std::vector<ArrayRef<char>> sources;
  for (prim::WeightRefAttr ref : weight.getRefs()) {
    Expected<ArrayRef<char>> source = files.getBytes(ref);
    if (!source)
      return source.takeError();
    sources.push_back(*source);
  }
  auto type = cast<loop::BufferType>(weight.getType());
  return artifact::WeightBlob{.name = weight.getRef().getName().str(),
                              .bytes = type.getElementBytes() * uint64_t(type.getElementCount().getValue()),
                              .key = keyOf(weight),
                              .fill = filler(weight, std::move(sources))};
}

Error StoredWeights::collectFrom(size_t number, mlir::ModuleOp module, WeightFiles &files, bool withConstants) {
  Error error = Error::success();
  module.walk([&](mlir::Operation *op) {
    if (auto constant = dyn_cast<loop::ConstantOp>(op)) {
      if (ArrayRef<char> bytes = storedBytes(constant); withConstants && !bytes.empty())
        place(number, op, blobOf(constant, bytes));
    } else if (auto weight = dyn_cast<loop::WeightOp>(op)) {
      Expected<artifact::WeightBlob> blob = blobOf(weight, files);
      if (!blob) {
        error = joinErrors(std::move(error), blob.takeError());
        return mlir::WalkResult::interrupt();
      }
      place(number, op, std::move(*blob));
    }
    return mlir::WalkResult::advance();
  });
  return error;
}

/// Sorted by who uses them, so that a target's weights lie together: first those of the first target alone, then those
/// that it shares with the next.
void StoredWeights::layOut(size_t modules) {
  SmallVector<size_t> order = llvm::to_vector(llvm::seq(blobs.size()));
  llvm::stable_sort(order, [&](size_t a, size_t b) { return users[a] < users[b]; });
  std::vector<artifact::WeightBlob> sorted;
  std::vector<std::pair<size_t, size_t>> sortedUsers;
  SmallVector<size_t> places(order.size());
  for (size_t blob : order) {
    places[blob] = sorted.size();
    sorted.push_back(std::move(blobs[blob]));
    sortedUsers.push_back(users[blob]);
  }
  blobs = std::move(sorted);
  users = std::move(sortedUsers);
  for (auto &[op, index] : indices)
    index = places[index];
  known.clear();

  layout = artifact::layOutWeights(blobs);
  for (size_t module = 0; module < modules; ++module) {
    uint64_t begin = layout.bytes, end = 0, align = 1;
    for (auto [index, blob] : llvm::enumerate(blobs)) {
      auto [first, last] = users[index];
      if (module < first || module > last)
        continue;
      align = std::max<uint64_t>(align, blob.align);
      begin = std::min(begin, layout.offsets[index]);
      end = std::max(end, layout.offsets[index] + blob.bytes);
    }
    ranges.emplace_back(alignDown(std::min(begin, end), align), end);
  }
}

Expected<StoredWeights> StoredWeights::collect(ArrayRef<mlir::ModuleOp> modules, WeightFiles &files,
                                               bool withConstants) {
  StoredWeights weights;
  for (auto [number, module] : llvm::enumerate(modules))
    if (Error error = weights.collectFrom(number, module, files, withConstants))
      return std::move(error);
  weights.layOut(modules.size());
  weights.describeAll(modules);
  return weights;
}

//===----------------------------------------------------------------------===//
// What a caller may replace
//===----------------------------------------------------------------------===//

/// Whether the stored form is that of each of the op's weights, one behind another.
static bool isOfParts(loop::WeightOp weight) {
  loop::RecipeAttr recipe = weight.getRecipeAttr();
  if (!weight.getOthersAttr() || !recipe)
    return true;
  if (ArrayRef<int64_t> rows = partRowsOf(weight); !rows.empty())
    return recipe.getPanel() == 0 && recipe.getOffset() == 0 && llvm::all_of(rows, [&](int64_t count) {
             return count % recipe.getExtents()[size_t(recipe.getLane())] == 0;
           });
  mlir::RankedTensorType declared = sourceTypeOf(weight);
  return declared && recipe.getPanel() != 0 && recipe.getOffset() == 0 &&
         recipe.getExtents().front() == int64_t(weight.getRefs().size()) &&
         recipe.getStrides().front() == declared.getNumElements();
}

/// The same of the transpose.
static void turn(host::Recipe &part, std::pair<int64_t, int64_t> shape) {
  auto [rows, terms] = shape;
  for (int64_t &stride : part.strides)
    stride = stride / terms + stride % terms * rows;
}

/// How a matrix, one of several, is stored: its own panels where they lie along the first dim, or rows.
static host::Recipe describeRows(loop::WeightOp weight, unsigned elementBytes, std::pair<int64_t, int64_t> shape) {
  loop::RecipeAttr recipe = weight.getRecipeAttr();
  auto [rows, terms] = shape;
  host::Recipe part{.elementBytes = elementBytes, .extents = {rows, terms}, .strides = {terms, 1}};
  if (recipe) {
    part.extents = recipe.getExtents().vec();
    part.extents[0] = rows / recipe.getExtents()[size_t(recipe.getLane())];
    part.strides = recipe.getStrides().vec();
    part.panel = recipe.getPanel();
    part.lane = recipe.getLane();
    part.limit = rows;
  }
  return part;
}

/// How the op's weight number `number` is stored.
static std::optional<host::Recipe> describe(loop::WeightOp weight, unsigned elementBytes, size_t number) {
  loop::RecipeAttr recipe = weight.getRecipeAttr();
  bool isTurned = prim::isTurnedPart(weight, number);
  if (recipe ? !partRowsOf(weight).empty() : isTurned) {
    host::Recipe part = describeRows(weight, elementBytes, shapeOfPart(weight, number));
    if (isTurned)
      turn(part, shapeOfPart(weight, number));
    return part;
  }
  if (!recipe)
    return std::nullopt;
  int64_t outer = weight.getOthersAttr() ? 1 : 0; // the dim that counts the weights
  std::vector<double> transform;
  loop::WinogradTile tile = loop::getWinogradTile(weight.getOperation());
  if (tile)
    llvm::append_range(transform, loop::getWinogradWeightMatrix(tile));
  if (tile.isVolume())
    llvm::append_range(transform, loop::getWinogradWeightMatrix(tile.alongDepth()));
  host::Recipe part{.elementBytes = elementBytes,
                    .offset = recipe.getOffset(),
                    .extents = recipe.getExtents().drop_front(outer).vec(),
                    .strides = recipe.getStrides().drop_front(outer).vec(),
                    .panel = recipe.getPanel() < 0 ? -1 : recipe.getPanel() - outer,
                    .lane = recipe.getPanel() < 0 ? recipe.getLane() : recipe.getLane() - outer,
                    .limit = recipe.getLimit(),
                    .transform = std::move(transform),
                    .transformColumns = tile.taps,
                    .transformDims = tile.dims(),
                    .depthRows = tile.isVolume() ? tile.planes() : 0};
  if (isTurned)
    turn(part, shapeOfPart(weight, number));
  return part;
}

static StringSet<> foldedNames(mlir::ModuleOp module) {
  StringSet<> names;
  for (auto program : module.getOps<loop::ProgramOp>())
    if (auto folded = program->getAttrOfType<mlir::ArrayAttr>(prim::foldedWeightsAttr))
      for (auto name : folded.getAsRange<mlir::StringAttr>())
        names.insert(name.getValue());
  return names;
}

// Names for the same bytes of a file are one weight: they stay equal whichever is replaced. A weight of which a part
// was computed with is none that can be replaced, nor is one whose elements share bytes.
std::vector<host::Weight> StoredWeights::describe(mlir::ModuleOp module) const {
  StringSet<> hidden = foldedNames(module);
  using Place = std::tuple<StringRef, int64_t, int64_t>;
  auto placeOf = [](prim::WeightRefAttr ref) { return Place(ref.getFile(), ref.getOffset(), ref.getSize()); };
  MapVector<Place, std::vector<host::StoredForm>> forms;
  std::set<Place> hiddenPlaces;
  DenseSet<size_t> seen;
  module.walk([&](loop::WeightOp weight) {
    auto type = cast<loop::BufferType>(weight.getType());
    loop::RecipeAttr recipe = weight.getRecipeAttr();
    mlir::RankedTensorType declared = sourceTypeOf(weight);
    unsigned bits = type.getElementType().getIntOrFloatBitWidth();
    bool isHidden = !declared || (bits < 8 && bits != 1) || weight->hasAttr(prim::packedBitsAttr) ||
                    !isOfParts(weight) || (recipe && recipe.getExtents().size() > PTC_RT_RECIPE_DIMS);
    size_t index = indices.lookup(weight);
    bool isNew = seen.insert(index).second;
    SmallVector<prim::WeightRefAttr> refs = weight.getRefs();
    ArrayRef<int64_t> rows = partRowsOf(weight);
    uint64_t allRows = std::accumulate(rows.begin(), rows.end(), uint64_t(0)), offset = layout.offsets[index];
    for (auto [part, ref] : llvm::enumerate(refs)) {
      Place place = placeOf(ref);
      uint64_t all = blobs[index].bytes, bytes = allRows ? all / allRows * uint64_t(rows[part]) : all / refs.size();
      if (isHidden || hidden.contains(ref.getName()) || ref.getName().empty())
        hiddenPlaces.insert(place);
      if (isNew)
        forms[place].push_back(
            {offset, bytes, ptc::describe(weight, type.getElementBytes(), part),
             isNarrowed(weight) ? host::dtypeOf(type.getElementType()) : std::optional<host::DType>()});
      offset += bytes;
    }
  });
  StringSet<> names;
  std::vector<host::Weight> replaceable;
  module.walk([&](loop::WeightOp weight) {
    for (auto [part, ref] : llvm::enumerate(weight.getRefs())) {
      Place place = placeOf(ref);
      if (hiddenPlaces.count(place) || !names.insert(ref.getName()).second)
        continue;
      mlir::RankedTensorType declared = sourceTypeOf(weight);
      std::vector<int64_t> shape = declared.getShape().vec();
      bool isTurned = prim::isTurnedPart(weight, part);
      if (isTurned != prim::isTurnedPart(weight, 0))
        std::swap(shape[0], shape[1]);
      if (ArrayRef<int64_t> rows = partRowsOf(weight); !rows.empty())
        shape[isTurned ? 1 : 0] = rows[part];
      replaceable.push_back({.name = ref.getName().str(),
                             .dtype = host::dtypeOf(declared.getElementType()),
                             .shape = std::move(shape),
                             .forms = forms[place]});
    }
  });
  return replaceable;
}

/// The library shows one list: what only some targets could replace is left out.
void StoredWeights::describeAll(ArrayRef<mlir::ModuleOp> modules) {
  std::vector<std::vector<host::Weight>> all;
  StringMap<size_t> count;
  for (mlir::ModuleOp module : modules)
    for (const host::Weight &weight : all.emplace_back(describe(module)))
      ++count[weight.name];
  for (const std::vector<host::Weight> &weights : all) {
    StringMap<const host::Weight *> byName;
    for (const host::Weight &weight : weights)
      byName[weight.name] = &weight;
    std::vector<host::Weight> &common = shown.emplace_back();
    for (const host::Weight &weight : all.front())
      if (count[weight.name] == modules.size())
        common.push_back(*byName[weight.name]);
  }
}

} // namespace ptc
