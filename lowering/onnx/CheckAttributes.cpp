//===- CheckAttributes.cpp - do attributes fit their operators? -----------===//
//
// ONNX's checker stops at the first attribute that does not fit. Here every node
// is compared with its schema, in subgraphs and functions too, and each problem
// stands at its node.
//
//===----------------------------------------------------------------------===//
#include "ir/Diagnostics.h"
#include "lowering/onnx/CheckGraph.h"
#include "lowering/onnx/Opsets.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::onnx_import;
using onnx::AttributeProto;
using onnx::NodeProto;

/// "INT" as users of the ONNX library write it: an int; "FLOATS": a list of floats.
static std::string typeName(int type) {
  StringRef name = AttributeProto::AttributeType_Name(AttributeProto::AttributeType(type));
  bool isList = name.consume_back("S");
  std::string word = name.lower();
  if (isList)
    return "a list of " + word + "s";
  return (StringRef("aeiou").contains(word.front()) ? "an " : "a ") + word;
}

/// An attribute that the operator does not have, with the one that may be meant. Names that begin with two underscores
/// are for tools.
static bool checkIsKnown(const AttributeProto &attribute, const onnx::OpSchema &schema, Location loc) {
  StringRef name = attribute.name();
  if (schema.attributes().count(attribute.name()) || name.starts_with("__"))
    return true;
  std::vector<std::string> known;
  std::string nearest;
  unsigned least = std::max<size_t>(2, name.size() / 3) + 1;
  for (const auto &[other, declared] : schema.attributes()) {
    known.push_back(other);
    if (unsigned distance = name.edit_distance(other, true, least); distance < least)
      std::tie(nearest, least) = std::tuple(other, distance);
  }
  InFlightDiagnostic diag = diagnose(loc, DiagId::UnknownAttribute, name, schema.Name());
  if (!nearest.empty())
    addHelp(diag, "did you mean '" + nearest + "'?");
  else if (!known.empty())
    addHelp(diag, "in this opset it has: " + llvm::join(known, ", "));
  else
    addHelp(diag, "in this opset it has none: take the attribute out");
  return false;
}

static bool checkNode(const NodeProto &node, const onnx::OpSchema &schema, Location loc) {
  bool isSound = true;
  for (const AttributeProto &attribute : node.attribute())
    isSound &= checkIsKnown(attribute, schema, loc);
  for (const auto &[name, declared] : schema.attributes()) {
    const AttributeProto *given = nullptr;
    for (const AttributeProto &attribute : node.attribute())
      if (attribute.name() == name)
        given = &attribute;
    bool isReference = given && !given->ref_attr_name().empty(); // of a function: bound where it is called
    if (!given && declared.required) {
      InFlightDiagnostic diag = diagnose(loc, DiagId::MissingAttribute, name);
      addHelp(diag, "the operator needs it: " + typeName(declared.type));
      isSound = false;
    }
    if (given && !isReference && given->type() != AttributeProto::UNDEFINED &&
        int(given->type()) != int(declared.type)) {
      InFlightDiagnostic diag =
          diagnose(loc, DiagId::WrongAttributeType, name, typeName(given->type()), typeName(declared.type));
      addHelp(diag, "write the model again with '" + name + "' as the operator's documentation has it");
      isSound = false;
    }
  }
  return isSound;
}

template <typename Nodes>
static bool checkNodes(MLIRContext *context, const Nodes &nodes, const Opsets &opsets,
                       const LocalFunctions &functions) {
  bool isSound = true;
  for (const NodeProto &node : nodes) {
    const onnx::OpSchema *schema = functions.find(node) ? nullptr : opsets.schema(node);
    if (schema)
      isSound &= checkNode(node, *schema, nodeLocation(context, node));
    for (const AttributeProto &attribute : node.attribute())
      if (attribute.has_g())
        isSound &= checkNodes(context, attribute.g().node(), opsets, functions);
  }
  return isSound;
}

bool ptc::onnx_import::checkAttributes(MLIRContext *context, const onnx::ModelProto &model) {
  LocalFunctions functions(model);
  bool isSound = checkNodes(context, model.graph().node(), Opsets(model.opset_import()), functions);
  for (const onnx::FunctionProto &function : model.functions())
    isSound &= checkNodes(context, function.node(), Opsets(function.opset_import()), functions);
  return isSound;
}
