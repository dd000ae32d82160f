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

/// Classes or categories: integers, or strings where there are any.
struct Labels {
  Ints integers;
  llvm::SmallVector<std::string> texts;
  size_t size() const { return texts.empty() ? integers.size() : texts.size(); }
};

/// The labels in two attributes, of which a model has one; nothing after a diagnostic.
std::optional<Labels> classLabels(NodeContext &n, llvm::StringRef integers, llvm::StringRef strings);
/// labels[index]
Value chooseLabel(NodeContext &n, const Labels &labels, Value index);
/// The label with the highest score of each row, the first of several.
Value bestLabel(NodeContext &n, const Labels &labels, Value scores);
/// The place of each string in the list (the first of equal ones); the list's length where it is none of it.
Value findString(NodeContext &n, Value x, llvm::ArrayRef<std::string> list);

/// Input i as rows [rows, features] in f32, or in f64 where it is that.
Value featureRows(NodeContext &n, size_t i);

} // namespace ptc::decomp

#endif // PTC_LOWERING_DECOMP_CLASSSCORES_H
