//===- ClassScores.h - what classifiers do with scores ----------*- C++ -*-===//
//
// ai.onnx.ml: scores [rows, classes] become others (`post_transform`) and a label.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_LOWERING_DECOMP_CLASSSCORES_H
#define PTC_LOWERING_DECOMP_CLASSSCORES_H

#include "lowering/decomp/NodeContext.h"

namespace ptc::decomp {

enum class PostTransform { None, Softmax, Logistic, SoftmaxZero, Probit };

/// The attribute `post_transform`; nothing after a diagnostic.
std::optional<PostTransform> readPostTransform(NodeContext &n);
Value transformScores(NodeContext &n, Value scores, PostTransform transform);

/// The labels in an attribute of integers; diagnosed where the model has strings instead.
std::optional<Ints> classLabels(NodeContext &n, llvm::StringRef integers, llvm::StringRef strings);
/// labels[index]
Value chooseLabel(NodeContext &n, llvm::ArrayRef<int64_t> labels, Value index);
/// The label with the highest score of each row, the first of several.
Value bestLabel(NodeContext &n, llvm::ArrayRef<int64_t> labels, Value scores);

/// Input i as rows [rows, features] in f32, or in f64 where it is that.
Value featureRows(NodeContext &n, size_t i);

} // namespace ptc::decomp

#endif // PTC_LOWERING_DECOMP_CLASSSCORES_H
