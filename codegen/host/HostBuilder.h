// Parts of the host module's construction that its files share: constants and the types of the runtime.
#ifndef PTC_CODEGEN_HOST_HOSTBUILDER_H
#define PTC_CODEGEN_HOST_HOSTBUILDER_H

#include "codegen/host/HostModule.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include <deque>
#include <map>

namespace ptc::host {

/// Nodes of the user's own operators that programs call, and these operators.
struct CustomCode {
  std::vector<llvm::Constant *> nodes, ops;
  llvm::DenseMap<std::pair<mlir::Attribute, mlir::Attribute>, unsigned> places; // by what they are, and their names
  std::map<std::pair<std::string, std::string>, unsigned> opPlaces;
};

/// Constants in the module. Structs are built member by member and laid out as C lays them out; `size` is the C
/// struct's, as a check of both sides.
class Constants {
public:
  explicit Constants(llvm::Module &module);

  llvm::Constant *i8(uint8_t value) const { return llvm::ConstantInt::get(llvm::Type::getInt8Ty(context), value); }
  llvm::Constant *i16(uint16_t value) const { return llvm::ConstantInt::get(llvm::Type::getInt16Ty(context), value); }
  llvm::Constant *i32(int64_t value) const {
    return llvm::ConstantInt::getSigned(llvm::Type::getInt32Ty(context), int32_t(value));
  }
  llvm::Constant *i64(int64_t value) const {
    return llvm::ConstantInt::getSigned(llvm::Type::getInt64Ty(context), value);
  }
  llvm::Constant *null() const { return llvm::ConstantPointerNull::get(pointer); }

  /// A zero-terminated string, once per text.
  llvm::Constant *string(llvm::StringRef text);
  llvm::Constant *record(llvm::ArrayRef<llvm::Constant *> members, size_t size);
  /// A constant array as a global; null when it is empty.
  llvm::Constant *array(llvm::ArrayRef<llvm::Constant *> elements, const llvm::Twine &name);
  llvm::GlobalVariable *global(llvm::Constant *value, const llvm::Twine &name);
  llvm::Constant *orNull(llvm::Constant *constant) const { return constant ? constant : null(); }

  /// Bytes in the library, aligned for kernels: once per contents.
  llvm::Constant *bytes(llvm::StringRef contents);
  /// The offset of the bytes among the constants that are copied to a device: once per contents.
  uint64_t placeOnDevice(llvm::StringRef bytes);

  llvm::Module &module;
  llvm::LLVMContext &context;
  llvm::PointerType *pointer;
  std::string deviceBytes; // what placeOnDevice has placed
  CustomCode custom;

private:
  llvm::StringMap<uint64_t> deviceOffsets;
  llvm::StringMap<llvm::Constant *> strings, contents;
};

/// A hidden function of the runtime, declared at its first use.
llvm::FunctionCallee runtimeFunction(llvm::Module &module, llvm::StringRef name, llvm::Type *result,
                                     llvm::ArrayRef<llvm::Type *> parameters);

struct LaunchSite {
  unsigned kernel;
  std::string nodes;
  unsigned custom = 0; // of a call: the node of the user's own operator
  bool copies = false; // as in ptc_rt_launch_site
};

/// A value shown to an observer; `launch` indexes the launch sites, or is UINT32_MAX.
struct TapSite {
  std::string node, op, output;
  DType dtype;
  unsigned rank;
  unsigned number;
  unsigned launch;
};

/// A symbol that the program binds, and the nodes whose size it is.
struct BoundSite {
  std::string symbol, nodes;
};

/// A program's functions, as the descriptor names them. `guard` and `scratchBytes` may be null.
struct VariantCode {
  std::string name;
  std::vector<int64_t> pins; // as in ptc_rt_variant; empty: none
  llvm::Function *program, *arenaBytes, *scratchBytes, *guard;
  std::vector<Guard> guards;
  std::vector<LaunchSite> launches;
  std::vector<TapSite> taps;
  std::vector<BoundSite> bound;
  unsigned innerGuards = 0, blocks = 0;
  std::vector<uint8_t> places; // as in ptc_rt_variant; empty: none
};

struct FunctionCode {
  std::vector<VariantCode> variants;
  llvm::Function *inputShapes = nullptr, *outputShapes = nullptr; // inputShapes may be null
};

/// What becomes of one target's inputs. Constants are its own, as some of them lie on its device.
struct TargetCode {
  TargetCode(llvm::Module &module, const HostInputs &inputs)
      : inputs(inputs), constants(module), kernels(tabulateKernels(inputs)) {}
  const HostInputs &inputs;
  Constants constants;
  KernelTable kernels;
  std::vector<FunctionCode> functions;
};

/// ProgramEmitter.cpp: the functions of one loop.program.
llvm::Expected<VariantCode> emitProgram(Constants &constants, const HostInputs &inputs, const Function &function,
                                        loop::ProgramOp program, const KernelTable &kernels, const llvm::Twine &name);

/// CustomNodes.cpp: the index of the node that a call is about; all of them, or null.
unsigned addCustomNode(Constants &constants, loop::CallOp call);
llvm::Constant *emitCustomCode(Constants &constants);

/// SizeFunctions.cpp: `void NAME(symbols, shapes)` that writes the extents of all values, or the most that they can be.
llvm::Function *emitShapes(Constants &constants, const Function &function, mlir::ArrayRef<mlir::BlockArgument> values,
                           const loop::BoundSymbols &bound, const llvm::Twine &name);

/// Descriptor.cpp: the typed functions, the public table, and a descriptor for each target.
void emitDescriptors(std::deque<TargetCode> &targets, const ModelInterface &interface);

/// EntryPoints.cpp: NAME_create, NAME_run, ...; all of them call the runtime.
void emitEntryPoints(Constants &constants, const ModelInterface &interface, llvm::GlobalVariable *descriptor);

} // namespace ptc::host

#endif
