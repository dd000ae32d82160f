#include "ir/loop/Places.h"

using namespace mlir;

namespace ptc::loop {

Places::Places(ProgramOp program) : program(program) {
  SymbolTable kernels(program->getParentOfType<ModuleOp>());
  auto add = [&](llvm::DenseSet<Value> &values, ValueRange buffers) {
    for (Value buffer : buffers)
      values.insert(getRoot(buffer));
  };
  program.walk([&](Operation *op) {
    if (auto call = dyn_cast<CallOp>(op)) {
      usesHostValue = true;
      add(usedOnHost, call->getOperands());
    } else if (auto launch = dyn_cast<LaunchOp>(op)) {
      auto kernel = kernels.lookup<KernelOp>(launch.getKernel());
      bool onHost = kernel && kernel.getOnHost();
      usesHostValue |= onHost;
      add(onHost ? usedOnHost : usedOnDevice, launch.getBuffers());
    } else if (auto transfer = dyn_cast<TransferOp>(op)) {
      add(mirrored, transfer.getBuffer());
    }
  });
  for (BlockArgument argument : program.getBlock().getArguments())
    if (holdsHandles(argument)) {
      usesHostValue = true;
      usedOnHost.insert(getRoot(argument));
    }
}

Value getRoot(ProgramOp program, Value buffer) {
  buffer = skipViews(buffer);
  ArrayRef<int64_t> aliases = program.getAliases();
  for (size_t i = 0; i + 1 < aliases.size(); i += 2)
    if (buffer == program.getOutputArgs()[aliases[i + 1]])
      return program.getInputArgs()[aliases[i]];
  return buffer;
}

bool Places::isOnHost(Value buffer) const {
  Value root = getRoot(buffer);
  return usedOnHost.contains(root) && !usedOnDevice.contains(root);
}

bool Places::isMirrored(Value buffer) const { return !isOnHost(buffer) && mirrored.contains(getRoot(buffer)); }

bool holdsHandles(Value root) {
  auto argument = dyn_cast<BlockArgument>(root);
  if (!argument) {
    auto constant = root.getDefiningOp<ConstantOp>();
    return constant && isa<DenseStringElementsAttr>(constant.getValue());
  }
  auto program = dyn_cast<ProgramOp>(argument.getOwner()->getParentOp());
  if (!program) // a state of a recurrence
    return false;
  unsigned index = argument.getArgNumber(), inputs = unsigned(program.getInputs());
  ArrayAttr types = index < inputs ? program.getInputTypes() : program.getOutputTypes();
  return prim::isHandle(cast<TypeAttr>(types[index < inputs ? index : index - inputs]).getValue());
}

} // namespace ptc::loop
