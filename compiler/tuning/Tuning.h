//===- Tuning.h - what was found by measuring a model's kernels -*- C++ -*-===//
//
// `ptc tune` measures alternatives to what the planner of a target chooses, and writes those that were faster into a
// tuning file: canonical JSON, a kernel a line. A compile that reads it makes the same bytes on every machine; whether
// they are the fastest there is another matter.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_COMPILER_TUNING_TUNING_H
#define PTC_COMPILER_TUNING_TUNING_H

#include "ir/loop/Tuned.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <map>

namespace ptc {

class Compilation;

/// Of the file. Another number is another meaning of its lines.
constexpr int64_t tuningFormat = 1;

/// Numbers for a kernel by their names (ir/loop/Tuned.h); none: the planner's own choice is the fastest known.
using TunedNumbers = std::map<std::string, int64_t>;

struct TunedKernel {
  std::string kernel; // its name, which follows from its content
  TunedNumbers numbers;
  double plannedSeconds = 0, seconds = 0; // of all its launches in a run: as planned, and with the numbers
};

struct Tuning {
  std::string compiler, model, level, processor; // model: the file's name
  unsigned threads = 1;                          // that it was measured with
  std::vector<TunedKernel> kernels;              // all of the model's
};

std::string writeTuning(const Tuning &tuning);
/// An ExitError that tells what to do about it if the file is not there or is no tuning file.
llvm::Expected<Tuning> readTuning(llvm::StringRef path);

/// Names of numbers in the tuning that are not among the known ones, sorted.
std::vector<std::string> findUnknownNumbers(const Tuning &tuning, llvm::ArrayRef<llvm::StringLiteral> known);

/// Sets the numbers on kernels that are not planned yet. Kernels that the tuning does not know stay as they are; their
/// number is returned.
size_t applyTuning(const Tuning &tuning, llvm::ArrayRef<loop::KernelOp> kernels);

/// What is worth measuring: by a kernel's name, dictionaries of numbers, the most promising first. Kernels without
/// alternatives have an entry, too. Runs the compilation, which has one target, up to plan-memory.
llvm::Expected<llvm::StringMap<std::vector<TunedNumbers>>> listAlternatives(Compilation &compilation,
                                                                            llvm::StringRef level);

} // namespace ptc

#endif // PTC_COMPILER_TUNING_TUNING_H
