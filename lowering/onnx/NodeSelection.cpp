//===- NodeSelection.cpp - the nodes that a flag asks for -----------------===//
#include "lowering/onnx/NodeSelection.h"
#include "ir/Diagnostics.h"

using namespace ptc;
using namespace ptc::onnx_import;
using llvm::StringRef;

NodeSelection::NodeSelection(StringRef flag, StringRef all, llvm::ArrayRef<std::string> texts) : flag(flag), all(all) {
  for (StringRef text : texts) {
    Asked &entry = asked.emplace_back(Asked{text.str(), std::nullopt, false});
    llvm::Expected<llvm::GlobPattern> pattern = llvm::GlobPattern::create(text == "all" ? "*" : text);
    if (!pattern)
      llvm::consumeError(pattern.takeError()); // a name with a bracket in it
    else if (text == "all" || text.find_first_of("*?[") != StringRef::npos)
      entry.pattern = std::move(*pattern);
  }
}

NodeSelection::Kind NodeSelection::find(StringRef node, StringRef output) {
  if (empty())
    return Kind::None;
  names.push_back(output.str());
  if (!node.empty())
    names.push_back(node.str());
  Kind kind = Kind::None;
  for (Asked &entry : asked) {
    bool isName = entry.text == output || (!node.empty() && entry.text == node);
    if (!isName && !(entry.pattern && (entry.pattern->match(output) || entry.pattern->match(node))))
      continue;
    entry.isMatched = true;
    kind = std::max(kind, isName ? Kind::Name : Kind::Pattern);
  }
  return kind;
}

bool NodeSelection::reportUnmatched(mlir::Location loc) const {
  bool isComplete = true;
  for (const Asked &entry : asked) {
    if (entry.isMatched || entry.text == "all")
      continue;
    isComplete = false;
    auto diagnostic = diagnose(loc, DiagId::BadShapeOption, flag + " " + entry.text,
                               "the model has no such node, and no value of this name");
    const std::string *nearest = nullptr;
    size_t size = entry.text.size();
    unsigned best = std::min(std::max<size_t>(2, size / 3) + 1, size); // with all letters changed it is another name
    for (const std::string &name : names)
      if (unsigned distance = StringRef(entry.text).edit_distance(name, true, best); distance < best) {
        best = distance;
        nearest = &name;
      }
    if (nearest && !entry.pattern)
      addHelp(diagnostic, "did you mean '" + *nearest + "'?");
    else
      addHelp(diagnostic, "`ptc inspect MODEL.onnx` lists the nodes; 'all' " + all);
  }
  return isComplete;
}
