// Tensors in files: numpy's .npy and .npz, and ONNX's serialised TensorProto (.pb).
#ifndef PTC_CLI_TENSOR_TENSORFILES_H
#define PTC_CLI_TENSOR_TENSORFILES_H

#include "cli/tensor/Tensor.h"
#include "llvm/ADT/MapVector.h"

namespace ptc {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// The tensor in a .npy file's bytes; `path` is for messages.
llvm::Expected<Tensor> parseNpy(llvm::StringRef bytes, llvm::StringRef path);
std::string formatNpy(const Tensor &tensor);

/// All arrays of a .npz file (stored or deflated), in its order.
llvm::Expected<NamedTensors> parseNpz(llvm::StringRef bytes, llvm::StringRef path);
/// Stored, in the given order.
std::string formatNpz(const NamedTensors &tensors);

llvm::Expected<Tensor> parseTensorProto(llvm::StringRef bytes, llvm::StringRef path);
/// Of tensors; an optional value is a sequence of at most one.
llvm::Expected<Tensor> parseSequenceProto(llvm::StringRef bytes, llvm::StringRef path);
llvm::Expected<Tensor> parseOptionalProto(llvm::StringRef bytes, llvm::StringRef path);

/// By the file's suffix: .npy, .npz (with exactly one array, or "FILE.npz:NAME"), .pb. A sequence lies in a .pb file
/// alone.
llvm::Expected<Tensor> readTensor(llvm::StringRef path);
/// What a file holds for this value of a model.
llvm::Expected<Tensor> readValue(llvm::StringRef path, const ptc_value &value);
/// All of a .npz file's arrays.
llvm::Expected<NamedTensors> readTensors(llvm::StringRef path);
/// .npy, or .npz with one array named `name`; "-" is not a file.
llvm::Error writeTensor(llvm::StringRef path, llvm::StringRef name, const Tensor &tensor);
/// Whole files, written under a temporary name first.
llvm::Error writeFile(llvm::StringRef path, llvm::StringRef contents);
llvm::Expected<std::string> readFile(llvm::StringRef path);

} // namespace ptc

#endif // PTC_CLI_TENSOR_TENSORFILES_H
