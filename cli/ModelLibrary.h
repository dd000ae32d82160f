// A compiled model, driven through the generic entry that every library exports (runtime/include/ptc/abi.h).
#ifndef PTC_CLI_MODELLIBRARY_H
#define PTC_CLI_MODELLIBRARY_H

#include "cli/Session.h"
#include "cli/tensor/TensorFiles.h"
#include "llvm/ADT/StringMap.h"
#include <functional>
#include <memory>
#include <optional>

namespace llvm::json {
class Value;
} // namespace llvm::json

namespace ptc {

/// How a model is to be created.
struct InstanceOptions {
  unsigned threads = 0; // 0: all
  std::string cpuLevel; // empty: the best
  std::string device;   // "cpu", "cuda", "cuda:1"; empty: the best
  std::string weightsPath;
  std::string customOpFolder;
  ptc_profile *profile = nullptr;           // where runs leave what took how long
  std::function<void(const ptc_tap &)> tap; // what is shown of each run
};

/// A loaded library. Stays loaded as long as one of its copies or instances lives: one whose weights are inside takes
/// as much memory as they.
class ModelLibrary {
public:
  /// Checks the file before any of its code runs; one that was changed since ptc wrote it is a warning. `name`: what
  /// the user has called it, if that is not its path.
  static llvm::Expected<ModelLibrary> open(Session &session, llvm::StringRef path, llvm::StringRef name = "");
  const ptc_model_table &table() const { return *entry; }
  llvm::StringRef path() const { return file; }
  llvm::StringRef name() const { return shown; }
  /// The function of this name, the first if it is empty.
  llvm::Expected<unsigned> findFunction(llvm::StringRef name) const;

private:
  friend class ModelInstance;
  ModelLibrary(const Session &session, std::shared_ptr<void> loaded, std::string file, std::string shown,
               const ptc_model_table *entry)
      : session(&session), loaded(std::move(loaded)), file(std::move(file)), shown(std::move(shown)), entry(entry) {}
  const Session *session;
  std::shared_ptr<void> loaded; // of the loader
  std::string file, shown;
  const ptc_model_table *entry;
};

/// A model with one context.
class ModelInstance {
public:
  static llvm::Expected<ModelInstance> create(const ModelLibrary &library, const InstanceOptions &options);
  ModelInstance(ModelInstance &&other);
  ModelInstance &operator=(ModelInstance &&) = delete;
  ~ModelInstance();

  const ptc_model_table &table() const { return *entry; }
  const ptc_model *getModel() const { return model; }
  /// The number of the device that it runs on; nothing where that is the processor.
  std::optional<int> getDevice() const;

  /// Zeroed outputs of the shapes that these inputs give. The output of an alias pair has no bytes: see run; nor has
  /// one whose shape only a run knows.
  llvm::Expected<std::vector<Tensor>> makeOutputs(unsigned function, std::vector<Tensor> &inputs);
  llvm::Error warmUp(unsigned function, std::vector<Tensor> &inputs);
  /// Outputs that share an input's buffer are updated there, and copied to `outputs` afterwards.
  llvm::Error run(unsigned function, std::vector<Tensor> &inputs, std::vector<Tensor> &outputs);
  /// A run on tensors of the caller, and on a stream of the caller's device: as ptc_model_table::run.
  llvm::Error run(unsigned function, const ptc_tensor *inputs, ptc_tensor *outputs, void *stream);

private:
  explicit ModelInstance(const ModelLibrary &library) : loaded(library.loaded), entry(library.entry) {}
  /// `inputs`: of which sizes it may be.
  llvm::Error failed(ptc_status status, llvm::StringRef what, llvm::ArrayRef<Tensor> inputs = {}) const;
  std::shared_ptr<void> loaded; // of the library
  const ptc_model_table *entry;
  int ordinal = 0; // of the device, if there is one
  ptc_model *model = nullptr;
  ptc_ctx *context = nullptr;
  std::unique_ptr<std::function<void(const ptc_tap &)>> tap; // at an address that stays
};

/// The outputs of one run of the library's main function, on an instance of its own.
llvm::Expected<std::vector<Tensor>> runOnce(const ModelLibrary &library, const InstanceOptions &options,
                                            std::vector<Tensor> inputs);

/// The manifest beside the library, if it was written with it.
llvm::Expected<llvm::json::Value> readManifest(llvm::StringRef library);
/// Whether a file is a library rather than a model: by its suffix or, whatever its name, by its first bytes.
bool isLibraryFile(llvm::StringRef path);
/// Of a library that was just written, which is not opened only where it is another kind of machine's: what it cannot
/// do here ("kernels are timed"), by which verb, and the flag that named that machine.
llvm::Error adviseMachine(llvm::Error error, llvm::StringRef what, llvm::StringRef verb, llvm::StringRef levelFlag);
/// That `tensor`, which is called `what`, could not be allocated.
llvm::Error noMemoryFor(const llvm::Twine &what, const Tensor &tensor);
/// Exit code for a status of the ABI.
int exitCodeOf(ptc_status status);
/// Whether only a run knows the output's shape.
bool isFound(const ptc_value &value);
/// "x float32 [batch, 3, 224, 224]"
std::string formatValue(const ptc_value &value);

} // namespace ptc

#endif // PTC_CLI_MODELLIBRARY_H
