//===- ElementTypes.cpp - ONNX element types and ours ---------------------===//
#include "lowering/decomp/ElementTypes.h"
#include "ir/prim/Prim.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <onnx/onnx_pb.h>

using namespace mlir;

namespace {

Type signedInt(MLIRContext *c, unsigned width) { return IntegerType::get(c, width, IntegerType::Signed); }
Type unsignedInt(MLIRContext *c, unsigned width) { return IntegerType::get(c, width, IntegerType::Unsigned); }

struct Row {
  int32_t dataType;
  llvm::StringLiteral name;
  Type (*get)(MLIRContext *);
};

/// In the order of TensorProto.DataType.
constexpr Row rows[] = {
    {1, "float", [](MLIRContext *c) -> Type { return Float32Type::get(c); }},
    {2, "uint8", [](MLIRContext *c) { return unsignedInt(c, 8); }},
    {3, "int8", [](MLIRContext *c) { return signedInt(c, 8); }},
    {4, "uint16", [](MLIRContext *c) { return unsignedInt(c, 16); }},
    {5, "int16", [](MLIRContext *c) { return signedInt(c, 16); }},
    {6, "int32", [](MLIRContext *c) { return signedInt(c, 32); }},
    {7, "int64", [](MLIRContext *c) { return signedInt(c, 64); }},
    {8, "string", [](MLIRContext *c) -> Type { return ptc::prim::StringType::get(c); }},
    {9, "bool", [](MLIRContext *c) -> Type { return IntegerType::get(c, 1); }},
    {10, "float16", [](MLIRContext *c) -> Type { return Float16Type::get(c); }},
    {11, "double", [](MLIRContext *c) -> Type { return Float64Type::get(c); }},
    {12, "uint32", [](MLIRContext *c) { return unsignedInt(c, 32); }},
    {13, "uint64", [](MLIRContext *c) { return unsignedInt(c, 64); }},
    {14, "complex64", [](MLIRContext *c) -> Type { return IntegerType::get(c, 64); }},
    {15, "complex128", [](MLIRContext *c) -> Type { return IntegerType::get(c, 128); }},
    {16, "bfloat16", [](MLIRContext *c) -> Type { return BFloat16Type::get(c); }},
    {17, "float8e4m3fn", [](MLIRContext *c) -> Type { return Float8E4M3FNType::get(c); }},
    {18, "float8e4m3fnuz", [](MLIRContext *c) -> Type { return Float8E4M3FNUZType::get(c); }},
    {19, "float8e5m2", [](MLIRContext *c) -> Type { return Float8E5M2Type::get(c); }},
    {20, "float8e5m2fnuz", [](MLIRContext *c) -> Type { return Float8E5M2FNUZType::get(c); }},
    {21, "uint4", [](MLIRContext *c) { return unsignedInt(c, 4); }},
    {22, "int4", [](MLIRContext *c) { return signedInt(c, 4); }},
    {23, "float4e2m1", [](MLIRContext *c) -> Type { return Float4E2M1FNType::get(c); }},
    {24, "float8e8m0", [](MLIRContext *c) -> Type { return Float8E8M0FNUType::get(c); }},
    {25, "uint2", [](MLIRContext *c) { return unsignedInt(c, 2); }},
    {26, "int2", [](MLIRContext *c) { return signedInt(c, 2); }},
    {27, "float6e2m3", [](MLIRContext *c) -> Type { return Float6E2M3FNType::get(c); }},
    {28, "float6e3m2", [](MLIRContext *c) -> Type { return Float6E3M2FNType::get(c); }},
};

const Row *find(int32_t dataType) {
  const Row *row = llvm::find_if(rows, [&](const Row &r) { return r.dataType == dataType; });
  return row == std::end(rows) ? nullptr : row;
}

} // namespace

Type ptc::decomp::fromOnnxType(MLIRContext *context, int32_t dataType) {
  const Row *row = find(dataType);
  return row && row->get ? row->get(context) : Type();
}

int32_t ptc::decomp::toOnnxType(Type elementType) {
  for (const Row &row : rows)
    if (row.get && row.get(elementType.getContext()) == elementType)
      return row.dataType;
  return 0;
}

std::string ptc::decomp::onnxTypeName(int32_t dataType) {
  const Row *row = find(dataType);
  return row ? row->name.str() : llvm::itostr(dataType);
}

bool ptc::decomp::isMap(Type type) { return llvm::isa<TupleType>(type); }

Value ptc::decomp::joinMap(OpBuilder &builder, Location loc, Value keys, Value values) {
  Type type = TupleType::get(builder.getContext(), {keys.getType(), values.getType()});
  return UnrealizedConversionCastOp::create(builder, loc, type, ValueRange{keys, values}).getResult(0);
}

std::pair<Value, Value> ptc::decomp::splitMap(Value map) {
  auto cast = map.getDefiningOp<UnrealizedConversionCastOp>();
  return {cast.getInputs()[0], cast.getInputs()[1]};
}

std::string ptc::decomp::onnxTypeOf(Type type) {
  if (auto map = llvm::dyn_cast<TupleType>(type)) {
    auto elementName = [&](size_t i) {
      return onnxTypeName(toOnnxType(llvm::cast<TensorType>(map.getType(i)).getElementType()));
    };
    std::string text = "map(" + elementName(0) + ",tensor(" + elementName(1) + "))";
    return llvm::cast<RankedTensorType>(map.getType(1)).getRank() == 2 ? "seq(" + text + ")" : text;
  }
  auto tensor = llvm::cast<TensorType>(type);
  auto sequence = llvm::dyn_cast<prim::SequenceType>(tensor.getElementType());
  if (!sequence)
    return "tensor(" + onnxTypeName(toOnnxType(tensor.getElementType())) + ")";
  return (sequence.getOptional() ? "optional(" : "seq(") + onnxTypeOf(sequence.getElement()) + ")";
}

std::string ptc::decomp::describeType(Type type) {
  if (type && isMap(type))
    return onnxTypeOf(type);
  auto tensor = llvm::dyn_cast_if_present<RankedTensorType>(type);
  if (!tensor)
    return onnxTypeName(type ? toOnnxType(type) : 0);
  if (llvm::isa<prim::SequenceType>(tensor.getElementType()))
    return onnxTypeOf(tensor);
  llvm::SmallVector<ptc::Expr> dims = prim::getDims(tensor);
  auto texts = llvm::map_range(dims, [](Expr dim) { return dim.str(); });
  return describeType(tensor.getElementType()) + " [" + llvm::join(texts, ", ") + "]";
}

Type ptc::decomp::fromTypeProto(MLIRContext *context, const onnx::TypeProto &proto, std::string &problem) {
  bool isOptional = proto.value_case() == onnx::TypeProto::kOptionalType;
  if (isOptional || proto.value_case() == onnx::TypeProto::kSequenceType) {
    Type item = fromTypeProto(
        context, isOptional ? proto.optional_type().elem_type() : proto.sequence_type().elem_type(), problem);
    return item ? RankedTensorType::get({}, prim::SequenceType::get(context, item, isOptional)) : Type();
  }
  if (proto.value_case() != onnx::TypeProto::kTensorType) {
    problem = proto.value_case() == onnx::TypeProto::kMapType ? "map" : "value that is no tensor";
    return {};
  }
  const onnx::TypeProto::Tensor &tensor = proto.tensor_type();
  Type element = fromOnnxType(context, tensor.elem_type());
  if (!element) {
    problem = "tensor of " + onnxTypeName(tensor.elem_type());
    return {};
  }
  if (!tensor.has_shape())
    return UnrankedTensorType::get(element);
  llvm::SmallVector<int64_t> shape;
  for (const onnx::TensorShapeProto::Dimension &dim : tensor.shape().dim())
    shape.push_back(dim.dim_value() > 0 ? dim.dim_value() : ShapedType::kDynamic);
  return RankedTensorType::get(shape, element);
}

void ptc::decomp::toTypeProto(Type type, onnx::TypeProto &proto) {
  auto tensor = llvm::cast<TensorType>(type);
  if (auto sequence = llvm::dyn_cast<prim::SequenceType>(tensor.getElementType()))
    return toTypeProto(sequence.getElement(), sequence.getOptional()
                                                  ? *proto.mutable_optional_type()->mutable_elem_type()
                                                  : *proto.mutable_sequence_type()->mutable_elem_type());
  proto.mutable_tensor_type()->set_elem_type(toOnnxType(tensor.getElementType()));
  if (!tensor.hasRank())
    return;
  onnx::TensorShapeProto *shape = proto.mutable_tensor_type()->mutable_shape();
  auto encoded = llvm::dyn_cast_if_present<prim::DimsAttr>(llvm::cast<RankedTensorType>(tensor).getEncoding());
  for (auto [axis, extent] : llvm::enumerate(tensor.getShape())) {
    onnx::TensorShapeProto::Dimension *dim = shape->add_dim();
    if (!ShapedType::isDynamic(extent))
      dim->set_dim_value(extent);
    else if (encoded)
      dim->set_dim_param(Expr(encoded.getDims()[axis]).str());
  }
}
