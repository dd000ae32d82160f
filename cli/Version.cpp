// ptc version: what this program is and what is inside it.
#include "cli/Verb.h"
#include "runtime/include/ptc/abi.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include <google/protobuf/stubs/common.h>
#include <onnx/common/version.h>
#include <onnx/onnx_pb.h>
#include <zlib.h>

using namespace llvm;

namespace ptc {

namespace {
struct Component {
  StringLiteral name, licence, use;
};
} // namespace

/// What the static program contains besides ptc's own code. Nothing of it goes into generated libraries but the first
/// row's runtime.
static constexpr Component components[] = {
    {"ptc and its runtime", "Apache-2.0 WITH LLVM-exception", "no obligation for generated libraries"},
    {"LLVM, MLIR, lld", "Apache-2.0 WITH LLVM-exception", "code generation, linking"},
    {"ONNX", "Apache-2.0", "model format, checker, operator schemas"},
    {"Protocol Buffers", "BSD-3-Clause", "model format"},
    {"CLI11", "BSD-3-Clause", "command line"},
    {"spdlog", "MIT", "messages of -v"},
    {"{fmt}", "MIT", "messages of -v"},
    {"zlib", "Zlib", "compressed arrays"},
    {"Zstandard", "BSD-3-Clause", "compressed sections of objects"},
    {"GNU libstdc++ and libgcc", "GPL-3.0 WITH GCC-exception-3.1", "C++ run-time library"},
};

static Error printLicences(raw_ostream &os, bool json) {
  json::Array list;
  for (const Component &component : components) {
    if (!json)
      os << left_justify(component.name, 26) << left_justify(component.licence, 32) << component.use << '\n';
    list.push_back(json::Object{{"name", component.name}, {"licence", component.licence}, {"use", component.use}});
  }
  if (json)
    os << formatv("{0:2}\n", json::Value(json::Object{{"components", std::move(list)}}));
  return Error::success();
}

static Error printVersion(raw_ostream &os, bool json) {
  std::string protobuf = google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION);
  if (json) {
    os << formatv("{0:2}\n", json::Value(json::Object{{"ptc", PTC_VERSION},
                                                      {"model_interface", PTC_ABI_VERSION},
                                                      {"llvm", LLVM_VERSION_STRING},
                                                      {"onnx", onnx::LAST_RELEASE_VERSION},
                                                      {"onnx_ir_version", static_cast<int>(onnx::Version::IR_VERSION)},
                                                      {"protobuf", protobuf},
                                                      {"zlib", ZLIB_VERSION}}));
    return Error::success();
  }
  os << "ptc " << PTC_VERSION << "\n  model interface " << PTC_ABI_VERSION << "\n  LLVM " << LLVM_VERSION_STRING
     << "\n  ONNX " << onnx::LAST_RELEASE_VERSION << ", IR version " << onnx::Version::IR_VERSION
     << "\n  Protocol Buffers " << protobuf << "\n  zlib " << ZLIB_VERSION << '\n';
  return Error::success();
}

Action declareVersion(CLI::App &app) {
  auto licences = std::make_shared<bool>(false), json = std::make_shared<bool>(false);
  app.add_flag("--licenses,--licences", *licences, "list what is inside ptc, with licences");
  app.add_flag("--json", *json, "print JSON");
  return [licences, json](Session &session) {
    return *licences ? printLicences(session.out, *json) : printVersion(session.out, *json);
  };
}

} // namespace ptc
