//===- ModelFile.cpp - an ONNX model and the files of its tensors ---------===//
#include "lowering/onnx/ModelFile.h"
#include "ir/Diagnostics.h"
#include "lowering/onnx/CheckGraph.h"
#include "lowering/onnx/Tensors.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <google/protobuf/stubs/logging.h>
#include <onnx/defs/parser.h>

using namespace llvm;
using namespace ptc;
using namespace ptc::onnx_import;
namespace path_ns = llvm::sys::path;

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static ErrorOr<std::unique_ptr<MemoryBuffer>> mapFile(StringRef path) {
  return MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
}

/// The model in the same folder whose name is the fewest edits away; empty if none is near.
static std::string nearestModel(StringRef path) {
  StringRef folder = path_ns::parent_path(path), name = path_ns::filename(path);
  std::string nearest;
  unsigned least = std::max<size_t>(2, name.size() / 4) + 1;
  std::error_code failed;
  for (sys::fs::directory_iterator it(folder.empty() ? "." : folder, failed), end; !failed && it != end;
       it.increment(failed)) {
    StringRef other = path_ns::filename(it->path());
    if (!other.ends_with(".onnx"))
      continue;
    unsigned distance = name.edit_distance(other, true, least);
    if (distance < least || (distance == least && !nearest.empty() && other < path_ns::filename(nearest))) {
      SmallString<128> found(folder);
      path_ns::append(found, other);
      nearest = found.str().str();
      least = distance;
    }
  }
  return nearest;
}

std::unique_ptr<ModelFile> ModelFile::open(mlir::MLIRContext &context, StringRef path) {
  mlir::Location loc = mlir::UnknownLoc::get(&context);
  if (sys::fs::is_directory(path)) {
    diagnose(loc, DiagId::FileUnreadable, path, "it is a directory");
    return nullptr;
  }
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = mapFile(path);
  if (!buffer) {
    mlir::InFlightDiagnostic diag = diagnose(loc, DiagId::FileUnreadable, path, buffer.getError().message());
    if (std::string nearest = nearestModel(path); !nearest.empty())
      addHelp(diag, "did you mean '" + nearest + "'?");
    return nullptr;
  }
  return parse(context, std::move(*buffer), path);
}

/// Text models are for tests: their tensors are written out in them, so there is nothing to cut out.
static bool parseText(onnx::ModelProto &model, StringRef text, StringRef path, mlir::Location loc) {
  std::string reason;
  try {
    std::string owned = text.str(); // the parser keeps a view
    onnx::OnnxParser parser(owned.c_str());
    onnx::Common::Status status = parser.Parse(model);
    if (status.IsOK())
      return true;
    reason = status.ErrorMessage();
  } catch (const std::exception &e) {
    reason = e.what();
  }
  diagnose(loc, DiagId::BadText, path, reason);
  return false;
}

/// What is often taken for a model, by first bytes with which no model begins; empty for others.
static StringRef nameFormat(StringRef bytes) {
  static constexpr std::pair<StringLiteral, StringLiteral> formats[] = {
      {"\177ELF", "it is a shared library or a program"},
      {"version https://git-lfs",
       "it is the stub that Git LFS leaves in the place of a file; `git lfs pull` fetches that"},
      {"PK\003\004", "it is a zip archive, as PyTorch's checkpoints are"},
      {"\037\213", "it is compressed with gzip"},
      {"<", "it is a page of the web or another text with tags"},
  };
  if (bytes.starts_with("<") && bytes.drop_front().ltrim().starts_with("ir_version"))
    return "it is in the text form, whose files are named .onnxtxt";
  for (auto &[first, name] : formats)
    if (bytes.starts_with(first))
      return name;
  return "";
}

static bool parseBinary(onnx::ModelProto &model, StringRef bytes, StringRef path, mlir::Location loc) {
  std::string stripped;
  WireError error;
  if (bytes.empty()) {
    diagnose(loc, DiagId::NotOnnx, path, "it is empty");
    return false;
  }
  if (StringRef format = nameFormat(bytes); !format.empty()) {
    diagnose(loc, DiagId::NotOnnx, path, format);
    return false;
  }
  if (!stripTensors(bytes, stripped, error)) {
    if (error.isTruncated)
      diagnose(loc, DiagId::FileTruncated, path, error.announced, error.offset, error.available);
    else
      diagnose(loc, DiagId::NotOnnx, path, error.reason);
    return false;
  }
  google::protobuf::LogSilencer silence;
  try {
    if (model.ParseFromString(stripped))
      return true;
    diagnose(loc, DiagId::NotOnnx, path, "its messages are malformed");
  } catch (const std::exception &e) {
    diagnose(loc, DiagId::NotOnnx, path, e.what());
  }
  return false;
}

std::unique_ptr<ModelFile> ModelFile::parse(mlir::MLIRContext &context, std::unique_ptr<MemoryBuffer> bytes,
                                            StringRef path) {
  mlir::Location loc = mlir::UnknownLoc::get(&context);
  auto file = std::make_unique<ModelFile>();
  file->path = path.str();
  file->bytes = std::move(bytes);
  StringRef text = file->bytes->getBuffer();
  bool isText = path.ends_with(".onnxtxt");
  if (isText ? !parseText(file->model, text, path, loc) : !parseBinary(file->model, text, path, loc))
    return nullptr;
  if (!file->model.has_graph()) {
    diagnose(loc, DiagId::NoGraph);
    return nullptr;
  }
  return file->resolveExternalData(loc) && file->densifyTensors(context) ? std::move(file) : nullptr;
}

bool ModelFile::bindInput(mlir::MLIRContext &context, StringRef input, StringRef tensorPath) {
  mlir::Location loc = mlir::UnknownLoc::get(&context);
  std::string option = (input + "=" + tensorPath).str();
  bool isInput = any_of(model.graph().input(), [&](const onnx::ValueInfoProto &i) { return input == i.name(); });
  if (!isInput) {
    diagnose(loc, DiagId::BadShapeOption, option, ("the model has no input '" + input + "'").str());
    return false;
  }
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = mapFile(tensorPath);
  if (!buffer) {
    diagnose(loc, DiagId::FileUnreadable, tensorPath, buffer.getError().message());
    return false;
  }
  onnx::TensorProto tensor;
  google::protobuf::LogSilencer silence;
  if (!tensor.ParseFromArray((*buffer)->getBufferStart(), (*buffer)->getBufferSize())) {
    diagnose(loc, DiagId::BadShapeOption, option, "the file holds no ONNX tensor");
    return false;
  }
  tensor.set_name(input.str());
  tensor.clear_doc_string();
  tensor.clear_external_data();
  tensor.clear_data_location();
  *model.mutable_graph()->add_initializer() = std::move(tensor);
  return true;
}

std::optional<StringRef> ModelFile::rawBytes(const onnx::TensorProto &tensor) const {
  ByteRange range;
  if (!tensor.has_raw_data())
    return std::nullopt;
  if (!readMark(tensor.doc_string(), range))
    return StringRef(tensor.raw_data());
  auto external = externalFiles.find(range.file);
  const MemoryBuffer &file = external == externalFiles.end() ? *bytes : *external->second;
  return file.getBuffer().substr(range.offset, range.size);
}

//===----------------------------------------------------------------------===//
// External data: becomes marks, like the bytes that were cut out of the model
//===----------------------------------------------------------------------===//

bool ModelFile::resolveExternalData(mlir::Location loc) {
  bool isComplete = resolveGraph(*model.mutable_graph(), loc);
  for (onnx::FunctionProto &function : *model.mutable_functions())
    for (onnx::NodeProto &node : *function.mutable_node())
      isComplete &= resolveNode(node, loc);
  return isComplete;
}

bool ModelFile::resolveGraph(onnx::GraphProto &graph, mlir::Location loc) {
  bool isComplete = true;
  for (onnx::TensorProto &tensor : *graph.mutable_initializer())
    isComplete &= resolveTensor(tensor, loc);
  for (onnx::SparseTensorProto &tensor : *graph.mutable_sparse_initializer())
    isComplete &= resolveTensor(*tensor.mutable_values(), loc) && resolveTensor(*tensor.mutable_indices(), loc);
  for (onnx::NodeProto &node : *graph.mutable_node())
    isComplete &= resolveNode(node, loc);
  return isComplete;
}

bool ModelFile::resolveNode(onnx::NodeProto &node, mlir::Location loc) {
  bool isComplete = true;
  for (onnx::AttributeProto &attribute : *node.mutable_attribute()) {
    if (attribute.has_t())
      isComplete &= resolveTensor(*attribute.mutable_t(), loc);
    if (attribute.has_sparse_tensor())
      isComplete &= resolveTensor(*attribute.mutable_sparse_tensor()->mutable_values(), loc) &&
                    resolveTensor(*attribute.mutable_sparse_tensor()->mutable_indices(), loc);
    if (attribute.has_g())
      isComplete &= resolveGraph(*attribute.mutable_g(), loc);
    for (onnx::GraphProto &graph : *attribute.mutable_graphs())
      isComplete &= resolveGraph(graph, loc);
  }
  return isComplete;
}

//===----------------------------------------------------------------------===//
// Sparse tensors: nothing behind this file knows of them
//===----------------------------------------------------------------------===//

bool ModelFile::densifyTensors(mlir::MLIRContext &context) {
  bool isDense = densifyGraph(*model.mutable_graph(), context);
  for (onnx::FunctionProto &function : *model.mutable_functions())
    for (onnx::NodeProto &node : *function.mutable_node())
      isDense &= densifyNode(node, context);
  return isDense;
}

bool ModelFile::densifyGraph(onnx::GraphProto &graph, mlir::MLIRContext &context) {
  bool isDense = true;
  for (const onnx::SparseTensorProto &sparse : graph.sparse_initializer()) {
    std::optional<onnx::TensorProto> dense = densify(mlir::UnknownLoc::get(&context), *this, sparse, room);
    isDense &= dense.has_value();
    if (dense)
      *graph.add_initializer() = std::move(*dense);
  }
  graph.clear_sparse_initializer();
  for (onnx::NodeProto &node : *graph.mutable_node())
    isDense &= densifyNode(node, context);
  return isDense;
}

bool ModelFile::densifyNode(onnx::NodeProto &node, mlir::MLIRContext &context) {
  bool isDense = true;
  for (onnx::AttributeProto &attribute : *node.mutable_attribute()) {
    if (attribute.has_g())
      isDense &= densifyGraph(*attribute.mutable_g(), context);
    bool isConstant = node.op_type() == "Constant" && (node.domain().empty() || node.domain() == "ai.onnx");
    if (!isConstant || attribute.name() != "sparse_value" || !attribute.has_sparse_tensor())
      continue;
    std::optional<onnx::TensorProto> dense =
        densify(nodeLocation(&context, node), *this, attribute.sparse_tensor(), room);
    isDense &= dense.has_value();
    if (!dense)
      continue;
    attribute.clear_sparse_tensor();
    attribute.set_name("value");
    attribute.set_type(onnx::AttributeProto::TENSOR);
    *attribute.mutable_t() = std::move(*dense);
  }
  return isDense;
}

/// A name that stays within the folder: relative, and no step leads out of it.
static bool isInsideFolder(StringRef name) {
  if (name.empty() || path_ns::is_absolute(name) || name.contains('\\') || name.contains('\0'))
    return false;
  int depth = 0;
  for (StringRef part : make_range(path_ns::begin(name), path_ns::end(name))) {
    depth += part == ".." ? -1 : part == "." ? 0 : 1;
    if (depth < 0)
      return false;
  }
  return depth > 0;
}

/// External files are named relative to the folder of the model.
std::string ModelFile::pathOf(StringRef name) const {
  SmallString<256> full(path_ns::parent_path(path));
  path_ns::append(full, name);
  return full.str().str();
}

std::vector<std::string> ModelFile::listFiles() const {
  std::vector<std::string> files = {path};
  for (StringRef name : externalFiles.keys())
    files.push_back(pathOf(name));
  std::sort(files.begin() + 1, files.end());
  return files;
}

const MemoryBuffer *ModelFile::externalFile(StringRef name, StringRef tensor, mlir::Location loc) {
  auto [entry, isNew] = externalFiles.try_emplace(name);
  if (!isNew)
    return entry->second.get(); // null: has been reported
  SmallString<256> full(pathOf(name)), folder, target;
  // Symbolic links may not lead out of the folder either.
  StringRef parent = path_ns::parent_path(path);
  bool isResolved = !sys::fs::real_path(parent.empty() ? "." : parent, folder) && !sys::fs::real_path(full, target);
  bool isInside = !isResolved || target.str().starts_with((folder + "/").str()) || folder == "/";
  if (!isInsideFolder(name) || !isInside) {
    mlir::InFlightDiagnostic diag = diagnose(loc, DiagId::ExternalPathEscapes, name, tensor);
    addHelp(diag, "put the file into the folder of the model, and its name alone into the model");
    return nullptr;
  }
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = mapFile(full);
  if (!buffer) {
    mlir::InFlightDiagnostic diag =
        diagnose(loc, DiagId::ExternalFileMissing, name, tensor, buffer.getError().message());
    addHelp(diag, "external data must lie beside the model, under the name the model gives it");
    return nullptr;
  }
  entry->second = std::move(*buffer);
  return entry->second.get();
}

bool ModelFile::resolveTensor(onnx::TensorProto &tensor, mlir::Location loc) {
  if (tensor.data_location() != onnx::TensorProto::EXTERNAL)
    return true;
  ByteRange range;
  bool hasSize = false, isWellFormed = true;
  std::string location, offset = "0", length;
  for (const onnx::StringStringEntryProto &entry : tensor.external_data()) {
    StringRef value = entry.value();
    if (entry.key() == "location")
      location = entry.value();
    else if (entry.key() == "offset")
      offset = entry.value(), isWellFormed &= !value.getAsInteger(10, range.offset);
    else if (entry.key() == "length")
      length = entry.value(), hasSize = !value.getAsInteger(10, range.size), isWellFormed &= hasSize;
  }
  const MemoryBuffer *file = externalFile(location, tensor.name(), loc);
  if (!file)
    return false;
  uint64_t fileSize = file->getBufferSize();
  if (length.empty())
    range.size = fileSize - std::min(fileSize, range.offset);
  if (!isWellFormed || range.offset > fileSize || range.size > fileSize - range.offset) {
    // As the model has them: they may be no numbers.
    diagnose(loc, DiagId::ExternalRange, tensor.name(), length.empty() ? std::to_string(range.size) : length, offset,
             location, fileSize);
    return false;
  }
  range.file = location;
  tensor.set_raw_data("");
  tensor.set_doc_string(writeMark(range));
  tensor.clear_external_data();
  tensor.clear_data_location();
  return true;
}
