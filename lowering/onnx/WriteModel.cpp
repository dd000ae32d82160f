//===- WriteModel.cpp - an ONNX model and its tensors as files ------------===//
#include "lowering/onnx/WriteModel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;
using namespace ptc::onnx_import;
using onnx::GraphProto;
using onnx::NodeProto;
using onnx::TensorProto;

/// Where external data may start, so that it can be mapped.
static constexpr uint64_t pageBytes = 4096;

template <typename Visitor> static void visitTensors(GraphProto &graph, Visitor &&visit);

template <typename Visitor> static void visitTensors(NodeProto &node, Visitor &&visit) {
  for (onnx::AttributeProto &attribute : *node.mutable_attribute()) {
    if (attribute.has_t())
      visit(*attribute.mutable_t(), /*isInitializer=*/false);
    for (TensorProto &tensor : *attribute.mutable_tensors())
      visit(tensor, /*isInitializer=*/false);
    if (attribute.has_g())
      visitTensors(*attribute.mutable_g(), visit);
    for (GraphProto &graph : *attribute.mutable_graphs())
      visitTensors(graph, visit);
  }
}

template <typename Visitor> static void visitTensors(GraphProto &graph, Visitor &&visit) {
  for (TensorProto &tensor : *graph.mutable_initializer())
    visit(tensor, /*isInitializer=*/true);
  for (NodeProto &node : *graph.mutable_node())
    visitTensors(node, visit);
}

template <typename Visitor> static void visitTensors(onnx::ModelProto &model, Visitor &&visit) {
  visitTensors(*model.mutable_graph(), visit);
  for (onnx::FunctionProto &function : *model.mutable_functions())
    for (NodeProto &node : *function.mutable_node())
      visitTensors(node, visit);
}

static void addExternal(TensorProto &tensor, StringRef file, uint64_t offset, uint64_t size) {
  tensor.clear_raw_data();
  tensor.set_data_location(TensorProto::EXTERNAL);
  tensor.clear_external_data();
  for (auto [key, value] : {std::pair("location", file.str()), std::pair("offset", std::to_string(offset)),
                            std::pair("length", std::to_string(size))}) {
    onnx::StringStringEntryProto &entry = *tensor.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  }
}

Expected<ModelBytes> ptc::onnx_import::serializeModel(onnx::ModelProto model, const ModelFile &source,
                                                      StringRef dataFile, uint64_t mostInline) {
  ModelBytes result;
  uint64_t total = 0;
  visitTensors(model, [&](TensorProto &tensor, bool) {
    if (std::optional<StringRef> raw = source.rawBytes(tensor))
      total += raw->size();
  });
  uint64_t end = 0;
  std::deque<std::string> &kept = result.tensors;
  visitTensors(model, [&](TensorProto &tensor, bool isInitializer) {
    ByteRange range;
    bool isMarked = readMark(tensor.doc_string(), range);
    std::optional<StringRef> raw = source.rawBytes(tensor);
    if (isMarked)
      tensor.clear_doc_string();
    if (!raw || (!isMarked && total <= mostInline))
      return;
    if (total <= mostInline || !isInitializer || raw->size() <= maxInlineBytes) {
      tensor.set_raw_data(raw->data(), raw->size());
      tensor.clear_data_location();
      tensor.clear_external_data();
      return;
    }
    if (!isMarked) { // the model gives its bytes away
      kept.push_back(std::move(*tensor.mutable_raw_data()));
      raw = kept.back();
    }
    uint64_t offset = alignTo(end, pageBytes);
    result.beside.emplace_back(offset, *raw);
    end = offset + raw->size();
    addExternal(tensor, dataFile, offset, raw->size());
  });
  if (!model.SerializeToString(&result.model))
    return createStringError("the model is larger than a protobuf can be");
  return std::move(result);
}
