// The dialects that ptc's stages are written in, and its passes by name, for tools that read a stage's text.
#ifndef PTC_COMPILER_REGISTRATION_H
#define PTC_COMPILER_REGISTRATION_H

#include <optional>

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace ptc {

/// Every dialect that may stand in a dump of any stage.
void registerStageDialects(mlir::DialectRegistry &registry);

/// Every pass of ptc and the upstream ones its pipelines use, for textual pipelines. Once per process.
void registerStagePasses();

/// `--import-onnx MODEL ...`: prints the module that import makes and returns the exit code; nothing if the command
/// line is another one. For tests of import alone.
std::optional<int> runImportCommand(int argc, char **argv);

} // namespace ptc

#endif // PTC_COMPILER_REGISTRATION_H
