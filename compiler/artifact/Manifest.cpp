#include "compiler/artifact/Manifest.h"
#include "runtime/include/ptc/abi.h"

#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace ptc::artifact {
namespace {

template <typename Range, typename Function> json::Array listOf(const Range &range, Function &&convert) {
  json::Array array;
  for (const auto &element : range)
    array.push_back(convert(element));
  return array;
}

/// JSON strings are UTF-8; a user's name may be anything.
json::Value text(StringRef string) { return json::isUTF8(string) ? string.str() : json::fixUTF8(string); }

/// What a sequence's tensors are. Without a shape nothing is known of it; "?": not the same in all of them.
json::Value elementOf(const host::Value &element) {
  json::Object object{{"dtype", element.dtype.name()}};
  if (!element.isUnranked)
    object["shape"] = listOf(
        element.dims, [](const host::Dim &dim) { return dim.extent >= 0 ? json::Value(dim.extent) : text(dim.text); });
  if (element.element)
    object["element"] = elementOf(*element.element);
  return object;
}

json::Value valueOf(const host::Value &value) {
  json::Object object{{"c_name", value.cName},
                      {"dtype", value.dtype.name()},
                      {"name", text(value.name)},
                      {"shape", listOf(value.dims, [](const host::Dim &dim) {
                         return dim.extent >= 0 ? json::Value(dim.extent) : text(dim.text);
                       })}};
  if (value.alias >= 0)
    object["alias"] = value.alias;
  if (value.element)
    object["element"] = elementOf(*value.element);
  if (value.role == PTC_OPTIONAL)
    object["optional"] = true;
  if (value.role == PTC_MAP_KEYS || value.role == PTC_MAP_VALUES)
    object["map"] = value.role == PTC_MAP_KEYS ? "keys" : "values";
  return object;
}

json::Value symbolOf(const host::Symbol &symbol) {
  json::Object object{
      {"divisor", symbol.divisor}, {"hint", symbol.hint}, {"min", symbol.min}, {"name", text(symbol.name)}};
  if (symbol.max != std::numeric_limits<int64_t>::max())
    object["max"] = symbol.max;
  return object;
}

} // namespace

json::Value describeFunction(const host::Function &function) {
  auto found = [](const host::FoundSize &size) {
    json::Object object{{"name", text(size.name)}};
    if (!size.atMost.empty())
      object["at_most"] = text(size.atMost);
    return object;
  };
  auto guard = [](const host::Guard &guard) { return text(guard.text); };
  auto variant = [&](const host::Variant &variant) {
    return json::Object{{"guards", listOf(variant.guards, guard)}, {"name", text(variant.name)}};
  };
  json::Object object{{"c_prefix", function.cPrefix},
                      {"found", listOf(function.found, found)},
                      {"guards", listOf(function.guards, guard)},
                      {"inputs", listOf(function.inputs, valueOf)},
                      {"name", text(function.name)},
                      {"outputs", listOf(function.outputs, valueOf)},
                      {"symbols", listOf(function.symbols, symbolOf)}};
  if (!function.variants.empty())
    object["variants"] = listOf(function.variants, variant);
  return object;
}

namespace {

json::Value amountOf(const Amount &amount) {
  return json::Object{{"at_hint", amount.atHint}, {"expression", text(amount.text)}};
}

json::Value factsOf(const object::CodeFacts &facts) {
  json::Object object;
#define CODE_FACT(field, name, words, better) object[name] = facts.field;
#include "codegen/object/CodeFacts.def"
#undef CODE_FACT
  return object;
}

json::Value nodesOf(const std::vector<std::string> &nodes) {
  return listOf(nodes, [](const std::string &node) { return text(node); });
}

json::Value kernelOf(const KernelEntry &kernel) {
  json::Object bytes, code;
  for (const CodeEntry &entry : kernel.code) {
    bytes[entry.level] = entry.bytes;
    code[entry.level] = factsOf(entry.facts);
  }
  json::Object object{{"argument_bytes", amountOf(kernel.argumentBytes)},
                      {"bytes_read", amountOf(kernel.bytesRead)},
                      {"bytes_written", amountOf(kernel.bytesWritten)},
                      {"code", std::move(code)},
                      {"code_bytes", std::move(bytes)},
                      {"flops", amountOf(kernel.flops)},
                      {"kind", kernel.kind},
                      {"launch_nodes", listOf(kernel.launches, nodesOf)},
                      {"launches", int64_t(kernel.launches.size())},
                      {"name", kernel.name},
                      {"nodes", kernel.launches.empty() ? json::Array() : nodesOf(kernel.launches.front())},
                      {"weight_bytes_read", kernel.weightBytesRead}};
  if (kernel.executions != int64_t(kernel.launches.size()))
    object["executions"] = kernel.executions;
  if (kernel.steps) {
    object["step_bytes_read"] = amountOf(*kernel.stepBytesRead);
    object["steps"] = amountOf(*kernel.steps);
  }
  if (kernel.joinedLaunches)
    object["joined_launches"] = kernel.joinedLaunches;
  if (!kernel.products.empty())
    object["products"] = kernel.products;
  if (!kernel.library.empty())
    object["library"] = kernel.library;
  if (!kernel.onHost.empty())
    object["on_host"] = text(kernel.onHost);
  if (!kernel.target.empty())
    object["target"] = kernel.target;
  if (!kernel.variant.empty())
    object["variant"] = text(kernel.variant);
  if (kernel.grid) {
    object["block"] = json::Array{kernel.block[0], kernel.block[1]};
    object["grid"] = amountOf(*kernel.grid);
  }
  return object;
}

json::Value memoryOf(const MemoryEntry &memory) {
  json::Object object{{"function", text(memory.function)},
                      {"host_syncs", memory.hostSyncs},
                      {"lower_bound", amountOf(memory.lowerBound)},
                      {"peak", amountOf(memory.peak)}};
  if (!memory.target.empty())
    object["target"] = memory.target;
  if (!memory.variant.empty())
    object["variant"] = text(memory.variant);
  json::Array growing;
  for (const GrowingEntry &block : memory.growing)
    growing.push_back(json::Object{{"bytes", json::Array(block.bytes)}, {"node", text(block.node)}});
  if (!growing.empty())
    object["growing"] = std::move(growing);
  return object;
}

json::Value bufferOf(const BufferEntry &buffer) {
  json::Object object{{"alignment", buffer.alignment},     {"bytes", amountOf(buffer.bytes)},
                      {"function", text(buffer.function)}, {"kept_until", buffer.keptUntil},
                      {"last_read", buffer.lastRead},      {"node", text(buffer.node)},
                      {"offset", amountOf(buffer.offset)}, {"written", buffer.written}};
  if (!buffer.reuses.empty())
    object["reuses"] = text(buffer.reuses);
  if (!buffer.target.empty())
    object["target"] = buffer.target;
  if (!buffer.variant.empty())
    object["variant"] = text(buffer.variant);
  return object;
}

json::Value weightsOf(const WeightsEntry &weights) {
  json::Object object{{"bytes", int64_t(weights.bytes)}, {"digest", weights.digest}, {"place", weights.place}};
  if (!weights.file.empty())
    object["file"] = text(weights.file);
  return object;
}

json::Value customOf(const host::CustomOperator &op) {
  return json::Object{{"library", text(op.library)},
                      {"nodes", listOf(op.nodes, [](const std::string &node) { return text(node); })},
                      {"operator", text(op.name)},
                      {"symbol", text(op.symbol)}};
}

std::string escapeMake(StringRef path) {
  std::string result;
  for (char c : path) {
    if (c == ' ' || c == '#' || c == '\\')
      result += '\\';
    if (c == '$')
      result += '$';
    result += c;
  }
  return result;
}

} // namespace

std::string writeManifest(const Manifest &manifest) {
  json::Value root =
      json::Object{{"abi", PTC_ABI_VERSION},
                   {"buffers", listOf(manifest.buffers, bufferOf)},
                   {"build_id", manifest.buildId},
                   {"code_bytes", int64_t(manifest.codeBytes)},
                   {"compiler", manifest.interface.compiler},
                   {"custom_operators", listOf(manifest.interface.customOperators, customOf)},
                   {"file_bytes", int64_t(manifest.fileBytes)},
                   {"flags", listOf(manifest.flags, [](const std::string &flag) { return text(flag); })},
                   {"functions", listOf(manifest.interface.functions, describeFunction)},
                   {"kernels", listOf(manifest.kernels, kernelOf)},
                   {"levels", listOf(manifest.levels, [](const std::string &level) { return text(level); })},
                   {"memory", listOf(manifest.memory, memoryOf)},
                   {"model_digest", manifest.modelDigest},
                   {"name", manifest.interface.name},
                   {"target", manifest.target},
                   {"weights", weightsOf(manifest.weights)}};
  std::string result;
  raw_string_ostream os(result);
  json::OStream(os, /*IndentSize=*/2).value(root);
  return result + "\n";
}

std::string writeDepfile(ArrayRef<std::string> outputs, ArrayRef<std::string> inputs) {
  std::string result;
  for (const std::string &output : outputs)
    result += (result.empty() ? "" : " ") + escapeMake(output);
  result += ":";
  for (const std::string &input : inputs)
    result += " \\\n  " + escapeMake(input);
  result += "\n";
  for (const std::string &input : inputs)
    result += "\n" + escapeMake(input) + ":\n";
  return result;
}

} // namespace ptc::artifact
