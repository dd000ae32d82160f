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

/// `8`, `1..64`, `1..64:8`; otherwise nothing, and `reason` may be replaced by a better one.
static std::optional<SymbolBounds> parseBounds(StringRef text, std::string &reason) {
  SymbolBounds bounds;
  if (!consumeSize(text, bounds.min, reason))
    return std::nullopt;
  bounds.max = bounds.hint = bounds.min;
  if (text.empty())
    return bounds;
  if (!text.consume_front("..") || !consumeSize(text, bounds.max, reason))
    return std::nullopt;
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

bool InputShapes::bindKey(StringRef option, StringRef key, SymbolBounds value) {
  auto [entry, isNew] = bounds.try_emplace(key, value);
  SymbolBounds &known = entry->second;
  bool isSame = known.min == value.min && known.max == value.max;
  return isNew || isSame || reject(option, "dim '" + key + "' has been given another size before");
}

bool InputShapes::bind(StringRef option, const ValueInfoProto &input, unsigned axis, SymbolBounds value) {
  const onnx::TensorShapeProto &shape = input.type().tensor_type().shape();
  if (int(axis) < shape.dim_size() && shape.dim(axis).dim_value() > 0) {
    int64_t fixed = shape.dim(axis).dim_value();
    return (value.min <= fixed && fixed <= value.max) ||
           reject(option, "dim " + Twine(axis) + " of '" + input.name() + "' is " + Twine(fixed) + " in the model");
  }
  return bindKey(option, dimKey(input, axis), value);
}

static const ValueInfoProto *findInput(Inputs inputs, StringRef name) {
  auto *found = find_if(inputs, [&](const ValueInfoProto *input) { return name == input->name(); });
  return found == inputs.end() ? nullptr : *found;
}

bool InputShapes::readDim(StringRef option, Inputs inputs) {
  auto [name, text] = option.rsplit('=');
  std::string reason = "NAME=SIZE, NAME=MIN..MAX or NAME=MIN..MAX:HINT is needed";
  if (name.empty())
    return reject(option, reason);
  std::optional<SymbolBounds> value = parseBounds(text, reason);
  if (!value)
    return reject(option, reason);
  // x[2]=48
  unsigned axis;
  StringRef base = name;
  if (base.consume_back("]")) {
    auto [inputName, digits] = base.rsplit('[');
    const ValueInfoProto *input = findInput(inputs, inputName);
    if (!digits.getAsInteger(10, axis) && input) {
      if (int(axis) >= input->type().tensor_type().shape().dim_size())
        return reject(option, "'" + inputName + "' has no dim " + Twine(axis));
      return bind(option, *input, axis, *value);
    }
  }
  for (const ValueInfoProto *input : inputs)
    for (int i = 0; i < input->type().tensor_type().shape().dim_size(); ++i)
      if (dimName(*input, i) == name)
        return bindKey(option, name, *value);
  std::vector<std::string> known;
  for (const ValueInfoProto *input : inputs)
    for (int i = 0; i < input->type().tensor_type().shape().dim_size(); ++i)
      if (StringRef other = dimName(*input, i); !other.empty() && !llvm::is_contained(known, other))
        known.push_back(other.str());
  return reject(option, "no input of the model has a dim '" + name + "'",
                known.empty() ? "its dims have no names; INPUT[AXIS]=SIZE gives one by its place"
                              : "its dims: " + llvm::join(known, ", ") + "; INPUT[AXIS]=SIZE gives one by its place");
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
    if (!bind(option, *input, axis, *value))
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
  return isValid;
}

//===----------------------------------------------------------------------===//
// Dims
//===----------------------------------------------------------------------===//

/// Where nothing is said: a batch of one, and a middling size for other dims.
static int64_t defaultHint(unsigned axis) { return axis == 0 ? 1 : 64; }

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
    if (int(axis) < type.shape().dim_size() && type.shape().dim(axis).dim_value() > 0) {
      dims.push_back(shapes.constant(type.shape().dim(axis).dim_value()));
      continue;
    }
    std::string key = dimKey(input, axis);
    auto bound = bounds.find(key);
    if (bound != bounds.end() && bound->second.min == bound->second.max) {
      dims.push_back(shapes.constant(bound->second.min));
      continue;
    }
    Expr &symbol = named[key];
    if (!symbol) {
      StringRef name = dimName(input, axis);
      std::string wanted =
          name.empty() ? makeIdentifier(input.name() + "_" + std::to_string(axis)) : makeIdentifier(name);
      SymbolBounds limits;
      limits.hint = defaultHint(axis);
      if (bound != bounds.end())
        limits = bound->second;
      symbol = shapes.declare(shapes.unusedName(wanted), limits);
    }
    dims.push_back(symbol);
  }
  return dims;
}
