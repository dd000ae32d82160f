// What programs show to the outside, read off their arguments, names and symbols.
#include "codegen/host/HostModule.h"
#include "ir/expr/ConditionText.h"
#include "ir/prim/Elements.h"
#include "ir/prim/GuardNodes.h"
#include "ir/prim/Variants.h"
#include "runtime/include/ptc/abi.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include <algorithm>

using namespace llvm;
using namespace mlir;

namespace ptc::host {

static_assert(PTC_STRING == 200 && PTC_SEQUENCE == 201, "the codes of prim::getTypeCode");

DType dtypeOf(Type type) {
  int64_t code = prim::getTypeCode(type);
  return {uint8_t(code >> 8), uint8_t(code & 255)};
}

namespace {

/// Symbols that a caller chooses, in the order in which the inputs show them.
std::vector<Symbol> symbolsOf(loop::ProgramOp program) {
  SmallVector<std::pair<std::pair<int64_t, int64_t>, StringRef>> order;
  for (NamedAttribute source : program.getSymbolSources()) {
    auto place = cast<DenseI64ArrayAttr>(source.getValue());
    order.push_back({{place[0], place[1]}, source.getName().getValue()});
  }
  llvm::sort(order);
  std::vector<Symbol> symbols;
  for (const auto &[place, name] : order) {
    Symbol symbol{.name = name.str()};
    if (auto attr = program.getSymbols().getAs<prim::SymbolAttr>(name)) {
      symbol.min = attr.getMin();
      symbol.max = attr.getMax();
      symbol.divisor = attr.getDivisor();
      symbol.hint = attr.getHint();
    }
    symbols.push_back(std::move(symbol));
  }
  return symbols;
}

int indexOf(ArrayRef<Symbol> symbols, StringRef name) {
  const Symbol *found = llvm::find_if(symbols, [&](const Symbol &symbol) { return symbol.name == name; });
  return found == symbols.end() ? -1 : found - symbols.begin();
}

/// What the tensors of a sequence have in common.
std::shared_ptr<Value> elementOf(prim::SequenceType sequence) {
  auto type = cast<TensorType>(sequence.getElement());
  Value value{.dtype = dtypeOf(type.getElementType()), .isUnranked = !type.hasRank()};
  for (int64_t extent : type.hasRank() ? type.getShape() : ArrayRef<int64_t>()) {
    bool isKnown = !ShapedType::isDynamic(extent);
    value.dims.push_back({.extent = isKnown ? extent : -1, .text = isKnown ? std::to_string(extent) : "?"});
  }
  if (auto inner = dyn_cast<prim::SequenceType>(type.getElementType())) {
    value.element = elementOf(inner);
    value.role = inner.getOptional() ? PTC_OPTIONAL : PTC_PLAIN;
  }
  return std::make_shared<Value>(std::move(value));
}

Value valueOf(BlockArgument argument, StringRef name, Type elementType, ArrayRef<Symbol> symbols,
              const loop::BoundSymbols &bound) {
  Value value{.name = name.str(), .dtype = dtypeOf(elementType)};
  if (auto sequence = dyn_cast<prim::SequenceType>(elementType)) {
    value.element = elementOf(sequence);
    value.role = sequence.getOptional() ? PTC_OPTIONAL : PTC_PLAIN;
  }
  for (Expr extent : cast<loop::BufferType>(argument.getType()).getShape()) {
    Dim dim{.text = extent.str()};
    if (extent.isConstant())
      dim.extent = extent.getValue();
    else if (extent.isSymbol())
      dim.symbol = indexOf(symbols, extent.getSymbol());
    dim.isFound = bound.uses(extent);
    value.dims.push_back(std::move(dim));
  }
  return value;
}

std::vector<Value> valuesOf(ArrayRef<BlockArgument> arguments, ArrayAttr names, ArrayAttr types,
                            ArrayRef<Symbol> symbols, const loop::BoundSymbols &bound) {
  std::vector<Value> values;
  for (auto [argument, name, type] : llvm::zip_equal(arguments, names, types))
    values.push_back(
        valueOf(argument, cast<StringAttr>(name).getValue(), cast<TypeAttr>(type).getValue(), symbols, bound));
  return values;
}

/// Two values are a map of the source model.
void assignMapRoles(std::vector<Value> &values, ArrayAttr maps) {
  for (Attribute map : maps)
    for (Value &value : values) {
      std::string name = cast<StringAttr>(map).str();
      if (value.name == name + prim::mapKeysSuffix.str())
        value.role = PTC_MAP_KEYS;
      else if (value.name == name + prim::mapValuesSuffix.str())
        value.role = PTC_MAP_VALUES;
    }
}

Function functionOf(const HostFunction &host) {
  loop::ProgramOp program = host.variants.back();
  Function function{.name = host.name};
  loop::BoundSymbols bound(program);
  function.symbols = symbolsOf(program);
  function.inputs =
      valuesOf(program.getInputArgs(), program.getInputNames(), program.getInputTypes(), function.symbols, bound);
  function.outputs =
      valuesOf(program.getOutputArgs(), program.getOutputNames(), program.getOutputTypes(), function.symbols, bound);
  if (auto maps = program->getAttrOfType<ArrayAttr>(prim::mapsAttr)) {
    assignMapRoles(function.inputs, maps);
    assignMapRoles(function.outputs, maps);
  }
  for (const loop::BoundSymbol &symbol : bound.getAll())
    if (llvm::any_of(program.getOutputArgs(), [&](BlockArgument output) {
          return cast<loop::BufferType>(output.getType()).getElementCount().uses(symbol.name);
        }))
      function.found.push_back({symbol.name, symbol.atMost ? symbol.atMost.str() : ""});
  ArrayRef<int64_t> aliases = program.getAliases();
  for (size_t i = 0; i + 1 < aliases.size(); i += 2) {
    function.inputs[aliases[i]].alias = aliases[i + 1];
    function.outputs[aliases[i + 1]].alias = aliases[i];
  }
  function.guards = guardsOf(program, function.symbols);
  for (loop::ProgramOp other : ArrayRef(host.variants).drop_back()) {
    Variant variant{.name = prim::getVariantName(other)};
    for (Guard &guard : guardsOf(other, function.symbols))
      if (llvm::none_of(function.guards, [&](const Guard &own) { return own.text == guard.text; }))
        variant.guards.push_back(std::move(guard));
    function.variants.push_back(std::move(variant));
  }
  return function;
}

} // namespace

std::vector<Guard> guardsOf(loop::ProgramOp program, ArrayRef<Symbol> symbols) {
  std::vector<Guard> guards;
  auto nodes = program->getAttrOfType<DictionaryAttr>(prim::guardNodesAttr);
  for (Expr expr : prim::getExprs(program.getGuards())) {
    guards.push_back(guardOf(expr, [&](StringRef name) { return indexOf(symbols, name); }));
    if (auto node = nodes ? nodes.getAs<StringAttr>(expr.str()) : nullptr)
      guards.back().nodes = node.str();
  }
  return guards;
}

Guard guardOf(Expr condition, llvm::function_ref<int(StringRef)> indexOf) {
  Guard guard{.text = conditionText(condition)};
  condition.walkSymbols([&](StringRef name) {
    int index = indexOf(name);
    if (index >= 0 && !llvm::is_contained(guard.symbols, unsigned(index)))
      guard.symbols.push_back(index);
  });
  return guard;
}

ModelInterface describeInterface(const HostInputs &inputs) {
  ModelInterface interface{.name = inputs.name, .compiler = inputs.compiler};
  for (const HostFunction &function : inputs.functions)
    interface.functions.push_back(functionOf(function));
  interface.weights = inputs.weights;
  interface.customOperators = listCustomOperators(inputs);
  assignCNames(interface);
  return interface;
}

} // namespace ptc::host
