#include "cli/ModelLibrary.h"
#include "compiler/Capabilities.h"
#include "compiler/artifact/LibraryCheck.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/BinaryFormat/Magic.h"
#include "llvm/Object/BuildID.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <dlfcn.h>

using namespace llvm;

namespace ptc {

bool isLibraryFile(StringRef path) {
  file_magic magic;
  return sys::path::extension(path) == ".so" ||
         (!identify_magic(path, magic) && magic >= file_magic::elf && magic <= file_magic::elf_core);
}

int exitCodeOf(ptc_status status) {
  switch (status) {
  case PTC_OK:
    return exitOk;
  case PTC_INVALID_ARGUMENT:
  case PTC_TYPE_MISMATCH:
  case PTC_SHAPE_MISMATCH:
  case PTC_GUARD_FAILED:
    return exitUsage;
  case PTC_CPU_UNSUPPORTED:
  case PTC_DEVICE_ERROR:
  case PTC_UNSUPPORTED:
    return exitTarget;
  case PTC_WEIGHTS_UNAVAILABLE:
    return exitFile;
  case PTC_CUSTOM_OP_FAILED:
    return exitRunFailure;
  case PTC_OUT_OF_MEMORY:
    return exitLimit;
  case PTC_INTERNAL_ERROR:
    return exitInternal;
  case PTC_NO_DEVICE:
    return exitNoDevice;
  }
  return exitRunFailure;
}

std::string formatValue(const ptc_value &value) {
  if (value.element)
    return (Twine(value.name) + (value.role == PTC_OPTIONAL ? " optional" : " sequence of") +
            formatValue(*value.element))
        .str();
  if (value.rank < 0)
    return (Twine(value.name) + " " + formatType(value.dtype) + " of any shape").str();
  std::string text = (Twine(value.name) + " " + formatType(value.dtype) + " [").str();
  for (int32_t i = 0; i < value.rank; ++i)
    text += (i ? ", " : "") + std::string(value.dims[i].text);
  return text + "]";
}

Error noMemoryFor(const Twine &what, const Tensor &tensor) {
  double bytes = tensor.dtype.bits / 8.0;
  for (int64_t extent : tensor.shape)
    bytes *= extent;
  return exitError(exitLimit,
                   what + ", " + formatType(tensor.dtype) + " " + formatShape(tensor.shape) + ", needs " +
                       formatv("{0:f0}", bytes).str() + " bytes: out of memory",
                   "smaller dims need less");
}

/// What to do instead of loading the file as a library.
static std::string adviceFor(StringRef path) {
  StringRef suffix = sys::path::extension(path);
  if (suffix == ".ptx")
    return "it holds kernels for a GPU as text, which ptc does not run; --target=cpu makes a library";
  if (suffix == ".onnx")
    return ("`ptc compile " + path + "` makes a library of a model").str();
  return "a library that `ptc compile` has written is needed";
}

/// What is known about the file without loading it.
static Error checkFile(Session &session, StringRef path) {
  Expected<artifact::LibraryState> state = artifact::checkLibrary(path);
  if (!state)
    return exitError(exitFile, "cannot load '" + path + "': " + toString(state.takeError()), adviceFor(path));
  if (*state == artifact::LibraryState::OtherProcessor)
    return exitError(exitFile, "cannot load '" + path + "': it is a library for another processor",
                     "`ptc inspect` of its manifest, the .json beside it, tells what it holds; `ptc compile "
                     "--cpu=native` makes one for this machine");
  if (*state != artifact::LibraryState::Changed)
    return Error::success();
  DiagnosticRecord changed{.severity = DiagnosticRecord::Severity::Warning, .subject = path.str()};
  changed.message = "the library is not as ptc wrote it: its bytes do not match its build id";
  changed.helps.push_back("tools like strip change libraries; if none did, compile the model again");
  session.diagnostics.report(std::move(changed));
  return Error::success();
}

Expected<json::Value> readManifest(StringRef library) {
  SmallString<128> path(library);
  sys::path::replace_extension(path, ".json");
  if (!sys::fs::exists(path))
    return exitError(exitFile, "the manifest '" + path + "' is missing");
  Expected<std::string> text = readFile(path);
  if (!text)
    return text.takeError();
  Expected<json::Value> manifest = json::parse(*text);
  if (!manifest)
    return exitError(exitUsage, "'" + path + "' is not JSON: " + toString(manifest.takeError()));
  auto file = object::ObjectFile::createObjectFile(library);
  if (!file)
    return file.takeError();
  std::string id = toHex(object::getBuildID(file->getBinary()), /*LowerCase=*/true);
  const json::Object *root = manifest->getAsObject();
  if (!root || !root->getArray("kernels") || root->getString("build_id") != StringRef(id))
    return exitError(exitUsage, "'" + path + "' was not written with '" + library + "'");
  return manifest;
}

/// A library that was compiled without weights runs, and computes nothing of use.
static void warnIfWeightless(Session &session, StringRef path) {
  Expected<json::Value> manifest = readManifest(path);
  if (!manifest)
    return consumeError(manifest.takeError());
  const json::Object *root = manifest->getAsObject(), *weights = root ? root->getObject("weights") : nullptr;
  if (!weights || weights->getString("place") != "absent" || !weights->getInteger("bytes").value_or(0))
    return;
  DiagnosticRecord absent{.severity = DiagnosticRecord::Severity::Warning, .subject = path.str()};
  absent.message = "the library has no weights (--weights=none): all of them are zero";
  absent.helps.push_back("a program sets them with set_weight; for tools, compile with --weights=embed or file");
  session.diagnostics.report(std::move(absent));
}

Expected<ModelLibrary> ModelLibrary::open(Session &session, StringRef path, StringRef name) {
  // A name without a slash would be looked for in the system's folders.
  std::string file = path.contains('/') ? path.str() : "./" + path.str();
  if (!sys::fs::exists(file))
    return exitError(exitFile, "cannot read '" + path + "': no such file", "`ptc compile MODEL.onnx` writes a library");
  if (Error error = checkFile(session, path))
    return std::move(error);
  session.crash.suspect(path);
  std::shared_ptr<void> loaded(::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL), [](void *opened) {
    if (opened)
      ::dlclose(opened);
  });
  if (!loaded)
    return exitError(exitFile, "cannot load '" + path + "': " + ::dlerror());
  auto *table = static_cast<const ptc_model_table *>(::dlsym(loaded.get(), "ptc_model_v1"));
  if (!table)
    return exitError(exitUsage, "'" + path + "' is not a library made by ptc: it has no ptc_model_v1");
  if (table->abi_version != PTC_ABI_VERSION)
    return exitError(exitUsage, "'" + path + "' has version " + Twine(table->abi_version) +
                                    " of the model interface; this ptc drives version " + Twine(PTC_ABI_VERSION));
  if (table->struct_size < offsetof(ptc_model_table, run_call))
    return exitError(exitUsage, "'" + path + "' is of an older ptc, whose model interface lacks what this one drives",
                     "compile the model again");
  warnIfWeightless(session, path);
  return ModelLibrary(session, std::move(loaded), path.str(), (name.empty() ? path : name).str(), table);
}

Error adviseMachine(Error error, StringRef what, StringRef verb, StringRef levelFlag) {
  return handleErrors(std::move(error), [&](const ExitError &) {
    return exitError(exitTarget, what + " on this machine, which does not run what " + levelFlag + " names",
                     verb + " there, or leave " + levelFlag + " out; `ptc targets` tells what this machine runs");
  });
}

Expected<unsigned> ModelLibrary::findFunction(StringRef name) const {
  if (name.empty())
    return 0;
  std::string names;
  for (unsigned i = 0; i < entry->function_count; ++i) {
    if (name == entry->functions[i].name)
      return i;
    names += (i ? ", " : "") + std::string(entry->functions[i].name);
  }
  return exitError(exitUsage, "the library has no function '" + name + "'; it has " + names);
}

ModelInstance::ModelInstance(ModelInstance &&other) : loaded(other.loaded), entry(other.entry), ordinal(other.ordinal) {
  std::swap(model, other.model);
  std::swap(context, other.context);
  std::swap(tap, other.tap);
}

ModelInstance::~ModelInstance() {
  entry->ctx_destroy(context);
  entry->destroy(model);
}

static bool isLevelOfGpu(StringRef name) {
  return any_of(supportedTargets(), [&](const SupportedTarget &target) {
    return target.levelFlag == "--gpu" && any_of(target.levels, [&](const auto &level) { return level.name == name; });
  });
}

static std::string remedyOf(ptc_status status, const ptc_model_table &table, const InstanceOptions &options) {
  if (status == PTC_WEIGHTS_UNAVAILABLE)
    return "`ptc compile --weights=file` has written it beside the library: keep the two together, or say where it is "
           "with --weights FILE";
  if (status == PTC_NO_DEVICE && options.device.find(':') != std::string::npos)
    return "`ptc doctor` shows which there are";
  if (status == PTC_NO_DEVICE)
    return "`ptc doctor` shows what is here; `ptc compile --target=cpu,cuda` makes a library that runs without a GPU, "
           "too";
  if (status == PTC_UNSUPPORTED)
    return "`ptc compile --target=cpu,cuda` makes a library for both";
  std::string levels;
  bool hasGpu = false;
  for (uint32_t i = 0; i < table.level_count; ++i) {
    levels += (i ? ", " : "") + std::string(table.levels[i]);
    hasGpu |= isLevelOfGpu(table.levels[i]);
  }
  if (status == PTC_CPU_UNSUPPORTED || (status == PTC_INVALID_ARGUMENT && !options.cpuLevel.empty()))
    return "the library has code for " + levels + "; `ptc compile " + (hasGpu ? "--gpu" : "--cpu") +
           "=LEVEL,...` makes one with other levels";
  return "";
}

/// "cuda:1": the second CUDA device; without a number the first.
static Error parseDevice(StringRef text, ptc_options &given) {
  if (text.empty())
    return Error::success();
  auto [type, ordinal] = text.split(':');
  given.device_type = StringSwitch<int32_t>(type).Case("cpu", PTC_CPU).Case("cuda", PTC_CUDA).Default(0);
  bool hasOrdinal = text.contains(':');
  if (given.device_type == 0 || (hasOrdinal && given.device_type == PTC_CPU) ||
      (hasOrdinal && (ordinal.getAsInteger(10, given.device) || given.device < 0)))
    return exitError(exitUsage, "--device " + text + ": no such device", "--device cpu, cuda or cuda:N");
  return Error::success();
}

Expected<ModelInstance> ModelInstance::create(const ModelLibrary &library, const InstanceOptions &options) {
  ModelInstance instance(library);
  std::string error(512, '\0');
  ptc_options given = {};
  given.struct_size = sizeof(given);
  given.error = error.data();
  given.error_size = error.size();
  given.threads = options.threads;
  if (Error error = parseDevice(options.device, given))
    return std::move(error);
  instance.ordinal = given.device;
  given.cpu_level = options.cpuLevel.empty() ? nullptr : options.cpuLevel.c_str();
  given.weights_path = options.weightsPath.empty() ? nullptr : options.weightsPath.c_str();
  given.custom_op_folder = options.customOpFolder.empty() ? nullptr : options.customOpFolder.c_str();
  given.profile = options.profile;
  given.log_state = const_cast<Session *>(library.session);
  given.log = [](void *state, int32_t, const char *message) { static_cast<Session *>(state)->log(message); };
  if (options.tap) {
    instance.tap = std::make_unique<std::function<void(const ptc_tap &)>>(options.tap);
    given.tap_state = instance.tap.get();
    given.tap = [](void *state, const ptc_tap *tap) {
      (*static_cast<std::function<void(const ptc_tap &)> *>(state))(*tap);
    };
  }
  if (ptc_status status = instance.entry->create(&given, &instance.model))
    return exitError(exitCodeOf(status), "'" + library.name() + "' cannot be used: " + error.c_str(),
                     remedyOf(status, library.table(), options));
  if (ptc_status status = instance.entry->ctx_create(instance.model, &instance.context))
    return exitError(exitCodeOf(status), "'" + library.name() + "': no context: out of memory");
  return instance;
}

std::optional<int> ModelInstance::getDevice() const {
  return isLevelOfGpu(entry->cpu_level(model)) ? std::optional(ordinal) : std::nullopt;
}

Error ModelInstance::failed(ptc_status status, StringRef what, ArrayRef<Tensor> inputs) const {
  StringRef sentence = entry->last_error(context);
  bool isOfFlags =
      status == PTC_GUARD_FAILED && llvm::any_of(inputs, [](const Tensor &input) { return input.isMadeUp; });
  std::string help = isOfFlags ? "--at NAME=N sets a size of made-up inputs" : "";
  return exitError(exitCodeOf(status),
                   what + " failed: " + (sentence.empty() ? "status " + std::to_string(status) : sentence.str()), help);
}

static std::vector<ptc_tensor> viewsOf(std::vector<Tensor> &tensors) {
  std::vector<ptc_tensor> views;
  for (Tensor &tensor : tensors)
    views.push_back(tensor.view());
  return views;
}

bool isFound(const ptc_value &value) {
  return std::any_of(value.dims, value.dims + value.rank, [](const ptc_dim &dim) { return dim.flags & PTC_DIM_FOUND; });
}

Expected<std::vector<Tensor>> ModelInstance::makeOutputs(unsigned function, std::vector<Tensor> &inputs) {
  const ptc_function &interface = entry->functions[function];
  std::vector<ptc_tensor> views = viewsOf(inputs);
  std::vector<Tensor> outputs(interface.output_count);
  std::vector<int64_t *> shapes;
  for (unsigned i = 0; i < interface.output_count; ++i) {
    outputs[i].dtype = interface.outputs[i].dtype;
    outputs[i].shape.resize(interface.outputs[i].rank);
    shapes.push_back(outputs[i].shape.data());
  }
  if (ptc_status status = entry->output_shapes(context, function, views.data(), shapes.data()))
    return failed(status, "run", inputs);
  for (unsigned i = 0; i < interface.output_count; ++i)
    if (!isFound(interface.outputs[i]) && !outputs[i].allocate())
      return noMemoryFor(Twine("output '") + interface.outputs[i].name + "'", outputs[i]);
  return outputs;
}

Error ModelInstance::warmUp(unsigned function, std::vector<Tensor> &inputs) {
  if (ptc_status status = entry->warmup(context, function, viewsOf(inputs).data()))
    return failed(status, "warm-up", inputs);
  return Error::success();
}

Error ModelInstance::run(unsigned function, const ptc_tensor *inputs, ptc_tensor *outputs, void *stream) {
  if (ptc_status status = entry->run(context, function, inputs, outputs, nullptr, stream))
    return failed(status, "run");
  return Error::success();
}

Error ModelInstance::run(unsigned function, std::vector<Tensor> &inputs, std::vector<Tensor> &outputs) {
  const ptc_function &interface = entry->functions[function];
  std::vector<ptc_tensor> in = viewsOf(inputs), out = viewsOf(outputs);
  for (unsigned i = 0; i < interface.output_count; ++i)
    if (interface.outputs[i].alias >= 0 || isFound(interface.outputs[i]))
      out[i].data = nullptr;
  if (ptc_status status = entry->run(context, function, in.data(), out.data(), nullptr, nullptr))
    return failed(status, "run", inputs);
  for (unsigned i = 0; i < interface.output_count; ++i)
    if (interface.outputs[i].alias >= 0) {
      outputs[i].bytes = inputs[interface.outputs[i].alias].bytes;
    } else if (isFound(interface.outputs[i])) { // its shape is there already
      auto *bytes = static_cast<const char *>(out[i].data);
      outputs[i].bytes.assign(bytes, bytes + byteSize(outputs[i].dtype, outputs[i].elementCount()));
      std::free(out[i].data); // the instance has no allocator of its own
    }
  for (Tensor &output : outputs)
    output.collect();
  return Error::success();
}

Expected<std::vector<Tensor>> runOnce(const ModelLibrary &library, const InstanceOptions &options,
                                      std::vector<Tensor> inputs) {
  Expected<ModelInstance> instance = ModelInstance::create(library, options);
  if (!instance)
    return instance.takeError();
  Expected<std::vector<Tensor>> outputs = instance->makeOutputs(0, inputs);
  if (!outputs)
    return outputs.takeError();
  if (Error error = instance->run(0, inputs, *outputs))
    return std::move(error);
  return outputs;
}

} // namespace ptc
