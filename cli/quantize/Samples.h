// The inputs that a model is calibrated with: a folder of files.
#ifndef PTC_CLI_QUANTIZE_SAMPLES_H
#define PTC_CLI_QUANTIZE_SAMPLES_H

#include "cli/InputSpecs.h"

namespace ptc {

/// The inputs of one run, as makeInputs takes them.
struct Sample {
  std::string name; // for messages
  std::vector<std::string> specs;
};

/// What the help of --data says.
constexpr llvm::StringLiteral samplesHelp =
    "a folder of samples: each NAME.npz has the arrays of all inputs; each NAME.npy or NAME.pb is the only input; each "
    "folder inside has INPUT.npy, or ONNX's input_N.pb";

/// The samples in a folder, in the order of their names; an error if it holds something else, or nothing.
llvm::Expected<std::vector<Sample>> listSamples(llvm::StringRef folder, const ptc_function &function);

} // namespace ptc

#endif // PTC_CLI_QUANTIZE_SAMPLES_H
