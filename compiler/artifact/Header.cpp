#include "compiler/artifact/Header.h"
#include "compiler/artifact/HeaderText.h"
#include "compiler/artifact/RuntimeObject.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace ptc::artifact {
namespace {

struct FunctionWriter {
  raw_ostream &os;
  const host::ModelInterface &model;
  const host::Function &function;

  bool dynamic() const { return !function.symbols.empty(); }
  std::string dimsParameter() const { return dynamic() ? ", const " + function.cPrefix + "_dims *dims" : ""; }

  void dimsStruct() {
    if (!dynamic())
      return;
    os << "/* The sizes that a call is free to choose. */\ntypedef struct " << function.cPrefix << "_dims {\n";
    for (const host::Symbol &symbol : function.symbols)
      os << "  int64_t " << symbol.cName << "; /* " << describeRange(symbol) << " */\n";
    os << "} " << function.cPrefix << "_dims;\n\n";
  }

  void values() {
    os << "/* Function '" << inComment(function.name) << "'.\n *\n";
    describeValues(os, function, " * ");
    os << " *\n * run checks the sizes; it cannot check the pointers. It touches no output if a check fails.\n"
          " * workspace: at least _workspace_size bytes, or NULL for the context's own memory. stream: NULL, or "
          "one of a GPU: run of\n"
          " * ptc_model_table says what is told of it, and of pointers to a GPU's memory.";
    if (llvm::any_of(function.outputs, [](const host::Value &value) { return value.isFound(); }))
      os << "\n *\n * Sizes of some outputs are known only when the model has run: output_shapes tells the most that "
            "they can be,\n"
            " * -1 where nothing bounds them, and run writes what they are to the _shape behind the output. An "
            "output's pointer\n"
            " * is NULL on entry, and run allocates it: 64-byte aligned, the bytes rounded up to a multiple of 64 and "
            "at least\n"
            " * 64, from the allocator of the options or else for free(); it is the caller's. Or it points to room for "
            "the\n"
            " * most. After a failed run it is what it was. */\n";
    else
      os << " */\n";
  }

  void queries() {
    os << "size_t " << function.cPrefix << "_workspace_size(const " << model.name << "_model *model" << dimsParameter()
       << ");\n";
    os << model.name << "_status " << function.cPrefix << "_output_shapes(const " << model.name << "_model *model"
       << dimsParameter();
    for (const host::Value &value : function.outputs)
      os << ", int64_t " << value.cName << "[" << std::max<size_t>(value.dims.size(), 1) << "]";
    os << ");\n";
    os << model.name << "_status " << function.cPrefix << "_warmup(" << model.name << "_ctx *ctx" << dimsParameter()
       << ");\n";
  }

  void run() {
    std::string indent(function.cPrefix.size() + model.name.size() + sizeof("_status _run(") - 1, ' ');
    os << model.name << "_status " << function.cPrefix << "_run(" << model.name << "_ctx *ctx" << dimsParameter();
    for (const host::Value &value : function.inputs)
      os << ",\n"
         << indent << (value.alias < 0 ? "const " : "") << value.dtype.cType() << " *" << value.cName << " /* "
         << inComment(dimsText(value)) << " */";
    for (const host::Value &value : function.outputs)
      if (value.isFound())
        os << ",\n"
           << indent << value.dtype.cType() << " **" << value.cName << " /* " << inComment(dimsText(value)) << ": *"
           << value.cName << " NULL, or room for the most */,\n"
           << indent << "int64_t " << value.shapeName << "[" << std::max<size_t>(value.dims.size(), 1) << "]";
      else if (value.alias < 0)
        os << ",\n"
           << indent << value.dtype.cType() << " *" << value.cName << " /* " << inComment(dimsText(value)) << " */";
    os << ",\n" << indent << "void *workspace, void *stream);\n\n";
  }

  void write() {
    dimsStruct();
    values();
    queries();
    run();
  }
};

} // namespace

std::string writeHeader(const host::ModelInterface &model, const HeaderOptions &options) {
  std::string text;
  raw_string_ostream os(text);
  const std::string &name = model.name;
  std::string guard = includeGuard(model, options.fileName);
  os << "/* " << inComment(name) << ": compiled by " << inComment(model.compiler)
     << (options.source.empty() ? "" : " from " + inComment(options.source)) << ". */\n"
     << "#ifndef " << guard << "\n#define " << guard << "\n\n"
     << "#ifdef PTC_PREFIX_" << name << "\n#error \"two models have the C prefix '" << name
     << "': compile one of them with another --name\"\n#endif\n#define PTC_PREFIX_" << name << "\n\n"
     << runtimeHeader("abi.h").value_or("") << "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
  os << "typedef ptc_status " << name << "_status;\n"
     << "typedef struct " << name << "_model " << name << "_model;\n"
     << "typedef struct " << name << "_ctx " << name << "_ctx;\n\n";
  for (const host::CustomOperator &op : model.customOperators)
    os << "/* " << name << "_create opens the library '" << inComment(op.library) << "', which has the operator "
       << inComment(op.name) << ". */\n";
  os << (model.customOperators.empty() ? "" : "\n")
     << "/* options may be NULL. On failure *model is NULL and options->error has the reason. */\n"
     << name << "_status " << name << "_create(const ptc_options *options, " << name << "_model **model);\n"
     << "void " << name << "_destroy(" << name << "_model *model);\n\n"
     << "/* One context per concurrent call. */\n"
     << name << "_status " << name << "_ctx_create(const " << name << "_model *model, " << name << "_ctx **ctx);\n"
     << "void " << name << "_ctx_destroy(" << name << "_ctx *ctx);\n\n"
     << "/* The reason of the last failed call on this context; \"\" if it succeeded. */\n"
     << "const char *" << name << "_last_error(const " << name << "_ctx *ctx);\n\n"
     << "/* Replaces a weight by a dense row-major tensor of exactly `bytes` bytes, while no call runs. */\n"
     << name << "_status " << name << "_set_weight(" << name
     << "_model *model, const char *name, const void *data, size_t bytes);\n\n";
  for (const host::Function &function : model.functions)
    FunctionWriter{os, model, function}.write();
  os << "/* The generic entry. */\nextern const ptc_model_table "
     << (options.staticLibrary ? name + "_model_v1" : "ptc_model_v1")
     << ";\n\n#ifdef __cplusplus\n}\n#endif\n#endif /* " << guard << " */\n";
  return text;
}

} // namespace ptc::artifact
