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

/// All inputs of the function, as the specs say. Dims of made-up inputs come from `dims`, then from the inputs that are
/// read, then from the hints. Inputs without a spec: an error that lists them.
llvm::Expected<std::vector<Tensor>> makeInputs(const ptc_function &function, llvm::ArrayRef<std::string> specs,
                                               const SymbolDims &dims);

} // namespace ptc

#endif // PTC_CLI_INPUTSPECS_H
