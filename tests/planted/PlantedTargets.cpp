// Plants in code generation: the CPU's target with one thing done worse.
#include "codegen/common/ElementaryCoefficients.h"
#include "codegen/cpu/CpuPlan.h"
#include "codegen/cpu/CpuTarget.h"
#include "tests/planted/Plants.h"
#include <cstring>

using namespace ptc;

namespace {

/// Does what the CPU's target does.
class WrappedTarget : public codegen::Target {
public:
  const TargetInfo &getInfo() const override { return cpu.getInfo(); }
  llvm::Expected<codegen::Level> describeLevel(llvm::StringRef name) const override { return cpu.describeLevel(name); }
  std::optional<llvm::StringRef> findHostLevel() const override { return cpu.findHostLevel(); }
  void loadDialects(mlir::MLIRContext &context) const override { cpu.loadDialects(context); }
  std::optional<std::string> whyUnsupported(loop::KernelOp kernel) const override { return cpu.whyUnsupported(kernel); }
  mlir::LogicalResult planKernel(loop::KernelOp kernel) const override { return cpu.planKernel(kernel); }
  llvm::Expected<codegen::KernelCode> generateKernel(loop::KernelOp kernel, llvm::StringRef level,
                                                     const codegen::CodeOptions &options) const override {
    return cpu.generateKernel(kernel, level, options);
  }
  std::string joinAssembly(llvm::ArrayRef<codegen::KernelCode> codes) const override { return cpu.joinAssembly(codes); }

protected:
  const codegen::Target &cpu = cpu::getCpuTarget();
};

class ScalarTarget : public WrappedTarget {
  /// Kernels of loops run their points one by one; templates (contractions, attention) stay as they are.
  mlir::LogicalResult planKernel(loop::KernelOp kernel) const override {
    if (mlir::failed(cpu.planKernel(kernel)))
      return mlir::failure();
    mlir::DictionaryAttr planned = kernel.getConfigAttr();
    if (!planned.contains("node_vectors"))
      return mlir::success();
    llvm::SmallVector<mlir::Operation *> nodes = cpu::getNodes(kernel);
    cpu::LoopConfig scalar;
    scalar.nodeVectors.assign(nodes.size(), -1);
    kernel.setConfigAttr(scalar.toAttribute(kernel.getContext()));
    kernel.setIterationsAttr(
        product(kernel.getContext(), llvm::ArrayRef(loop::getDomain(nodes.front())).take_front(kernel.getParallel())));
    return mlir::success();
  }
};

class WrongExpTarget : public WrappedTarget {
  llvm::Expected<codegen::KernelCode> generateKernel(loop::KernelOp kernel, llvm::StringRef level,
                                                     const codegen::CodeOptions &options) const override {
    llvm::Expected<codegen::KernelCode> code = cpu.generateKernel(kernel, level, options);
    if (code)
      spoil(code->object);
    return code;
  }

  /// exp(r) = 1 + r + r^2 / 2 + r^3 / 6 + ...; instead of the sixth about 1 % more, of -r (in sigmoid) of its negative,
  /// of r ln 2 (the powers of two of attention) of that times ln(2)^3.
  static void spoil(llvm::MutableArrayRef<char> object) {
    constexpr float sixth = codegen::coefficients::kExpF32[1], ofPower = codegen::coefficients::kExp2F32[2];
    for (float right : {sixth, -sixth, ofPower}) {
      float wrong = right * 1.01f;
      for (size_t at = 0; at + sizeof(float) <= object.size(); ++at)
        if (!std::memcmp(object.data() + at, &right, sizeof(float)))
          std::memcpy(object.data() + at, &wrong, sizeof(float));
    }
  }
};

} // namespace

const codegen::Target &test::getScalarTarget() {
  static const ScalarTarget target;
  return target;
}

const codegen::Target &test::getWrongExpTarget() {
  static const WrongExpTarget target;
  return target;
}
