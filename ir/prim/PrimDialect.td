//===- PrimDialect.td - the prim dialect, its attributes and base classes -===//
#ifndef PTC_IR_PRIM_PRIMDIALECT
#define PTC_IR_PRIM_PRIMDIALECT

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/TensorEncoding.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Prim_Dialect : Dialect {
  let name = "prim";
  let summary = "Stable primitive operators on tensors";
  let description = [{
    What a model means, after every framework operator has been decomposed: a
    functional graph of at most 250 primitive operators over ranked tensors,
    whose shapes are expressions over named symbols. Element types carry
    signedness (`si32`, `ui8`); `i1` is a boolean.
  }];
  let cppNamespace = "::ptc::prim";
  let useDefaultAttributePrinterParser = 0;
  let useDefaultTypePrinterParser = 1;
  let hasConstantMaterializer = 0;
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerTypes();
    ::mlir::Attribute parseAttribute(::mlir::DialectAsmParser &parser,
                                     ::mlir::Type type) const override;
    void printAttribute(::mlir::Attribute attr,
                        ::mlir::DialectAsmPrinter &printer) const override;
  }];
}

//===----------------------------------------------------------------------===//
// Types of elements that numbers are not
//===----------------------------------------------------------------------===//

class Prim_Type<string name, string typeMnemonic> : TypeDef<Prim_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def Prim_StringType : Prim_Type<"String", "string"> {
  let summary = "a string: bytes of a known number, UTF-8 by convention";
  let description = [{
    Below prim an element is a handle of 64 bits, the address of a view (ptc_string), or 0 for the empty string. So
    whatever only moves elements works on strings as on numbers; what looks into them is a `prim.call`.
  }];
}

def Prim_SequenceType : Prim_Type<"Sequence", "sequence"> {
  let summary = "a list of tensors, or a tensor that may be absent";
  let description = [{
    The element type of tensors of rank 0: a sequence is a value like any other, which branches and loops may
    yield. Below prim it is a handle of 64 bits. `element` is the type of the tensors inside: a ranked one whose
    dims are `?` where they differ from tensor to tensor, or an unranked one. An `optional` has at most one.
  }];
  let parameters = (ins "::mlir::Type":$element, "bool":$optional);
  let assemblyFormat = "`<` $element `,` $optional `>`";
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

// The expression attribute itself is C++ (ir/expr): it is recursive.
def Prim_ExprAttr : Attr<CPred<"::llvm::isa<::ptc::ExprAttr>($_self)">,
                         "an integer expression over symbols"> {
  let storageType = "::ptc::ExprAttr";
  let returnType = "::ptc::Expr";
  let convertFromStorage = "::ptc::Expr($_self)";
  let constBuilderCall = "$0";
}
def Prim_ExprArrayAttr
    : TypedArrayAttrBase<Prim_ExprAttr, "a list of expressions">;

class Prim_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Prim_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def Prim_DimsAttr
    : Prim_Attr<"Dims", "dims",
                [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "the dims of a tensor type as expressions over symbols";
  let description = [{
    The encoding of every tensor type that has a dynamic dim. Static dims stand
    in it too, as constants. Types without a dynamic dim carry no encoding.
  }];
  let parameters = (ins ArrayRefParameter<"::ptc::ExprAttr">:$dims);
  let hasCustomAssemblyFormat = 1;
}

def Prim_SymbolAttr : Prim_Attr<"Symbol", "symbol"> {
  let summary = "range, divisor and hint of a shape symbol";
  let description = [{
    `hint` is the value that decisions are made for (fusion scores, placement
    order, grain); it never limits what may run.
  }];
  let parameters = (ins "int64_t":$min, "int64_t":$max, "int64_t":$divisor,
                        "int64_t":$hint);
  let assemblyFormat = "`<` $min `,` $max `,` `divisor` `=` $divisor `,` `hint` `=` $hint `>`";
}

def Prim_WeightRefAttr : Prim_Attr<"WeightRef", "weight_ref"> {
  let summary = "where the bytes of a weight lie";
  let description = [{
    `file` is relative to the model's folder; the model itself is the empty
    string. The bytes are little endian, row-major, of the weight's own element
    type. Weights never enter the IR: only this reference does.
  }];
  let parameters = (ins StringRefParameter<>:$name, StringRefParameter<>:$file,
                        "int64_t":$offset, "int64_t":$size);
  let assemblyFormat = "`<` $name `,` $file `,` $offset `,` $size `>`";
}

def Prim_WeightRefArrayAttr : TypedArrayAttrBase<Prim_WeightRefAttr, "references to weights">;

def Prim_CustomAttr : Prim_Attr<"Custom", "custom"> {
  let summary = "a node of the user's own operator, and the library that has its functions";
  let description = [{
    `inputs` and `outputs` are element type and rank of the node's, as tensor types with open dims, or unit where one is
    absent; those that are there are the operands and results of the call, in order. `attributes` are the node's:
    integers, f32 floats, strings, elements, and arrays of one kind of these.
  }];
  let parameters = (ins StringRefParameter<>:$library, StringRefParameter<>:$symbol, StringRefParameter<>:$domain,
                        StringRefParameter<>:$op, "int64_t":$version, "::mlir::ArrayAttr":$inputs,
                        "::mlir::ArrayAttr":$outputs, "::mlir::DictionaryAttr":$attributes);
  let assemblyFormat = "`<` $library `,` $symbol `,` $domain `,` $op `,` $version `,` $inputs `,` $outputs `,` $attributes `>`";
}

def Prim_CarriedAttr : Prim_Attr<"Carried", "carried"> {
  let summary = "a size that a loop carries from round to round";
  let description = [{ No value of it is above `at_most`, an expression over symbols that are bound outside. }];
  let parameters = (ins StringRefParameter<>:$name, "::ptc::ExprAttr":$initial, "::ptc::ExprAttr":$next,
                        StringRefParameter<>:$final, OptionalParameter<"::ptc::ExprAttr">:$at_most);
  let assemblyFormat = "`<` $name `=` $initial `then` $next `,` `finally` $final (`,` `at_most` $at_most^)? `>`";
}
def Prim_JoinedAttr : Prim_Attr<"Joined", "joined"> {
  let summary = "a size that is one thing behind the one branch and another behind the other";
  let parameters = (ins StringRefParameter<>:$name, "::ptc::ExprAttr":$then_size, "::ptc::ExprAttr":$else_size);
  let assemblyFormat = "`<` $name `=` $then_size `or` $else_size `>`";
}
def Prim_JoinedArrayAttr : TypedArrayAttrBase<Prim_JoinedAttr, "sizes that differ between branches">;
def Prim_CarriedArrayAttr : TypedArrayAttrBase<Prim_CarriedAttr, "sizes that a loop carries">;

//===----------------------------------------------------------------------===//
// Enums
//===----------------------------------------------------------------------===//

class Prim_Enum<string name, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, "", cases> {
  let cppNamespace = "::ptc::prim";
  let genSpecializedAttr = 0;
}
class Prim_EnumAttr<EnumInfo info, string mnemonic>
    : EnumAttr<Prim_Dialect, info, mnemonic>;

// mean is sum and division; l1, l2, logsumexp decompose too.
def Prim_ReduceKind : Prim_Enum<"ReduceKind", [
  I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Prod", 1, "prod">,
  I32EnumAttrCase<"Max", 2, "max">, I32EnumAttrCase<"Min", 3, "min">,
  I32EnumAttrCase<"Any", 4, "any">, I32EnumAttrCase<"All", 5, "all">]>;
def Prim_ReduceKindAttr : Prim_EnumAttr<Prim_ReduceKind, "reduce_kind">;

def Prim_ArgKind : Prim_Enum<"ArgKind", [
  I32EnumAttrCase<"Max", 0, "max">, I32EnumAttrCase<"Min", 1, "min">]>;
def Prim_ArgKindAttr : Prim_EnumAttr<Prim_ArgKind, "arg_kind">;

def Prim_PadKind : Prim_Enum<"PadKind", [
  I32EnumAttrCase<"Constant", 0, "constant">, I32EnumAttrCase<"Edge", 1, "edge">,
  I32EnumAttrCase<"Reflect", 2, "reflect">, I32EnumAttrCase<"Wrap", 3, "wrap">]>;
def Prim_PadKindAttr : Prim_EnumAttr<Prim_PadKind, "pad_kind">;

// What a scatter does where an element is written: Set keeps the last update.
def Prim_ScatterKind : Prim_Enum<"ScatterKind", [
  I32EnumAttrCase<"Set", 0, "set">, I32EnumAttrCase<"Add", 1, "add">,
  I32EnumAttrCase<"Mul", 2, "mul">, I32EnumAttrCase<"Max", 3, "max">,
  I32EnumAttrCase<"Min", 4, "min">]>;
def Prim_ScatterKindAttr : Prim_EnumAttr<Prim_ScatterKind, "scatter_kind">;

//===----------------------------------------------------------------------===//
// Base classes
//===----------------------------------------------------------------------===//

def Prim_Tensor : AnyTypeOf<[AnyRankedTensor], "a ranked tensor">;
def Prim_BoolTensor : TensorOf<[I1]>;
def Prim_IntTensor : TensorOf<[AnySignedInteger, AnyUnsignedInteger]>;

class Prim_Op<string mnemonic, list<Trait> traits = []>
    : Op<Prim_Dialect, mnemonic, traits>;

// Result types follow from operands and attributes: the type rule is
// `inferReturnTypes` in PrimOps.cpp, which the verifier applies too.
class Prim_InferredOp<string mnemonic, list<Trait> traits = []>
    : Prim_Op<mnemonic, !listconcat(traits, [Pure, InferTypeOpAdaptor])>;

#endif // PTC_IR_PRIM_PRIMDIALECT
