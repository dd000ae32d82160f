// Inputs as a command line names them: `-i x=@x.npy`, `-i x=random:42`, `-i zeros`.
#ifndef PTC_CLI_INPUTSPECS_H
#define PTC_CLI_INPUTSPECS_H

#include "cli/ModelLibrary.h"

namespace ptc {

/// What the help of -i says.
constexpr llvm::StringLiteral inputSpecHelp =
    "an input: x=@FILE (.npy, .npz:NAME, ONNX .pb), x=random:SEED, x=zeros, x=ones; without a name: all others; "
    "@FILE.npz: all that it holds";

/// A symbol's value by `--dim batch=8`.
using SymbolDims = llvm::StringMap<int64_t>;
llvm::Expected<SymbolDims> parseDims(llvm::ArrayRef<std::string> specs);
/// "batch=8 seq=128"
std::string formatDims(const SymbolDims &dims);
/// What the function's symbols are in a run on these inputs: as the inputs' shapes say, else as the user has named
/// them, else the hints.
SymbolDims symbolsOf(const ptc_function &function, llvm::ArrayRef<Tensor> inputs, const SymbolDims &named = {});

/// All inputs of the function, as the specs say. Dims of made-up inputs come from `dims`, then from the inputs that are
/// read, then from the hints. Inputs without a spec: an error that lists them.
llvm::Expected<std::vector<Tensor>> makeInputs(const ptc_function &function, llvm::ArrayRef<std::string> specs,
                                               const SymbolDims &dims);

} // namespace ptc

#endif // PTC_CLI_INPUTSPECS_H
