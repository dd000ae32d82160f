// The typed functions: each packs its parameters into arrays and calls the runtime function of the same meaning. So the
// whole behaviour is the runtime's; what is generated is the signature.
#include "codegen/host/HostBuilder.h"

using namespace llvm;

namespace ptc::host {
namespace {

class EntryEmitter {
public:
  EntryEmitter(Constants &constants, const ModelInterface &interface, GlobalVariable *descriptor)
      : constants(constants), interface(interface), descriptor(descriptor), builder(constants.context),
        pointer(constants.pointer), i32(builder.getInt32Ty()), i64(builder.getInt64Ty()), none(builder.getVoidTy()) {}

  void emitModelFunctions() {
    begin(interface.name + "_create", i32, 2);
    finish(call("ptc_rt_create", i32, {descriptor, argument(0), argument(1)}));
    forward("_destroy", "ptc_rt_destroy", none, {pointer});
    forward("_ctx_create", "ptc_rt_ctx_create", i32, {pointer, pointer});
    forward("_ctx_destroy", "ptc_rt_ctx_destroy", none, {pointer});
    forward("_set_weight", "ptc_rt_set_weight", i32, {pointer, pointer, pointer, i64});
    forward("_last_error", "ptc_rt_last_error", pointer, {pointer});
  }

  void emitFunction(const Function &function, unsigned index) {
    bool dynamic = !function.symbols.empty();
    unsigned first = dynamic ? 2 : 1; // parameters before the values
    auto dims = [&] { return dynamic ? argument(1) : constants.null(); };
    Value *number = builder.getInt32(index);

    begin(function.cPrefix + "_workspace_size", i64, first);
    finish(call("ptc_rt_workspace_size", i64, {argument(0), number, dims()}));

    begin(function.cPrefix + "_warmup", i32, first);
    finish(call("ptc_rt_warmup", i32, {argument(0), number, dims()}));

    unsigned outputs = function.outputs.size();
    begin(function.cPrefix + "_output_shapes", i32, first + outputs);
    finish(call("ptc_rt_output_shapes", i32, {argument(0), number, dims(), pack(first, outputs)}));

    unsigned values = function.inputs.size();
    for (const host::Value &value : function.outputs)
      values += value.alias >= 0 ? 0 : value.isFound() ? 2 : 1;
    begin(function.cPrefix + "_run", i32, first + values + 2);
    finish(call(
        "ptc_rt_run", i32,
        {argument(0), number, dims(), pack(first, values), argument(first + values), argument(first + values + 1)}));
  }

private:
  using Value = llvm::Value;

  /// A visible function of pointers.
  void begin(const std::string &name, Type *result, unsigned parameters) {
    begin(name, result, SmallVector<Type *>(parameters, pointer));
  }

  void begin(const std::string &name, Type *result, ArrayRef<Type *> parameters) {
    function = llvm::Function::Create(FunctionType::get(result, parameters, false), GlobalValue::ExternalLinkage, name,
                                      constants.module);
    function->addFnAttr(Attribute::NoUnwind);
    builder.SetInsertPoint(BasicBlock::Create(constants.context, "", function));
  }

  Value *argument(unsigned index) { return function->getArg(index); }

  Value *call(StringRef name, Type *result, ArrayRef<Value *> arguments) {
    SmallVector<Type *> types;
    for (Value *value : arguments)
      types.push_back(value->getType());
    return builder.CreateCall(runtimeFunction(constants.module, name, result, types), arguments);
  }

  void finish(Value *result) {
    if (result->getType()->isVoidTy())
      builder.CreateRetVoid();
    else
      builder.CreateRet(result);
  }

  /// A function that hands its parameters on.
  void forward(StringRef suffix, StringRef target, Type *result, ArrayRef<Type *> parameters) {
    begin(interface.name + suffix.str(), result, parameters);
    SmallVector<Value *> arguments;
    for (Argument &argument : function->args())
      arguments.push_back(&argument);
    finish(call(target, result, arguments));
  }

  /// The address of an array of `count` parameters.
  Value *pack(unsigned first, unsigned count) {
    Value *array = builder.CreateAlloca(pointer, builder.getInt32(std::max(count, 1u)));
    for (unsigned i = 0; i < count; ++i)
      builder.CreateStore(argument(first + i), builder.CreateConstInBoundsGEP1_32(pointer, array, i));
    return array;
  }

  Constants &constants;
  const ModelInterface &interface;
  GlobalVariable *descriptor;
  IRBuilder<> builder;
  PointerType *pointer;
  Type *i32, *i64, *none;
  llvm::Function *function = nullptr;
};

} // namespace

void emitEntryPoints(Constants &constants, const ModelInterface &interface, GlobalVariable *descriptor) {
  EntryEmitter emitter(constants, interface, descriptor);
  emitter.emitModelFunctions();
  for (unsigned i = 0; i < interface.functions.size(); ++i)
    emitter.emitFunction(interface.functions[i], i);
}

} // namespace ptc::host
