// Kernels of one template node, from loop text to a function that can be called: planned, generated for a level of this
// machine's processor and compiled in memory.
#ifndef PTC_TESTS_UNIT_TEMPLATERUNNER_H
#define PTC_TESTS_UNIT_TEMPLATERUNNER_H

#include "codegen/cpu/CpuLevels.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ptc::test {

/// Of `loop.tuned`; none: as planned.
using Numbers = std::map<std::string, int64_t>;

class CompiledKernel {
public:
  /// Loop text; the kernel of this name (empty: the first). Null after an error, which goes to stderr.
  static std::unique_ptr<CompiledKernel> compile(const std::string &text, const cpu::CpuLevel &level,
                                                 const std::string &name = "", const Numbers &numbers = {});
  /// The first kernel of the text, as above. The last ones are kept for calls with the same arguments: a text says
  /// nothing of the numbers that a test draws, and little of the values of symbols.
  static std::shared_ptr<CompiledKernel> share(const std::string &text, const cpu::CpuLevel &level,
                                               const Numbers &numbers = {});
  ~CompiledKernel();

  /// Runs all iterations in `pieces` calls, last one first; each piece gets scratch filled with NaN patterns of its
  /// own.
  void run(const std::vector<void *> &buffers, const std::vector<int64_t> &symbols, int64_t pieces = 1);
  int64_t iterations(const std::vector<int64_t> &symbols) const;
  int64_t scratchBytes(const std::vector<int64_t> &symbols) const;
  /// Bytes of the buffers that it takes.
  std::vector<int64_t> bufferBytes(const std::vector<int64_t> &symbols) const;

  using Function = int32_t(void *const *buffers, const int64_t *symbols, int64_t begin, int64_t end, void *scratch);
  Function *function = nullptr;
  double milliseconds = 0; // to generate and compile
  std::string assembly;
  std::string config;

private:
  struct State;
  std::unique_ptr<State> state;
};

/// What may be measured in place of the first kernel's plan.
std::vector<Numbers> alternativesOf(const std::string &text, const cpu::CpuLevel &level);
/// Names of the kernels in loop text.
std::vector<std::string> kernelNames(const std::string &text);
/// Levels whose code this processor runs.
std::vector<const cpu::CpuLevel *> runnableLevels();
/// The same, and where x86-64-v3 is the last, the plan of x86-64-v4 in its instructions. Not for kernels that call
/// intrinsics of 512 bits.
std::vector<const cpu::CpuLevel *> plannedLevels();
/// The first and the last of them.
std::vector<const cpu::CpuLevel *> lowestAndHighest();

} // namespace ptc::test

#endif
