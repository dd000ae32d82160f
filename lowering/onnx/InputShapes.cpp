//===- InputShapes.cpp - dims of a model's inputs as symbols --------------===//
#include "lowering/onnx/InputShapes.h"
#include "ir/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;
using namespace ptc;
using namespace ptc::onnx_import;
using decomp::SymbolBounds;
using onnx::ValueInfoProto;
using Inputs = ArrayRef<const ValueInfoProto *>;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

static bool isReserved(StringRef name) {
  if (StringSwitch<bool>(name)
          .Cases({"floordiv", "ceildiv", "mod", "min", "max", "lt", "eq", "select"}, true)
          .Default(false))
    return true;
  StringRef digits = name;
  return (digits.consume_front("d") || digits.consume_front("_")) && !digits.empty() && all_of(digits, isDigit);
}

/// An identifier close to `text` that the expression language does not use itself.
static std::string makeIdentifier(StringRef text) {
  std::string name;
  for (char c : text)
    name.push_back(isAlnum(c) || c == '_' ? c : '_');
  if (name.empty() || isDigit(name.front()) || isReserved(name))
    name = "dim_" + name;
  return name;
}

/// The name under which a dim is known to the file; empty if it has none of its own.
static StringRef dimName(const ValueInfoProto &input, unsigned axis) {
  const onnx::TensorShapeProto &shape = input.type().tensor_type().shape();
  if (int(axis) >= shape.dim_size() || !shape.dim(axis).has_dim_param())
    return "";
  StringRef name = shape.dim(axis).dim_param();
  return name == "?" || name == "-1" ? "" : name;
}

static std::string dimKey(const ValueInfoProto &input, unsigned axis) {
  StringRef name = dimName(input, axis);
  return name.empty() ? (input.name() + "[" + Twine(axis) + "]").str() : name.str();
}

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

bool InputShapes::reject(StringRef option, const Twine &reason, const Twine &help) {
  mlir::InFlightDiagnostic diag = diagnose(loc, DiagId::BadShapeOption, option, reason.str());
  if (!help.isTriviallyEmpty())
    addHelp(diag, help);
  return false;
}

/// Takes a number off the front of `text`; false if there is none, with a reason where it says more than the grammar.
static bool consumeSize(StringRef &text, int64_t &size, std::string &reason) {
  StringRef digits = text.take_while([](char c) { return isDigit(c); });
  text = text.drop_front(digits.size());
  if (digits.empty())
    reason = text.starts_with("-") ? "a size is not negative" : reason;
  else if (digits.getAsInteger(10, size))
    reason = ("the size " + digits + " is more than " + Twine(std::numeric_limits<int64_t>::max())).str();
  else
    return true;
  return false;
}

/// `8`, `1..64`, `1..64:8`, `0..`; otherwise nothing, and `reason` may be replaced by a better one.
static std::optional<SymbolBounds> parseBounds(StringRef text, std::string &reason) {
  SymbolBounds bounds;
  if (!consumeSize(text, bounds.min, reason))
    return std::nullopt;
  bounds.max = bounds.hint = bounds.min;
  if (text.empty())
    return bounds;
  if (!text.consume_front(".."))
    return std::nullopt;
  bounds.max = SymbolBounds().max;
  if (!text.empty() && text.front() != ':' && !consumeSize(text, bounds.max, reason))
    return std::nullopt;
  bounds.hint = std::max(bounds.min, std::min<int64_t>(bounds.max, 1));
  bounds.isHintChosen = text.consume_front(":");
  if (bounds.isHintChosen && !consumeSize(text, bounds.hint, reason))
    return std::nullopt;
  if (!text.empty())
    return std::nullopt;
  std::string range = std::to_string(bounds.min) + ".." + std::to_string(bounds.max);
  if (bounds.max < bounds.min)
    reason = "the range " + range + " is empty: it ends before it begins";
  else if (bounds.hint < bounds.min || bounds.hint > bounds.max)
    reason = "the hint " + std::to_string(bounds.hint) + " is not in the range " + range;
  else
    return bounds;
  return std::nullopt;
}

bool InputShapes::bind(StringRef option, const NamedDim &dim, SymbolBounds value) {
  if (dim.fixed && *dim.fixed != 0)
    return (value.min <= *dim.fixed && *dim.fixed <= value.max) ||
           reject(option, dim.words + " is " + Twine(*dim.fixed) + " in the model",
                  "--dynamic=on makes the sizes in the file free");
  auto [entry, isNew] = bounds.try_emplace(dim.key, value);
  SymbolBounds &known = entry->second;
  bool isSame = known.min == value.min && known.max == value.max;
  return isNew || isSame || reject(option, "dim '" + dim.key + "' has been given another size before");
}

static const ValueInfoProto *findInput(Inputs inputs, StringRef name) {
  auto *found = find_if(inputs, [&](const ValueInfoProto *input) { return name == input->name(); });
  return found == inputs.end() ? nullptr : *found;
}

/// The size that the file gives the dim; 0 is one, of a tensor without elements.
static std::optional<int64_t> sizeInFile(const ValueInfoProto &input, unsigned axis) {
  const onnx::TensorShapeProto &shape = input.type().tensor_type().shape();
  bool isGiven = int(axis) < shape.dim_size() && shape.dim(axis).has_dim_value() && shape.dim(axis).dim_value() >= 0;
  return isGiven ? std::optional(shape.dim(axis).dim_value()) : std::nullopt;
}

/// A user who gives a size knows better than a 0, which some files have where the size is not known.
std::optional<int64_t> InputShapes::fixedSize(const ValueInfoProto &input, unsigned axis) const {
  std::optional<int64_t> size = sizeInFile(input, axis);
  bool isFree = dynamic == DynamicDims::On || (size == 0 && bounds.count(dimKey(input, axis)));
  return isFree ? std::nullopt : size;
}

InputShapes::NamedDim InputShapes::dimAt(const ValueInfoProto &input, unsigned axis) const {
  return {dimKey(input, axis), fixedSize(input, axis), ("dim " + Twine(axis) + " of '" + input.name() + "'").str()};
}

/// `seq`, or `x[2]`.
std::optional<InputShapes::NamedDim> InputShapes::findDim(StringRef option, StringRef name, Inputs inputs) {
  unsigned axis;
  StringRef base = name;
  if (base.consume_back("]")) {
    auto [inputName, digits] = base.rsplit('[');
    const ValueInfoProto *input = findInput(inputs, inputName);
    if (!digits.getAsInteger(10, axis) && input) {
      if (int(axis) < input->type().tensor_type().shape().dim_size())
        return dimAt(*input, axis);
      reject(option, "'" + inputName + "' has no dim " + Twine(axis));
      return std::nullopt;
    }
  }
  std::vector<std::string> known;
  for (const ValueInfoProto *input : inputs)
    for (int i = 0; i < input->type().tensor_type().shape().dim_size(); ++i) {
      StringRef other = dimName(*input, i);
      if (!other.empty() && other == name)
        return NamedDim{name.str()};
      if (other.empty() && makeIdentifier(input->name() + "_" + std::to_string(i)) == name) // as headers call it
        return dimAt(*input, i);
      if (!other.empty() && !llvm::is_contained(known, other))
        known.push_back(other.str());
    }
  reject(option, "no input of the model has a dim '" + name + "'",
         known.empty() ? "its dims have no names; INPUT[AXIS]=SIZE gives one by its place"
                       : "its dims: " + llvm::join(known, ", ") + "; INPUT[AXIS]=SIZE gives one by its place");
  return std::nullopt;
}

bool InputShapes::readDim(StringRef option, Inputs inputs) {
  auto [name, text] = option.rsplit('=');
  std::string reason = "NAME=SIZE, NAME=MIN..MAX or NAME=MIN..MAX:HINT is needed";
  if (name.empty())
    return reject(option, reason);
  std::optional<SymbolBounds> value = parseBounds(text, reason);
  if (!value)
    return reject(option, reason);
  std::optional<NamedDim> dim = findDim(option, name, inputs);
  return dim && bind(option, *dim, *value);
}

bool InputShapes::checkBucket(StringRef option, const NamedDim &dim, ArrayRef<int64_t> sizes) {
  constexpr size_t mostVariants = 64; // each is compiled as a model of its own
  if (dynamic == DynamicDims::Off)
    return reject(option, "--dynamic=off leaves no dim free", "leave one of the two out");
  if (dim.fixed)
    return reject(option, dim.words + " is " + Twine(*dim.fixed) + " in the model, there is nothing to choose",
                  "--dynamic=on makes the sizes in the file free");
  auto bound = bounds.find(dim.key);
  SymbolBounds range = bound == bounds.end() ? SymbolBounds() : bound->second;
  if (range.min == range.max)
    return reject(option, "the dim '" + dim.key + "' is pinned to " + Twine(range.min),
                  "give it a range instead: --dim " + dim.key + "=1.." + Twine(range.max));
  for (auto [number, size] : enumerate(sizes)) {
    if (llvm::is_contained(sizes.take_front(number), size))
      return reject(option, "the size " + Twine(size) + " is named twice");
    if (size < range.min || size > range.max)
      return reject(option,
                    "the size " + Twine(size) + " is not in the range " + Twine(range.min) + ".." + Twine(range.max) +
                        " of '" + dim.key + "'",
                    "--dim " + dim.key + "=" + Twine(std::min(size, range.min)) + ".." +
                        Twine(std::max(size, range.max)) + " makes the range wider");
  }
  if (llvm::any_of(buckets, [&](const auto &bucket) { return bucket.first == dim.key; }))
    return reject(option, "'" + dim.key + "' has buckets already", "name all its sizes in one --bucket");
  size_t variants = sizes.size();
  for (const auto &[key, others] : buckets)
    variants *= others.size();
  return variants <= mostVariants ||
         reject(option, "there would be " + Twine(variants) + " variants, one for each " + "combination of sizes; " +
                            Twine(mostVariants) + " is the most");
}

bool InputShapes::readBucket(StringRef text, Inputs inputs) {
  std::string option = ("--bucket " + text).str();
  auto [name, list] = text.rsplit('=');
  SmallVector<int64_t> sizes;
  std::string reason = "NAME=SIZE,SIZE,... is needed";
  do {
    int64_t size;
    if (name.empty() || !consumeSize(list, size, reason))
      return reject(option, reason);
    sizes.push_back(size);
  } while (list.consume_front(","));
  if (!list.empty())
    return reject(option, reason);
  std::optional<NamedDim> dim = findDim(option, name, inputs);
  if (!dim || !checkBucket(option, *dim, sizes))
    return false;
  buckets.emplace_back(dim->key, sizes);
  return true;
}

bool InputShapes::readShape(StringRef option, Inputs inputs) {
  auto [name, text] = option.rsplit('=');
  const ValueInfoProto *input = findInput(inputs, name);
  if (!input)
    return reject(option, "the model has no input '" + name + "'");
  SmallVector<StringRef> sizes;
  if (!text.empty())
    text.split(sizes, 'x');
  const onnx::TypeProto::Tensor &type = input->type().tensor_type();
  if (type.has_shape() && type.shape().dim_size() != int(sizes.size()))
    return reject(option, "'" + name + "' has " + Twine(type.shape().dim_size()) + " dims");
  ranks[name] = sizes.size();
  for (auto [axis, size] : enumerate(sizes)) {
    if (size == "?")
      continue;
    std::string reason = "NAME=1x3x48x320 is needed, where ? leaves a dim as it is";
    std::optional<SymbolBounds> value = parseBounds(size, reason);
    if (!value)
      return reject(option, reason);
    if (!bind(option, dimAt(*input, axis), *value))
      return false;
  }
  return true;
}

bool InputShapes::readOptions(const ImportOptions &options, Inputs inputs) {
  bool isValid = true;
  for (StringRef shape : options.shapes)
    isValid &= readShape(shape, inputs);
  for (StringRef dim : options.dims)
    isValid &= readDim(dim, inputs);
  for (StringRef bucket : options.buckets)
    isValid = isValid && readBucket(bucket, inputs); // what a size may be is known by now
  return isValid;
}

//===----------------------------------------------------------------------===//
// Dims
//===----------------------------------------------------------------------===//

/// Whether the axis is the height or width of pictures: they have up to four channels, first or last.
static bool isSideOfPicture(const onnx::TensorShapeProto &shape, unsigned axis) {
  auto hasChannels = [&](int at) { return shape.dim(at).dim_value() >= 1 && shape.dim(at).dim_value() <= 4; };
  return shape.dim_size() == 4 && ((axis >= 2 && hasChannels(1)) || ((axis == 1 || axis == 2) && hasChannels(3)));
}

/// Where nothing is said: a batch of one, a usual size of pictures, and a middling size for other dims.
static int64_t defaultHint(const onnx::TensorShapeProto &shape, unsigned axis) {
  return axis == 0 ? 1 : isSideOfPicture(shape, axis) ? 224 : 64;
}

std::optional<SmallVector<Expr>> InputShapes::dimsOf(const ValueInfoProto &input) {
  const onnx::TypeProto::Tensor &type = input.type().tensor_type();
  auto given = ranks.find(input.name());
  if (!type.has_shape() && given == ranks.end()) {
    mlir::InFlightDiagnostic diag = diagnose(loc, DiagId::UnknownRank, input.name());
    addHelp(diag, "give its shape with --shape " + Twine(input.name()) + "=1x3x224x224");
    return std::nullopt;
  }
  unsigned rank = type.has_shape() ? unsigned(type.shape().dim_size()) : given->second;
  SmallVector<Expr> dims;
  for (unsigned axis = 0; axis < rank; ++axis) {
    std::string key = dimKey(input, axis);
    if (std::optional<int64_t> fixed = fixedSize(input, axis)) {
      dims.push_back(shapes.constant(*fixed));
      continue;
    }
    auto bound = bounds.find(key);
    bool isPinned = bound != bounds.end() && bound->second.min == bound->second.max;
    bool isHinted = bound != bounds.end() && bound->second.isHintChosen;
    if (isPinned || (isHinted && dynamic == DynamicDims::Off)) {
      dims.push_back(shapes.constant(bound->second.hint));
      continue;
    }
    if (dynamic == DynamicDims::Off && !llvm::is_contained(unsized, key))
      unsized.push_back(key);
    Expr &symbol = named[key];
    if (!symbol) {
      StringRef name = dimName(input, axis);
      std::string wanted =
          name.empty() ? makeIdentifier(input.name() + "_" + std::to_string(axis)) : makeIdentifier(name);
      SymbolBounds limits;
      std::optional<int64_t> inFile = sizeInFile(input, axis);
      limits.hint = inFile.value_or(0) > 0 ? *inFile : defaultHint(type.shape(), axis);
      limits.min = inFile == 0 ? 0 : limits.min;
      if (bound != bounds.end())
        limits = bound->second;
      symbol = shapes.declare(shapes.unusedName(wanted), limits);
    }
    dims.push_back(symbol);
  }
  return dims;
}

std::string InputShapes::describePins(const ValueInfoProto &input) const {
  SmallVector<std::string> pins;
  for (int axis = 0; axis < input.type().tensor_type().shape().dim_size(); ++axis) {
    std::string key = dimKey(input, axis);
    auto bound = bounds.find(key);
    if (bound != bounds.end() && bound->second.min == bound->second.max && !fixedSize(input, axis))
      pins.push_back("--dim " + key + "=" + std::to_string(bound->second.min));
  }
  return llvm::join(pins, " ");
}

bool InputShapes::checkSizes() {
  std::string all = llvm::join(unsized, ", ");
  return unsized.empty() || reject("--dynamic=off", "no size is given for " + all,
                                   "--dim " + unsized.front() + "=SIZE; of a range, its hint is the size: --dim " +
                                       unsized.front() + "=1..64:8");
}

mlir::DictionaryAttr InputShapes::getBuckets() const {
  mlir::Builder b(shapes.getContext());
  mlir::NamedAttrList list;
  for (const auto &[key, sizes] : buckets)
    list.set(named.at(key).getSymbol(), b.getDenseI64ArrayAttr(sizes));
  return list.empty() ? mlir::DictionaryAttr() : list.getDictionary(shapes.getContext());
}
