//===- ProgramParts.h - a program as host code, part by part ----*- C++ -*-===//
//
// What ProgramEmitter.cpp (programs, arguments, addresses), ProgramLaunches.cpp (launches, calls, taps) and
// ProgramRegions.cpp (branches, loops, sizes that a program learns) share.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_CODEGEN_HOST_PROGRAMPARTS_H
#define PTC_CODEGEN_HOST_PROGRAMPARTS_H

#include "codegen/host/HostBuilder.h"
#include "codegen/host/SizeFunctions.h"
#include "ir/loop/Places.h"
#include "runtime/include/ptc/abi.h"
#include <map>

namespace ptc::host {

struct ProgramEmitter;

/// The launch and those that are joined to it.
llvm::SmallVector<loop::LaunchOp> getJoined(loop::LaunchOp launch);

/// One function of the program: launches and branches in a row.
class PartEmitter {
public:
  PartEmitter(ProgramEmitter &whole, const llvm::Twine &name);
  llvm::Error emit(llvm::ArrayRef<mlir::Operation *> ops);
  llvm::Function *function() { return code.function; }

private:
  using Value = llvm::Value;

  void reserveArrays(llvm::ArrayRef<mlir::Operation *> ops);
  llvm::Error emitProgram(loop::ProgramOp program);
  void convertArgument(mlir::BlockArgument argument);
  void copyPacked(mlir::BlockArgument argument, llvm::StringRef function);
  Value *argumentPointer(mlir::BlockArgument argument, bool onHost);
  llvm::Error emitBlock(mlir::Block &block);
  llvm::Error emitOps(llvm::ArrayRef<mlir::Operation *> ops);
  struct LaunchCode {
    Value *buffers, *symbols, *iterations, *grain, *scratch;
    unsigned site;
  };
  llvm::Expected<LaunchCode> prepareLaunch(loop::LaunchOp launch, Value *bufferArray, Value *symbolArray);
  llvm::Error emitLaunches(loop::LaunchOp launch);
  llvm::Error emitLaunch(loop::LaunchOp launch);
  llvm::Error emitJoinedLaunches(llvm::ArrayRef<loop::LaunchOp> launches);
  llvm::Error emitCall(loop::CallOp call);
  llvm::Error emitTransfer(loop::TransferOp transfer);
  llvm::Error emitTap(loop::TapOp tap);
  unsigned siteBefore(loop::TapOp tap);
  llvm::Error emitIf(loop::IfOp branch);
  llvm::Error emitJoined(loop::IfOp branch, bool isThen);
  llvm::Error emitBind(loop::BindOp bind);
  llvm::Error emitGuard(loop::GuardOp guard);
  llvm::Error growSlot(mlir::Value grown, Expr bytes, bool keeps);
  llvm::Error announce(mlir::BlockArgument output);
  llvm::Error emitRepeat(loop::RepeatOp repeat);
  llvm::Error setCarried(loop::RepeatOp repeat, llvm::function_ref<Expr(prim::CarriedAttr)> value);
  llvm::Expected<Value *> hasNextRound(loop::RepeatOp repeat, Value *round);
  llvm::Error callPart(llvm::ArrayRef<mlir::Operation *> ops);
  llvm::Error checkBound(Expr expr, llvm::StringRef kernel);
  void leaveOnFault(Value *result);
  llvm::Expected<Value *> address(mlir::Value buffer, bool onHost = false);
  llvm::Expected<Value *> readScalar(mlir::Value buffer, llvm::Type *type);
  llvm::FunctionCallee runtime(llvm::StringRef name, llvm::Type *result, llvm::ArrayRef<llvm::Type *> parameters,
                               bool onHost = false);
  Value *arena(bool onHost);
  Value *callMember(unsigned index);
  llvm::StructType *getPartType();
  llvm::Expected<Value *> constantAddress(loop::ConstantOp constant, bool onHost);
  Value *offset(Value *base, Value *bytes) { return builder.CreateGEP(builder.getInt8Ty(), base, bytes); }

  ProgramEmitter &whole;
  Constants &constants;
  SymbolFunction code;
  llvm::IRBuilder<> &builder;
  llvm::BasicBlock *failed = nullptr;
  llvm::PHINode *fault = nullptr;
  Value *bufferArray = nullptr, *symbolArray = nullptr, *partArray = nullptr, *shapeArray = nullptr,
        *scalarSlot = nullptr;
};

inline bool isPacked(DType type) { return type.bits < 8; }
inline bool isHandle(DType type) { return type.code == PTC_STRING || type.code == PTC_SEQUENCE; }

/// What all parts of a program share.
struct ProgramEmitter {
  Constants &constants;
  const HostInputs &inputs;
  const Function &interface;
  const KernelTable &kernels;
  std::string name;
  std::vector<LaunchSite> sites;
  std::map<mlir::Operation *, unsigned> siteOf;
  std::vector<TapSite> taps;
  llvm::SmallVector<Expr> scratch; // of each launch
  unsigned parts = 0;
  loop::ProgramOp program;
  loop::BoundSymbols bound;  // their places are behind the interface's symbols, in this order
  std::vector<Guard> guards; // that the program checks itself
  unsigned blocks = 0;       // slots of memory that grows
  /// Arguments that have another form at the ABI, packed ones and inputs of handles: where in the arena, behind what
  /// was planned, their inner form lies. (Handles of an output lie in the memory of its views.)
  std::map<unsigned, Expr> inner;
  Expr arenaBytes;
  std::optional<loop::Places> places; // of a program of a device

  /// Of a program of a device: whether the buffer lies in the host's memory.
  bool isOnHost(mlir::Value buffer) const { return places && places->isOnHost(buffer); }

  llvm::Expected<llvm::Function *> emitPart(llvm::ArrayRef<mlir::Operation *> ops) {
    PartEmitter part(*this, parts == 0 ? llvm::Twine(name) : name + "_" + llvm::Twine(parts));
    ++parts;
    if (llvm::Error error = part.emit(ops))
      return error;
    return part.function();
  }

  const Value &valueOf(unsigned argument) const {
    size_t inputs = interface.inputs.size();
    return argument < inputs ? interface.inputs[argument] : interface.outputs[argument - inputs];
  }

  /// Outputs whose sizes callers are told by the run, and which this program knows beforehand.
  llvm::SmallVector<mlir::BlockArgument> knownOutputs() {
    llvm::SmallVector<mlir::BlockArgument> known;
    for (auto [output, value] : llvm::zip_equal(program.getOutputArgs(), interface.outputs))
      if (value.isFound() && !llvm::any_of(output.getUsers(), llvm::IsaPred<loop::OutputOp>))
        known.push_back(output);
    return known;
  }

  void placeInnerForms() {
    mlir::MLIRContext *context = program.getContext();
    std::optional<ExprAttr> planned = program.getArena();
    arenaBytes = planned ? Expr(*planned) : Expr::constant(context, 0);
    for (mlir::BlockArgument argument : program.getBlock().getArguments())
      if (DType dtype = valueOf(argument.getArgNumber()).dtype;
          isPacked(dtype) || (isHandle(dtype) && argument.getArgNumber() < interface.inputs.size())) {
        auto type = mlir::cast<loop::BufferType>(argument.getType());
        Expr count = bound.getMost(type.getElementCount());
        assert(count && "a packed value that nothing bounds is refused at import");
        inner[argument.getArgNumber()] = arenaBytes;
        arenaBytes = arenaBytes + (count * type.getElementBytes()).ceilDiv(64) * 64;
      }
  }
};

} // namespace ptc::host

#endif // PTC_CODEGEN_HOST_PROGRAMPARTS_H
