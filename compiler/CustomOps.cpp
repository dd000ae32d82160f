// A library of custom operators at compile time: opened, checked, and asked for the types of a node's outputs in the C
// of ptc/custom_op.h. The same constants are made for the artefact by codegen/host/CustomNodes.cpp.
#include "compiler/CustomOps.h"
#include "compiler/DiagnosticRendering.h"
#include "ir/prim/PackedElements.h"
#include "ir/prim/Prim.h"
#include "lowering/decomp/ElementTypes.h"
#include "runtime/include/ptc/custom_op.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <deque>
#include <dlfcn.h>

using namespace llvm;

namespace ptc {
namespace {

//===----------------------------------------------------------------------===//
// Types and elements
//===----------------------------------------------------------------------===//

ptc_dtype dtypeOf(mlir::Type element) {
  int64_t code = prim::getTypeCode(element);
  return {uint8_t(code / 256), uint8_t(code % 256), 1};
}

/// Null for a type that models do not have.
mlir::Type elementTypeOf(mlir::MLIRContext *context, ptc_dtype dtype) {
  constexpr int32_t lastDataType = 64; // ONNX has half as many
  for (int32_t dataType = 1; dataType < lastDataType; ++dataType)
    if (mlir::Type type = decomp::fromOnnxType(context, dataType))
      if (ptc_dtype row = dtypeOf(type); row.code == dtype.code && row.bits == dtype.bits)
        return type;
  return {};
}

/// Elements as the ABI has them, and what they point at.
struct Elements {
  std::vector<char> bytes;
  std::deque<std::string> texts;
  std::vector<ptc_string> strings;

  const void *data() const { return strings.empty() ? static_cast<const void *>(bytes.data()) : strings.data(); }

  void addText(StringRef text) {
    texts.push_back(text.str());
    strings.push_back({texts.back().c_str(), int64_t(text.size())});
  }

  void read(mlir::DenseElementsAttr attr) {
    if (auto words = dyn_cast<mlir::DenseStringElementsAttr>(attr)) {
      for (StringRef text : prim::listStrings(words))
        addText(text);
      return;
    }
    bytes = prim::packElements(attr);
  }
};

//===----------------------------------------------------------------------===//
// A node in C
//===----------------------------------------------------------------------===//

class NodeInC {
public:
  NodeInC(const CustomNode &node, StringRef domain, StringRef op)
      : name(node.name), domain(domain), op(op), inputs(node.inputs.size()), outputs(node.outputs) {
    for (mlir::NamedAttribute attribute : node.attributes)
      addAttribute(attribute.getName().getValue(), attribute.getValue());
    c = {name.c_str(),
         this->domain.c_str(),
         this->op.c_str(),
         node.version,
         uint32_t(inputs.size()),
         uint32_t(outputs.size()),
         uint32_t(attributes.size()),
         0,
         attributes.data()};
    for (auto [type, value] : zip_equal(inputs, node.inputs))
      describe(type, value);
    for (ptc_custom_type &type : outputs)
      type.rank = -1;
  }

  ptc_custom_node c;
  std::vector<ptc_custom_type> &getInputs() { return inputs; }
  std::vector<ptc_custom_type> &getOutputs() { return outputs; }
  std::optional<std::string> problem; // an input that C cannot describe

private:
  void describe(ptc_custom_type &type, const CustomValue &value) {
    type.rank = value.element ? int32_t(value.dims.size()) : -1;
    if (!value.element)
      return;
    type.dtype = dtypeOf(value.element);
    if (value.dims.size() > PTC_CUSTOM_OP_MAX_RANK) {
      problem = "an input has more than " + std::to_string(PTC_CUSTOM_OP_MAX_RANK) + " dims";
      return;
    }
    for (auto [text, dim] : zip(value.dims, type.dims))
      snprintf(dim, sizeof(dim), "%s", text.c_str());
    if (!value.known)
      return;
    elements.emplace_back().read(value.known);
    type.data = elements.back().data();
  }

  void addTensor(mlir::DenseElementsAttr value, std::vector<ptc_tensor> &list) {
    Elements &own = elements.emplace_back();
    own.read(value);
    std::vector<int64_t> &shape = shapes.emplace_back(value.getType().getShape().vec());
    list.push_back({.data = const_cast<void *>(own.data()),
                    .device = {PTC_CPU, 0},
                    .rank = int32_t(shape.size()),
                    .dtype = dtypeOf(value.getElementType()),
                    .shape = shape.data(),
                    .strides = nullptr,
                    .byte_offset = 0});
  }

  void addAttribute(StringRef attributeName, mlir::Attribute value) {
    names.push_back(attributeName.str());
    ptc_custom_attribute attribute = {names.back().c_str(), 0, 0, 1, nullptr};
    auto set = [&](uint32_t kind, bool isList, size_t count, const void *values) {
      attribute.kind = kind;
      attribute.is_list = isList;
      attribute.count = int64_t(count);
      attribute.values = values;
    };
    if (auto integer = dyn_cast<mlir::IntegerAttr>(value)) {
      set(PTC_ATTRIBUTE_INTS, false, 1, ints.emplace_back(1, integer.getInt()).data());
    } else if (auto real = dyn_cast<mlir::FloatAttr>(value)) {
      set(PTC_ATTRIBUTE_FLOATS, false, 1, floats.emplace_back(1, real.getValue().convertToFloat()).data());
    } else if (auto list = dyn_cast<mlir::DenseI64ArrayAttr>(value)) {
      set(PTC_ATTRIBUTE_INTS, true, list.size(), ints.emplace_back(list.asArrayRef()).data());
    } else if (auto list = dyn_cast<mlir::DenseF32ArrayAttr>(value)) {
      set(PTC_ATTRIBUTE_FLOATS, true, list.size(), floats.emplace_back(list.asArrayRef()).data());
    } else if (auto tensor = dyn_cast<mlir::DenseElementsAttr>(value)) {
      addTensor(tensor, tensors.emplace_back());
      set(PTC_ATTRIBUTE_TENSORS, false, 1, tensors.back().data());
    } else {
      auto list = dyn_cast<mlir::ArrayAttr>(value);
      bool isTensors = list && !list.empty() && isa<mlir::DenseElementsAttr>(list[0]);
      if (isTensors) {
        std::vector<ptc_tensor> &all = tensors.emplace_back();
        for (auto element : list.getAsRange<mlir::DenseElementsAttr>())
          addTensor(element, all);
        set(PTC_ATTRIBUTE_TENSORS, true, all.size(), all.data());
      } else {
        Elements &own = elements.emplace_back();
        if (list)
          for (auto text : list.getAsRange<mlir::StringAttr>())
            own.addText(text.getValue());
        else
          own.addText(cast<mlir::StringAttr>(value).getValue());
        set(PTC_ATTRIBUTE_STRINGS, bool(list), own.strings.size(), own.strings.data());
      }
    }
    attributes.push_back(attribute);
  }

  std::string name, domain, op;
  std::vector<ptc_custom_type> inputs, outputs;
  std::vector<ptc_custom_attribute> attributes;
  // Deques, so that nothing moves that something points at.
  std::deque<std::string> names;
  std::deque<std::vector<int64_t>> ints, shapes;
  std::deque<std::vector<float>> floats;
  std::deque<std::vector<ptc_tensor>> tensors;
  std::deque<Elements> elements;
};

//===----------------------------------------------------------------------===//
// The question
//===----------------------------------------------------------------------===//

Error say(const Twine &sentence) { return createStringError(inconvertibleErrorCode(), sentence); }

Expected<std::vector<CustomValue>> infer(const ptc_custom_op *op, const CustomNode &node, StringRef domain,
                                         StringRef name) {
  auto inC = std::make_unique<NodeInC>(node, domain, name);
  if (inC->problem)
    return say(*inC->problem);
  char sentence[512] = "";
  ptc_status status = PTC_OK;
  CrashRecoveryContext recovery;
  if (!recovery.RunSafely([&] {
        status = op->infer(&inC->c, inC->getInputs().data(), inC->getOutputs().data(), sentence, sizeof(sentence));
      }))
    return say("its function `infer` crashed");
  sentence[sizeof(sentence) - 1] = 0;
  if (status != PTC_OK)
    return say(sentence[0] ? Twine(sentence) : "`infer` reports status " + Twine(status));
  std::vector<CustomValue> values;
  for (auto [i, type] : enumerate(inC->getOutputs())) {
    CustomValue &value = values.emplace_back();
    if (type.rank < 0)
      continue;
    value.element = elementTypeOf(node.attributes.getContext(), type.dtype);
    if (!value.element || type.rank > PTC_CUSTOM_OP_MAX_RANK)
      return say("infer gives output " + Twine(i) +
                 (value.element ? " more dims than there can be" : " a type that models do not have"));
    for (int32_t axis = 0; axis < type.rank; ++axis) {
      type.dims[axis][PTC_CUSTOM_OP_DIM_SIZE - 1] = 0;
      StringRef dim = type.dims[axis];
      if (dim.size() == PTC_CUSTOM_OP_DIM_SIZE - 1) // ptc_set_dim cuts there
        return say("infer gives a dim of more than " + Twine(PTC_CUSTOM_OP_DIM_SIZE - 2) + " characters");
      if (!op->measure && (dim.trim() == "?" || dim.trim().starts_with("<=")))
        return say("infer leaves a dim open, and there is no function `measure` to tell it");
      value.dims.push_back(dim.str());
    }
  }
  return values;
}

//===----------------------------------------------------------------------===//
// Libraries
//===----------------------------------------------------------------------===//

Error usage(StringRef spec, const Twine &what) {
  return exitError(exitUsage, "--custom-op " + spec + ": " + what,
                   "--custom-op DOMAIN.OP=LIBRARY:SYMBOL, as in my.domain.Scale=libmyops.so:scale_op");
}

Expected<const ptc_custom_op *> findOp(void *library, StringRef path, const std::string &symbol, StringRef spec) {
  auto *op = static_cast<const ptc_custom_op *>(dlsym(library, symbol.c_str()));
  if (!op)
    return exitError(exitFile, "--custom-op " + spec + ": '" + path + "' has no '" + symbol + "'",
                     "export a constant ptc_custom_op of this name (ptc/custom_op.h); in C++ as extern \"C\"");
  if (op->version != PTC_CUSTOM_OP_VERSION || op->struct_size < sizeof(ptc_custom_op) || !op->infer || !op->run)
    return exitError(exitFile,
                     "--custom-op " + spec + ": '" + symbol + "' is no ptc_custom_op of version " +
                         Twine(PTC_CUSTOM_OP_VERSION) + " with the functions infer and run",
                     "compile the library with this ptc's ptc/custom_op.h; the symbol is the table, not a function");
  return op;
}

Expected<CustomOp> openOne(StringRef spec) {
  auto [operatorName, place] = spec.split('=');
  auto [path, symbol] = place.rsplit(':');
  auto [domain, op] = operatorName.contains('.') ? operatorName.rsplit('.') : std::pair(StringRef(), operatorName);
  if (op.empty() || path.empty() || symbol.empty())
    return usage(spec, op.empty()       ? "it names no operator"
                       : place.empty()  ? "it names no library"
                       : symbol.empty() ? "it names no symbol of the library"
                                        : "it names no library");
  bool isHere = path.contains('/') || sys::fs::exists(path);
  std::string opened = isHere && !path.contains('/') ? ("./" + path).str() : path.str();
  void *handle = dlopen(opened.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char *reason = dlerror();
    return exitError(
        exitFile, "--custom-op " + spec + ": the library cannot be opened: " + (reason ? reason : ""),
        "a path of a shared library for this processor: it is asked for shapes while the model is compiled");
  }
  std::shared_ptr<void> library(handle, dlclose);
  std::string name = symbol.str();
  Expected<const ptc_custom_op *> table = findOp(handle, path, name, spec);
  if (!table)
    return table.takeError();
  CustomOp result;
  result.domain = domain == "ai.onnx" ? "" : domain.str();
  result.op = op.str();
  result.library = sys::path::is_absolute(path) ? path.str() : sys::path::filename(path).str();
  result.symbol = name;
  result.infer = [library, table = *table, domain = result.domain, op = result.op](const CustomNode &node) {
    return infer(table, node, domain, op);
  };
  return result;
}

} // namespace

Expected<std::vector<CustomOp>> openCustomOps(ArrayRef<std::string> specs) {
  std::vector<CustomOp> ops;
  for (StringRef spec : specs) {
    Expected<CustomOp> op = openOne(spec);
    if (!op)
      return op.takeError();
    for (const CustomOp &other : ops)
      if (other.domain == op->domain && other.op == op->op)
        return usage(spec, "the operator is named twice");
    ops.push_back(std::move(*op));
  }
  return ops;
}

void makePathsAbsolute(std::vector<std::string> &specs) {
  for (std::string &spec : specs) {
    auto [operatorName, place] = StringRef(spec).split('=');
    auto [path, symbol] = place.rsplit(':');
    SmallString<128> absolute(path);
    if (!path.empty() && sys::fs::exists(path) && !sys::fs::make_absolute(absolute))
      spec = (operatorName + "=" + absolute + ":" + symbol).str();
  }
}

} // namespace ptc
