// Nodes of the user's own operators as constants of the module: what ptc/custom_op.h and ptc/descriptor.h say of them.
#include "codegen/host/HostBuilder.h"
#include "ir/Diagnostics.h"
#include "ir/prim/PackedElements.h"
#include "runtime/include/ptc/descriptor.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace ptc::host {
namespace {

class CustomNodeEmitter {
public:
  CustomNodeEmitter(Constants &c, prim::CustomAttr custom) : c(c), custom(custom) {}

  Constant *emit(unsigned op, StringRef name) {
    SmallVector<Constant *> attributes;
    for (mlir::NamedAttribute attribute : custom.getAttributes())
      attributes.push_back(this->attribute(attribute.getName().getValue(), attribute.getValue()));
    Constant *inputs = values(custom.getInputs()), *outputs = values(custom.getOutputs());
    Constant *node =
        c.record({c.string(name), c.string(custom.getDomain()), c.string(custom.getOp()), c.i64(custom.getVersion()),
                  c.i32(custom.getInputs().size()), c.i32(custom.getOutputs().size()), c.i32(attributes.size()),
                  c.i32(0), c.array(attributes, "custom_attributes")},
                 sizeof(ptc_custom_node));
    return c.record({node, inputs, outputs, c.i32(op), c.i32(0)}, sizeof(ptc_rt_custom_node));
  }

private:
  Constant *dtype(mlir::Type element) {
    DType type = dtypeOf(element);
    return c.record({c.i8(type.code), c.i8(type.bits), c.i16(1)}, sizeof(ptc_dtype));
  }

  Constant *values(mlir::ArrayAttr types) {
    SmallVector<Constant *> list;
    for (mlir::Attribute attr : types) {
      auto present = mlir::dyn_cast<mlir::TypeAttr>(attr);
      auto type = present ? mlir::cast<mlir::RankedTensorType>(present.getValue()) : mlir::RankedTensorType();
      mlir::Type element = type ? type.getElementType() : mlir::IntegerType::get(custom.getContext(), 1);
      list.push_back(c.record({dtype(element), c.i32(type ? type.getRank() : -1)}, sizeof(ptc_rt_custom_value)));
    }
    return c.array(list, "custom_values");
  }

  Constant *text(StringRef value) { return c.record({c.string(value), c.i64(value.size())}, sizeof(ptc_string)); }

  Constant *tensor(mlir::DenseElementsAttr value) {
    SmallVector<Constant *> shape;
    for (int64_t extent : value.getType().getShape())
      shape.push_back(c.i64(extent));
    Constant *elements;
    if (auto strings = mlir::dyn_cast<mlir::DenseStringElementsAttr>(value)) {
      SmallVector<Constant *> texts;
      for (const std::string &string : prim::listStrings(strings))
        texts.push_back(text(string));
      elements = c.array(texts, "custom_strings");
    } else {
      std::vector<char> bytes = prim::packElements(value);
      GlobalVariable *data = c.global(
          ConstantDataArray::getString(c.context, StringRef(bytes.data(), bytes.size()), false), "custom_elements");
      data->setAlignment(Align(64));
      elements = data;
    }
    Constant *device = c.record({c.i32(PTC_CPU), c.i32(0)}, sizeof(ptc_device));
    return c.record({elements, device, c.i32(shape.size()), dtype(value.getElementType()), c.array(shape, "shape"),
                     c.null(), c.i64(0)},
                    sizeof(ptc_tensor));
  }

  Constant *attribute(StringRef name, mlir::Attribute value) {
    uint32_t kind = PTC_ATTRIBUTE_STRINGS;
    bool isList = mlir::isa<mlir::ArrayAttr, mlir::DenseI64ArrayAttr, mlir::DenseF32ArrayAttr>(value);
    SmallVector<Constant *> list;
    auto addReal = [&](const APFloat &real) { list.push_back(ConstantFP::get(c.context, real)); };
    if (auto integer = mlir::dyn_cast<mlir::IntegerAttr>(value)) {
      kind = PTC_ATTRIBUTE_INTS;
      list.push_back(c.i64(integer.getInt()));
    } else if (auto integers = mlir::dyn_cast<mlir::DenseI64ArrayAttr>(value)) {
      kind = PTC_ATTRIBUTE_INTS;
      for (int64_t integer : integers.asArrayRef())
        list.push_back(c.i64(integer));
    } else if (auto real = mlir::dyn_cast<mlir::FloatAttr>(value)) {
      kind = PTC_ATTRIBUTE_FLOATS;
      addReal(real.getValue());
    } else if (auto reals = mlir::dyn_cast<mlir::DenseF32ArrayAttr>(value)) {
      kind = PTC_ATTRIBUTE_FLOATS;
      for (float real : reals.asArrayRef())
        addReal(APFloat(real));
    } else if (auto elements = mlir::dyn_cast<mlir::DenseElementsAttr>(value)) {
      kind = PTC_ATTRIBUTE_TENSORS;
      list.push_back(tensor(elements));
    } else if (auto word = mlir::dyn_cast<mlir::StringAttr>(value)) {
      list.push_back(text(word.getValue()));
    } else {
      for (mlir::Attribute element : mlir::cast<mlir::ArrayAttr>(value)) {
        auto elements = mlir::dyn_cast<mlir::DenseElementsAttr>(element);
        kind = elements ? PTC_ATTRIBUTE_TENSORS : PTC_ATTRIBUTE_STRINGS;
        list.push_back(elements ? tensor(elements) : text(mlir::cast<mlir::StringAttr>(element).getValue()));
      }
    }
    return c.record({c.string(name), c.i32(kind), c.i32(isList), c.i64(list.size()), c.array(list, "custom_values")},
                    sizeof(ptc_custom_attribute));
  }

  Constants &c;
  prim::CustomAttr custom;
};

} // namespace

std::vector<CustomOperator> listCustomOperators(const HostInputs &inputs) {
  std::vector<CustomOperator> operators;
  for (const HostFunction &function : inputs.functions)
    for (loop::ProgramOp program : function.variants)
      program->walk([&](loop::CallOp call) {
        prim::CustomAttr custom = call.getCustomAttr();
        if (!custom)
          return;
        std::string name = (custom.getDomain() + (custom.getDomain().empty() ? "" : ".") + custom.getOp()).str();
        auto isThis = [&](const CustomOperator &op) {
          return op.name == name && op.library == custom.getLibrary() && op.symbol == custom.getSymbol();
        };
        auto found = llvm::find_if(operators, isThis);
        if (found == operators.end())
          found = operators.insert(found, {name, custom.getLibrary().str(), custom.getSymbol().str(), {}});
        NodeLocation place = describeLocation(call.getLoc()).value_or(NodeLocation());
        std::string node = (place.node.empty() ? place.output : place.node).str();
        if (!llvm::is_contained(found->nodes, node))
          found->nodes.push_back(node);
      });
  return operators;
}

unsigned addCustomNode(Constants &c, loop::CallOp call) {
  prim::CustomAttr custom = call.getCustomAttr();
  CustomCode &code = c.custom;
  std::string name = describeLocation(call.getLoc()).value_or(NodeLocation()).node.str();
  auto [node, isNew] =
      code.places.try_emplace({custom, mlir::StringAttr::get(call.getContext(), name)}, code.nodes.size());
  if (!isNew) // its two functions share what create made
    return node->second;
  auto [op, isNewOp] =
      code.opPlaces.try_emplace({custom.getLibrary().str(), custom.getSymbol().str()}, code.ops.size());
  if (isNewOp)
    code.ops.push_back(
        c.record({c.string(custom.getLibrary()), c.string(custom.getSymbol())}, sizeof(ptc_rt_custom_op)));
  code.nodes.push_back(CustomNodeEmitter(c, custom).emit(op->second, name));
  return node->second;
}

Constant *emitCustomCode(Constants &c) {
  const CustomCode &code = c.custom;
  if (code.nodes.empty())
    return c.null();
  auto *runtime = cast<GlobalVariable>(c.module.getOrInsertGlobal("ptc_rt_custom", Type::getInt8Ty(c.context)));
  runtime->setVisibility(GlobalValue::HiddenVisibility);
  runtime->setConstant(true);
  Constant *value = c.record({runtime, c.array(code.ops, "custom_ops"), c.array(code.nodes, "custom_nodes"),
                              c.i32(code.ops.size()), c.i32(code.nodes.size())},
                             sizeof(ptc_rt_custom_code));
  return c.global(value, "custom_code");
}

} // namespace ptc::host
