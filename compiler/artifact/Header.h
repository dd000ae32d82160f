// The headers of C and of C++ that are written beside a library.
#ifndef PTC_COMPILER_ARTIFACT_HEADER_H
#define PTC_COMPILER_ARTIFACT_HEADER_H

#include "codegen/host/Interface.h"

namespace ptc::artifact {

struct HeaderOptions {
  std::string fileName = "model.h"; // for the include guard
  std::string source;               // file name of the model, for the opening comment
  bool staticLibrary = false;       // declare NAME_model_v1 instead of ptc_model_v1
  std::string cHeader = "model.h";  // what the C++ header includes
};

/// Complete text: the model's typed functions, with the definitions of ptc/abi.h in front, so that the header needs no
/// other. Valid C99 and C++.
std::string writeHeader(const host::ModelInterface &model, const HeaderOptions &options);

/// Complete text: classes over the C header's functions, with the definitions of ptc/abi.hpp in front. Valid C++17,
/// with and without exceptions.
std::string writeCppHeader(const host::ModelInterface &model, const HeaderOptions &options);

} // namespace ptc::artifact

#endif
