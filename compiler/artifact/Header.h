// The C header that is written beside a library.
#ifndef PTC_COMPILER_ARTIFACT_HEADER_H
#define PTC_COMPILER_ARTIFACT_HEADER_H

#include "codegen/host/Interface.h"

namespace ptc::artifact {

struct HeaderOptions {
  std::string fileName = "model.h"; // for the include guard
  std::string source;               // file name of the model, for the opening comment
  bool staticLibrary = false;       // declare NAME_model_v1 instead of ptc_model_v1
};

/// Complete text: the model's typed functions, with the definitions of ptc/abi.h in front, so that the header needs no
/// other. Valid C99 and C++.
std::string writeHeader(const host::ModelInterface &model, const HeaderOptions &options);

} // namespace ptc::artifact

#endif
