#include "cli/InputSpecs.h"
#include "compiler/DiagnosticRendering.h"
#include "ir/prim/Prim.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace ptc {

Expected<SymbolDims> parseDims(ArrayRef<std::string> specs) {
  SymbolDims dims;
  for (StringRef spec : specs) {
    auto [name, text] = spec.split('=');
    int64_t value;
    if (name.empty() || text.getAsInteger(10, value) || value < 0)
      return exitError(exitUsage, "--dim " + spec + ": expected NAME=NUMBER",
                       "the flag once for each size: --dim batch=8 --dim seq=128");
    dims[name] = value;
  }
  return dims;
}

std::string formatDims(const SymbolDims &dims) {
  std::vector<std::string> parts;
  for (const auto &entry : dims)
    parts.push_back((entry.getKey() + "=" + Twine(entry.getValue())).str());
  llvm::sort(parts);
  return join(parts, " ");
}

SymbolDims symbolsOf(const ptc_function &function, ArrayRef<Tensor> inputs, const SymbolDims &named) {
  SymbolDims symbols = named;
  for (const ptc_symbol &symbol : ArrayRef(function.symbols, function.symbol_count))
    symbols.try_emplace(symbol.name, symbol.hint);
  for (auto [input, tensor] : zip(ArrayRef(function.inputs, function.input_count), inputs))
    for (auto [dim, extent] : zip(ArrayRef(input.dims, input.rank), tensor.shape))
      if (dim.extent < 0 && dim.symbol >= 0)
        symbols[function.symbols[dim.symbol].name] = extent;
  return symbols;
}

static std::string inputNames(const ptc_function &function) {
  std::string names;
  for (unsigned i = 0; i < function.input_count; ++i)
    names += (i ? ", " : "") + formatValue(function.inputs[i]);
  return names;
}

/// A file's tensor with the element type that the model declares, where the file cannot say it.
static Expected<Tensor> conform(Tensor tensor, const ptc_value &value) {
  bool sameBits = tensor.dtype.bits == value.dtype.bits;
  bool isBits = tensor.dtype.code == opaqueCode || (tensor.dtype.code == PTC_UINT && tensor.dtype.bits == 16);
  bool lacksNumpyType = value.dtype.code == PTC_BFLOAT || value.dtype.code >= PTC_FLOAT8_E4M3FN;
  if (sameBits && isBits && lacksNumpyType)
    tensor.dtype = value.dtype;
  if (!(tensor.dtype == value.dtype))
    return exitError(exitUsage,
                     Twine("input '") + value.name + "' is given as " + formatType(tensor.dtype) +
                         "; the model takes " + formatType(value.dtype),
                     "write the array with that type: numpy's astype");
  return tensor;
}

/// Names the dims of a given input, as far as a dim is one symbol. What the user named has to be the same.
static Error bindDims(const ptc_function &function, const ptc_value &value, const Tensor &tensor,
                      const SymbolDims &named, SymbolDims &dims) {
  for (int32_t i = 0; i < value.rank && i < static_cast<int32_t>(tensor.shape.size()); ++i) {
    if (value.dims[i].symbol < 0)
      continue;
    StringRef symbol = function.symbols[value.dims[i].symbol].name;
    auto wanted = named.find(symbol);
    if (wanted != named.end() && wanted->second != tensor.shape[i])
      return exitError(exitUsage, "'" + symbol + "' is to be " + Twine(wanted->second) + ", but dim " + Twine(i) +
                                      " of the given input '" + value.name + "' is " + Twine(tensor.shape[i]));
    dims.try_emplace(symbol, tensor.shape[i]);
  }
  return Error::success();
}

static Expected<std::vector<int64_t>> shapeOf(const ptc_value &value, const SymbolDims &dims) {
  std::vector<int64_t> shape;
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<prim::PrimDialect>(); // expressions belong to it
  for (int32_t i = 0; i < value.rank; ++i) {
    Expr extent = value.dims[i].extent >= 0 ? Expr() : Expr::parse(&context, value.dims[i].text);
    std::optional<int64_t> known = extent ? extent.evaluate(dims) : std::optional<int64_t>(value.dims[i].extent);
    if (!known || *known < 0)
      return exitError(exitUsage,
                       Twine("dim ") + Twine(i) + " of input '" + value.name + "' is " + value.dims[i].text +
                           ", which is not known",
                       "give it with --dim, or the input as a file");
    shape.push_back(*known);
  }
  return shape;
}

static Expected<Tensor> makeUp(const ptc_value &value, StringRef how, const SymbolDims &dims, unsigned index) {
  Expected<std::vector<int64_t>> shape = shapeOf(value, dims);
  if (!shape)
    return shape.takeError();
  Tensor tensor{value.dtype, std::move(*shape), {}};
  tensor.isMadeUp = true;
  if (tensor.dtype.code == PTC_STRING)
    tensor.texts.resize(tensor.elementCount());
  if (!tensor.allocate())
    return noMemoryFor(Twine("input '") + value.name + "'", tensor);
  auto [kind, text] = how.split(':');
  uint64_t seed = 0;
  if (kind == "zeros" && text.empty())
    return tensor;
  if (kind == "ones" && text.empty())
    return fillOnes(tensor), tensor;
  if (kind == "random" && (text.empty() || !text.getAsInteger(10, seed)))
    return fillRandom(tensor, seed + (uint64_t(index) << 32)), tensor;
  return exitError(exitUsage, Twine("input '") + value.name + "' cannot be '" + how + "'",
                   "@FILE, random:SEED, zeros or ones");
}

namespace {
/// The specs by what they are about.
struct SortedSpecs {
  StringMap<std::string> byName;                              // x=...
  std::string others;                                         // without a name
  NamedTensors archive;                                       // @FILE.npz
  std::vector<std::pair<std::string, std::string>> strangers; // of archives: the file, and an array that is no input
};
} // namespace

static bool isInput(const ptc_function &function, StringRef name) {
  return llvm::any_of(ArrayRef(function.inputs, function.input_count),
                      [&](const ptc_value &value) { return name == value.name; });
}

/// Adds the arrays of the file that have an input's name.
static Error readArchive(const ptc_function &function, StringRef path, SortedSpecs &sorted) {
  Expected<NamedTensors> archive = readTensors(path);
  if (!archive)
    return archive.takeError();
  for (auto &[name, tensor] : *archive)
    if (isInput(function, name))
      sorted.archive.emplace_back(name, std::move(tensor));
    else
      sorted.strangers.emplace_back(path, name);
  return Error::success();
}

/// An archive may hold more than the inputs (labels). Where one of these is not given, its name is taken for misspelt.
static Error checkStrangers(const ptc_function &function, const SortedSpecs &sorted) {
  for (const ptc_value &value : ArrayRef(function.inputs, function.input_count)) {
    auto isValue = [&](const auto &named) { return named.first == value.name; };
    if (sorted.strangers.empty() || sorted.byName.contains(value.name) || llvm::any_of(sorted.archive, isValue))
      continue;
    auto &[path, name] = sorted.strangers.front();
    return exitError(exitUsage, "'" + path + "' holds '" + name + "', but the model has no input of that name",
                     "its inputs: " + inputNames(function));
  }
  return Error::success();
}

static Expected<SortedSpecs> sortSpecs(const ptc_function &function, ArrayRef<std::string> specs) {
  SortedSpecs sorted;
  for (StringRef spec : specs) {
    // A name may contain '=': the longest declared name that fits wins.
    const ptc_value *named = nullptr;
    for (const ptc_value &value : ArrayRef(function.inputs, function.input_count))
      if (spec.starts_with(std::string(value.name) + "=") &&
          (!named || StringRef(named->name).size() < StringRef(value.name).size()))
        named = &value;
    if (named) {
      std::string how = spec.drop_front(StringRef(named->name).size() + 1).str();
      if (!sorted.byName.try_emplace(named->name, how).second)
        return exitError(exitUsage, Twine("input '") + named->name + "' is given twice");
    } else if (spec.starts_with("@")) {
      if (Error error = readArchive(function, spec.drop_front(), sorted))
        return std::move(error);
    } else if (spec.contains('=')) {
      return exitError(exitUsage, "the model has no input '" + spec.split('=').first + "'",
                       "its inputs: " + inputNames(function));
    } else {
      sorted.others = spec.str();
    }
  }
  if (Error error = checkStrangers(function, sorted))
    return std::move(error);
  return sorted;
}

static Error checkNames(const ptc_function &function, const SymbolDims &dims) {
  std::string names;
  for (const ptc_symbol &symbol : ArrayRef(function.symbols, function.symbol_count))
    names += (names.empty() ? "" : ", ") + std::string(symbol.name);
  for (const auto &entry : dims)
    if (llvm::none_of(ArrayRef(function.symbols, function.symbol_count),
                      [&](const ptc_symbol &symbol) { return entry.getKey() == symbol.name; }))
      return exitError(exitUsage, "the model has no dim '" + entry.getKey() + "'",
                       names.empty() ? "all its dims are fixed" : "its dims: " + names);
  return Error::success();
}

Expected<std::vector<Tensor>> makeInputs(const ptc_function &function, ArrayRef<std::string> specs,
                                         const SymbolDims &named) {
  Expected<SortedSpecs> sorted = sortSpecs(function, specs);
  if (!sorted)
    return sorted.takeError();
  std::vector<std::optional<Tensor>> inputs(function.input_count);
  if (Error error = checkNames(function, named))
    return std::move(error);
  SymbolDims dims = named;
  for (unsigned i = 0; i < function.input_count; ++i) { // what is read decides the dims of what is made up
    const ptc_value &value = function.inputs[i];
    std::string given = sorted->byName.lookup(value.name);
    StringRef spec = given;
    std::optional<Tensor> read;
    for (auto &[name, tensor] : sorted->archive)
      if (spec.empty() && name == value.name)
        read = tensor;
    if (spec.starts_with("@")) {
      Expected<Tensor> tensor = readValue(spec.drop_front(), value);
      if (!tensor)
        return tensor.takeError();
      read = std::move(*tensor);
    }
    if (!read)
      continue;
    Expected<Tensor> tensor = conform(std::move(*read), value);
    if (!tensor)
      return tensor.takeError();
    if (Error error = bindDims(function, value, *tensor, named, dims))
      return std::move(error);
    inputs[i] = std::move(*tensor);
  }
  for (const ptc_symbol &symbol : ArrayRef(function.symbols, function.symbol_count))
    dims.try_emplace(symbol.name, symbol.hint);

  std::vector<Tensor> result;
  std::string missing;
  for (unsigned i = 0; i < function.input_count; ++i) {
    if (inputs[i]) {
      result.push_back(std::move(*inputs[i]));
      continue;
    }
    std::string how = sorted->byName.lookup(function.inputs[i].name);
    how = how.empty() ? sorted->others : how;
    if (how.empty()) {
      missing += (missing.empty() ? "" : ", ") + formatValue(function.inputs[i]);
      continue;
    }
    Expected<Tensor> tensor = makeUp(function.inputs[i], how, dims, i);
    if (!tensor)
      return tensor.takeError();
    result.push_back(std::move(*tensor));
  }
  if (!missing.empty())
    return exitError(exitUsage, "no value for " + missing, "-i NAME=@FILE, or -i random for all others");
  return result;
}

} // namespace ptc
