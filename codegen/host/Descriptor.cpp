// The constant tables that describe a model: the public one (ptc/abi.h) and the runtime's (ptc/descriptor.h). Each
// function below writes one C struct, member by member in the order of the header; its size is checked against the C
// compiler's.
#include "runtime/include/ptc/descriptor.h"
#include "codegen/host/HostBuilder.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace ptc::host {

Constants::Constants(Module &module)
    : module(module), context(module.getContext()), pointer(PointerType::get(module.getContext(), 0)) {}

GlobalVariable *Constants::global(Constant *value, const Twine &name) {
  auto *variable =
      new GlobalVariable(module, value->getType(), /*isConstant=*/true, GlobalValue::PrivateLinkage, value, name);
  variable->setUnnamedAddr(GlobalValue::UnnamedAddr::Global);
  return variable;
}

Constant *Constants::string(StringRef text) {
  Constant *&found = strings[text];
  if (!found)
    found = global(ConstantDataArray::getString(context, text), "text");
  return found;
}

Constant *Constants::record(ArrayRef<Constant *> members, size_t size) {
  Constant *result = ConstantStruct::getAnon(context, members);
  assert(module.getDataLayout().getTypeAllocSize(result->getType()) == size && "the struct of the runtime has changed");
  return result;
}

Constant *Constants::array(ArrayRef<Constant *> elements, const Twine &name) {
  if (elements.empty())
    return null();
  return global(ConstantArray::get(ArrayType::get(elements[0]->getType(), elements.size()), elements), name);
}

Constant *Constants::bytes(StringRef text) {
  Constant *&known = contents[text];
  if (!known) {
    GlobalVariable *variable = global(ConstantDataArray::getString(context, text, /*AddNull=*/false), "constant");
    variable->setAlignment(Align(64));
    known = variable;
  }
  return known;
}

uint64_t Constants::placeOnDevice(StringRef bytes) {
  constexpr uint64_t alignment = 64;
  auto [place, isNew] = deviceOffsets.try_emplace(bytes, alignTo(deviceBytes.size(), alignment));
  if (isNew) {
    deviceBytes.resize(place->second);
    deviceBytes += bytes;
  }
  return place->second;
}

FunctionCallee runtimeFunction(Module &module, StringRef name, Type *result, ArrayRef<Type *> parameters) {
  FunctionCallee callee = module.getOrInsertFunction(name, FunctionType::get(result, parameters, false));
  auto *function = cast<llvm::Function>(callee.getCallee());
  function->setVisibility(GlobalValue::HiddenVisibility);
  function->addFnAttr(Attribute::NoUnwind);
  return callee;
}

namespace {

class DescriptorEmitter {
public:
  DescriptorEmitter(Constants &c, const HostInputs &inputs, const ModelInterface &interface)
      : c(c), inputs(inputs), interface(interface) {}

  template <typename Range, typename Function>
  Constant *list(const Range &range, const Twine &name, Function &&convert) {
    SmallVector<Constant *> elements;
    for (const auto &element : range)
      elements.push_back(convert(element));
    return c.array(elements, name);
  }

  // ---- the public table ----

  Constant *dtype(DType type) { return c.record({c.i8(type.code), c.i8(type.bits), c.i16(1)}, sizeof(ptc_dtype)); }

  Constant *dim(const Dim &dim) {
    return c.record({c.i64(dim.extent), c.i32(dim.symbol), c.i32(dim.isFound ? PTC_DIM_FOUND : 0), c.string(dim.text)},
                    sizeof(ptc_dim));
  }

  Constant *symbol(const Symbol &symbol) {
    return c.record(
        {c.string(symbol.name), c.i64(symbol.min), c.i64(symbol.max), c.i64(symbol.divisor), c.i64(symbol.hint)},
        sizeof(ptc_symbol));
  }

  Constant *value(const host::Value &value) {
    Constant *element = value.element ? c.global(this->value(*value.element), "element") : c.null();
    return c.record({c.string(value.name), c.string(value.cName), dtype(value.dtype),
                     c.i32(value.isUnranked ? -1 : int64_t(value.dims.size())),
                     list(value.dims, "dims", [&](const Dim &d) { return dim(d); }), c.i32(value.alias),
                     c.i32(value.role), element},
                    sizeof(ptc_value));
  }

  Constant *function(const Function &function) {
    auto values = [&](const std::vector<host::Value> &all, const Twine &name) {
      return list(all, name, [&](const host::Value &v) { return value(v); });
    };
    return c.record({c.string(function.name), c.i32(function.inputs.size()), c.i32(function.outputs.size()),
                     values(function.inputs, "inputs"), values(function.outputs, "outputs"),
                     c.i32(function.symbols.size()), c.i32(function.guards.size()),
                     list(function.symbols, "symbols", [&](const Symbol &s) { return symbol(s); }),
                     list(function.guards, "guard_texts", [&](const Guard &g) { return c.string(g.text); })},
                    sizeof(ptc_function));
  }

  Constant *weight(const Weight &weight) {
    return c.record({c.string(weight.name), dtype(weight.dtype), c.i32(weight.shape.size()),
                     list(weight.shape, "shape", [&](int64_t extent) { return c.i64(extent); }), c.i64(weight.bytes())},
                    sizeof(ptc_weight));
  }

  Constant *entry(StringRef name) {
    // The table only takes addresses; the typed functions are defined later, the others are the runtime's.
    FunctionCallee callee = c.module.getOrInsertFunction(name, FunctionType::get(Type::getVoidTy(c.context), false));
    auto *function = cast<llvm::Function>(callee.getCallee());
    if (name.starts_with("ptc_rt_"))
      function->setVisibility(GlobalValue::HiddenVisibility);
    return function;
  }

  Constant *publicTable(Constant *functions, ArrayRef<std::string> levels) {
    return c.record({c.i32(sizeof(ptc_model_table)),
                     c.i32(PTC_ABI_VERSION),
                     c.string(interface.name),
                     c.string(interface.compiler),
                     c.i32(interface.functions.size()),
                     c.i32(levels.size()),
                     functions,
                     list(levels, "level_names", [&](StringRef level) { return c.string(level); }),
                     c.i32(interface.weights.size()),
                     c.i32(0),
                     list(interface.weights, "weights", [&](const Weight &w) { return weight(w); }),
                     c.module.getFunction(interface.name + "_create"),
                     entry("ptc_rt_destroy"),
                     entry("ptc_rt_ctx_create"),
                     entry("ptc_rt_ctx_destroy"),
                     entry("ptc_rt_tensor_workspace_size"),
                     entry("ptc_rt_tensor_output_shapes"),
                     entry("ptc_rt_tensor_warmup"),
                     entry("ptc_rt_tensor_run"),
                     entry("ptc_rt_set_weight"),
                     entry("ptc_rt_last_error"),
                     entry("ptc_rt_cpu_level"),
                     entry("ptc_rt_threads"),
                     entry("ptc_rt_tensor_run_call")},
                    sizeof(ptc_model_table));
  }

  // ---- the runtime's tables ----

  Constant *bytes(StringRef text, const Twine &name) {
    GlobalVariable *variable = c.global(ConstantDataArray::getString(c.context, text, /*AddNull=*/false), name);
    variable->setAlignment(Align(64));
    return variable;
  }

  /// A level of a device has images instead of functions.
  Constant *deviceLevel(const Level &level, ArrayRef<StringRef> images) {
    Constant *table = list(images, "images", [&](StringRef image) {
      Constant *place = image.empty() ? c.null() : bytes(image, "image");
      return c.record({place, c.i64(int64_t(image.size()))}, sizeof(ptc_rt_image));
    });
    return c.record({c.string(level.name), c.i64(level.features), c.null(), table}, sizeof(ptc_rt_level));
  }

  /// `room` numbers, of which the last are `otherwise`.
  void addList(SmallVectorImpl<Constant *> &values, ArrayRef<int64_t> list, size_t room, int64_t otherwise) {
    for (size_t i = 0; i < room; ++i)
      values.push_back(c.i64(i < list.size() ? list[i] : otherwise));
  }

  Constant *tensorMap(const codegen::TensorMap &map) {
    SmallVector<Constant *> values{c.i32(map.buffer), c.i32(unsigned(map.extents.size())), c.i32(map.elementBytes),
                                   c.i32(unsigned(map.steps.size())), c.i64(map.offset)};
    for (ArrayRef<int64_t> list : {ArrayRef(map.extents), ArrayRef(map.strides), ArrayRef(map.box)})
      addList(values, list, PTC_RT_CUDA_MAP_RANK, 0);
    for (ArrayRef<int64_t> list : {ArrayRef(map.lower), ArrayRef(map.upper), ArrayRef(map.steps)})
      addList(values, list, PTC_RT_CUDA_MAP_AXES, 0);
    return c.record(values, sizeof(ptc_rt_tensor_map));
  }

  Constant *matrix(const codegen::LibraryProduct::Matrix &matrix) {
    return c.record({c.i32(matrix.buffer), c.i32(matrix.isAlongK), c.i64(matrix.offset), c.i64(matrix.pitch),
                     c.i64(matrix.batchStride)},
                    sizeof(ptc_rt_matrix));
  }

  Constant *product(const codegen::LibraryProduct &product) {
    return c.record({c.i32(int64_t(product.type)), c.i32(int64_t(product.resultType)), c.i32(product.bias.has_value()),
                     c.i32(product.hasRelu), c.i64(product.batch), c.i64(product.m), c.i64(product.n), c.i64(product.k),
                     c.i64(product.workspace), matrix(product.lhs), matrix(product.rhs), matrix(product.result),
                     matrix(product.bias.value_or(codegen::LibraryProduct::Matrix()))},
                    sizeof(ptc_rt_product));
  }

  Constant *operand(const codegen::LibraryConvolution::Image &operand) {
    SmallVector<Constant *> values{c.i32(operand.buffer), c.i32(0), c.i64(operand.offset)};
    for (ArrayRef<int64_t> list : {ArrayRef(operand.extents), ArrayRef(operand.strides)})
      addList(values, list, PTC_RT_OPERAND_RANK, 1);
    return c.record(values, sizeof(ptc_rt_operand));
  }

  Constant *convolution(const codegen::LibraryConvolution &convolution) {
    SmallVector<Constant *> values{c.i32(int64_t(convolution.type)),    c.i32(int64_t(convolution.resultType)),
                                   c.i32(convolution.bias.has_value()), c.i32(convolution.residual.has_value()),
                                   c.i32(convolution.hasRelu),          c.i32(unsigned(convolution.steps.size())),
                                   c.i64(convolution.workspace)};
    for (ArrayRef<int64_t> list : {ArrayRef(convolution.steps), ArrayRef(convolution.dilations)})
      addList(values, list, PTC_RT_LIBRARY_AXES, 1);
    for (ArrayRef<int64_t> list : {ArrayRef(convolution.before), ArrayRef(convolution.behind)})
      addList(values, list, PTC_RT_LIBRARY_AXES, 0);
    auto bias = convolution.bias.value_or(codegen::LibraryConvolution::Bias());
    llvm::append_range(values,
                       std::initializer_list<Constant *>{
                           operand(convolution.input), operand(convolution.weights), operand(convolution.result),
                           operand(convolution.residual.value_or(codegen::LibraryConvolution::Image())),
                           matrix({.buffer = bias.buffer, .offset = bias.offset})});
    return c.record(values, sizeof(ptc_rt_convolution));
  }

  Constant *deviceKernel(const codegen::DeviceLaunch &launch) {
    assert(launch.maps.size() <= PTC_RT_CUDA_MAPS && "more maps than a launch has room for");
    Constant *maps = launch.maps.empty()
                         ? c.null()
                         : list(launch.maps, "maps", [&](const codegen::TensorMap &map) { return tensorMap(map); });
    return c.record({c.i32(launch.threads), c.i32(launch.rows), c.i32(launch.buffers), c.i32(launch.symbols),
                     c.i8(launch.checksIndices), c.i8(launch.hasScratch), c.i8(launch.hasCounters),
                     c.i8(int64_t(launch.maps.size())), c.i32(launch.sharedBytes), c.i32(launch.blocks),
                     c.i32(launch.cluster > 1 ? launch.blocks : launch.together), maps,
                     launch.product ? c.global(product(*launch.product), "product") : c.null(),
                     launch.convolution ? c.global(convolution(*launch.convolution), "convolution") : c.null(),
                     c.string(launch.entry)},
                    sizeof(ptc_rt_device_kernel));
  }

  Constant *deviceCode() {
    if (!inputs.device)
      return c.null();
    std::vector<codegen::DeviceLaunch> launches;
    for (const std::vector<codegen::DeviceLaunch> &level : inputs.device->kernels)
      llvm::append_range(launches, level);
    Constant *kernels =
        list(launches, "device_kernels", [&](const codegen::DeviceLaunch &launch) { return deviceKernel(launch); });
    Constant *constants = c.deviceBytes.empty() ? c.null() : bytes(c.deviceBytes, "device_constants");
    Constant *value = c.record({external("ptc_rt_device_cuda", Type::getInt8Ty(c.context)), kernels, constants,
                                c.i64(int64_t(c.deviceBytes.size())), c.i32(inputs.device->recordsGraphs), c.i32(0)},
                               sizeof(ptc_rt_device_code));
    return c.global(value, "device_code");
  }

  Constant *levels(ArrayRef<KernelEntry> kernels) {
    SmallVector<Constant *> rows;
    for (auto [i, row] : llvm::enumerate(inputs.levels))
      rows.push_back(inputs.device ? deviceLevel(row, inputs.device->images[i]) : level(row, kernels));
    return c.array(rows, "levels");
  }

  /// Beside a device: functions of the kernels that run on the host.
  Constant *hostLevels(ArrayRef<KernelEntry> kernels) {
    return list(inputs.hostLevels, "host_levels", [&](const Level &row) { return level(row, kernels); });
  }

  Constant *level(const Level &level, ArrayRef<KernelEntry> kernels) {
    SmallVector<Constant *> functions;
    for (const KernelEntry &kernel : kernels) {
      bool isHere = !inputs.device || kernel.runsOnHost();
      functions.push_back(isHere ? entry(kernel.symbol(level.codeLevel(kernel.launchedKernel()))) : c.null());
      if (isHere)
        cast<llvm::Function>(functions.back())->setVisibility(GlobalValue::HiddenVisibility);
    }
    return c.record({c.string(level.name), c.i64(level.features), c.array(functions, "kernels"), c.null()},
                    sizeof(ptc_rt_level));
  }

  Constant *guard(const Guard &guard) {
    return c.record({c.string(guard.text), guard.nodes.empty() ? c.null() : c.string(guard.nodes),
                     c.i32(guard.symbols.size()), c.i32(0),
                     list(guard.symbols, "guard_symbols", [&](unsigned symbol) { return c.i32(symbol); })},
                    sizeof(ptc_rt_guard));
  }

  Constant *variant(const VariantCode &code) {
    auto site = [&](const LaunchSite &site) {
      return c.record({c.i32(site.kernel), c.i32(site.custom), c.string(site.nodes), c.i32(site.copies)},
                      sizeof(ptc_rt_launch_site));
    };
    auto tap = [&](const TapSite &tap) {
      return c.record({c.string(tap.node), c.string(tap.op), c.string(tap.output), dtype(tap.dtype), c.i32(tap.rank),
                       c.i32(tap.number), c.i32(tap.launch)},
                      sizeof(ptc_rt_tap_site));
    };
    auto bound = [&](const BoundSite &site) {
      return c.record({c.string(site.symbol), c.string(site.nodes)}, sizeof(ptc_rt_bound_symbol));
    };
    return c.record({c.string(code.name), code.program, code.arenaBytes, c.orNull(code.scratchBytes),
                     c.orNull(code.guard), list(code.guards, "guards", [&](const Guard &g) { return guard(g); }),
                     list(code.launches, "launches", site), c.i32(code.guards.size()), c.i32(code.launches.size()),
                     list(code.taps, "taps", tap), c.i32(code.taps.size()), c.i32(code.blocks),
                     list(code.bound, "bound_symbols", bound), c.i32(code.bound.size()), c.i32(code.innerGuards),
                     list(code.pins, "pins", [&](int64_t pin) { return c.i64(pin); }),
                     list(code.places, "places", [&](uint8_t place) { return c.i8(place); })},
                    sizeof(ptc_rt_variant));
  }

  Constant *functionCode(const FunctionCode &code, Constant *publicFunctions, unsigned index) {
    Constant *address = ConstantExpr::getInBoundsGetElementPtr(Type::getInt8Ty(c.context), publicFunctions,
                                                               c.i64(index * sizeof(ptc_function)));
    return c.record({address, list(code.variants, "variants", [&](const VariantCode &v) { return variant(v); }),
                     c.i32(code.variants.size()), c.i32(0), c.orNull(code.inputShapes), code.outputShapes},
                    sizeof(ptc_rt_function));
  }

  Constant *external(StringRef name, Type *type) {
    auto *variable = cast<GlobalVariable>(c.module.getOrInsertGlobal(name, type));
    variable->setVisibility(GlobalValue::HiddenVisibility);
    variable->setConstant(true);
    return variable;
  }

  Constant *recipe(const Recipe &recipe) {
    auto numbers = [&](const std::vector<int64_t> &values, const Twine &name) {
      return list(values, name, [&](int64_t value) { return c.i64(value); });
    };
    Constant *transform = list(recipe.transform, "transform",
                               [&](double value) { return ConstantFP::get(Type::getDoubleTy(c.context), value); });
    return c.record({c.i32(recipe.extents.size()), c.i32(recipe.elementBytes), c.i64(recipe.offset),
                     numbers(recipe.extents, "extents"), numbers(recipe.strides, "strides"), c.i32(recipe.panel),
                     c.i32(recipe.lane), c.i64(recipe.limit), transform,
                     c.i32(recipe.transform.size() / recipe.transformColumns - recipe.depthRows),
                     c.i32(recipe.transformColumns), c.i32(recipe.transformDims), c.i32(recipe.depthRows)},
                    sizeof(ptc_rt_recipe));
  }

  Constant *weights() {
    bool present = inputs.weightBytes > 0;
    bool embedded = present && inputs.weightsPlace == WeightsPlace::Embedded;
    Type *byte = Type::getInt8Ty(c.context);
    auto stored = [&](const Weight &weight) {
      Constant *forms = list(weight.forms, "stored_forms", [&](const StoredForm &form) {
        Constant *how = form.recipe ? c.global(recipe(*form.recipe), "recipe") : c.null();
        int64_t narrows = !form.narrow                       ? PTC_RT_NARROWS_NOT
                          : form.narrow->name() == "float16" ? PTC_RT_NARROWS_TO_F16
                                                             : PTC_RT_NARROWS_TO_BF16;
        return c.record({c.i64(form.offset), c.i64(form.bytes), how, c.i32(narrows), c.i32(0)},
                        sizeof(ptc_rt_stored_form));
      });
      return c.record({forms, c.i32(weight.forms.size()), c.i32(0)}, sizeof(ptc_rt_weight));
    };
    return c.record({c.i32(int64_t(inputs.weightsPlace)), c.i32(0), c.i64(inputs.weightBytes),
                     embedded ? external("ptc_weights", byte) : c.null(),
                     inputs.weightsFile.empty() ? c.null() : c.string(inputs.weightsFile), c.i64(inputs.weightsBegin),
                     c.i64(inputs.weightsEnd), external("ptc_weights_digest", byte),
                     list(inputs.weights, "stored_weights", stored)},
                    sizeof(ptc_rt_weights));
  }

  Constant *threading() {
    StringRef name = inputs.threading == Threading::Pool     ? "ptc_rt_threading_pool"
                     : inputs.threading == Threading::OpenMP ? "ptc_rt_threading_openmp"
                                                             : "ptc_rt_threading_none";
    return external(name, Type::getInt8Ty(c.context));
  }

  Constant *required() {
    if (inputs.threading != Threading::OpenMP)
      return c.null();
    SmallVector<Constant *> functions;
    for (StringRef name : {"GOMP_parallel", "omp_get_thread_num", "omp_in_parallel"})
      functions.push_back(entry(name));
    return c.array(functions, "required");
  }

  /// The public table, exported under its two names. `levels`: those of all targets.
  GlobalVariable *emitTable(Constant *functions, ArrayRef<std::string> levels) {
    Constant *value = publicTable(functions, levels);
    auto *table = new GlobalVariable(c.module, value->getType(), true, GlobalValue::ExternalLinkage, value,
                                     interface.name + "_model_v1");
    GlobalAlias::create(value->getType(), 0, GlobalValue::ExternalLinkage, "ptc_model_v1", table, &c.module);
    return table;
  }

  Constant *publicFunctions() {
    return list(interface.functions, "functions", [&](const Function &f) { return function(f); });
  }

  GlobalVariable *emit(Constant *table, Constant *publicFunctions, ArrayRef<FunctionCode> functions,
                       ArrayRef<KernelEntry> kernels, Constant *next) {
    SmallVector<Constant *> codes;
    for (auto [index, code] : llvm::enumerate(functions))
      codes.push_back(functionCode(code, publicFunctions, index));
    Constant *value = c.record(
        {c.i32(PTC_RT_VERSION), c.i32(functions.size()), c.i32(inputs.levels.size()), c.i32(kernels.size()), table,
         c.array(codes, "function_code"), levels(kernels),
         list(kernels, "kernel_names", [&](const KernelEntry &kernel) { return c.string(kernel.launchedKernel()); }),
         threading(), required(), weights(), deviceCode(), emitCustomCode(c), c.orNull(next), hostLevels(kernels),
         c.i32(inputs.hostLevels.size()), c.i32(0)},
        sizeof(ptc_rt_descriptor));
    return c.global(value, "descriptor");
  }

private:
  Constants &c;
  const HostInputs &inputs;
  const ModelInterface &interface;
};

} // namespace

void emitDescriptors(std::deque<TargetCode> &targets, const ModelInterface &interface) {
  Module &module = targets.front().constants.module;
  // Declared first: NAME_create refers to the first descriptor, which refers to the table, which refers to NAME_create.
  auto *declared = new GlobalVariable(module, Type::getInt8Ty(module.getContext()), true, GlobalValue::ExternalLinkage,
                                      nullptr, "declared_descriptor");
  emitEntryPoints(targets.front().constants, interface, declared);
  std::vector<std::string> levels;
  for (const TargetCode &target : targets)
    for (const Level &level : target.inputs.levels)
      levels.push_back(level.name);
  DescriptorEmitter first(targets.front().constants, targets.front().inputs, interface);
  Constant *functions = first.publicFunctions();
  Constant *table = first.emitTable(functions, levels);
  GlobalVariable *descriptor = nullptr; // each refers to the one behind it
  for (TargetCode &target : llvm::reverse(targets))
    descriptor = DescriptorEmitter(target.constants, target.inputs, interface)
                     .emit(table, functions, target.functions, target.kernels.entries, descriptor);
  declared->replaceAllUsesWith(descriptor);
  declared->eraseFromParent();
}

} // namespace ptc::host
