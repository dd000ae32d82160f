//===- ImportTool.h - `ptc-opt --import-onnx` -------------------*- C++ -*-===//
#ifndef PTC_LOWERING_ONNX_IMPORTTOOL_H
#define PTC_LOWERING_ONNX_IMPORTTOOL_H

namespace ptc {

/// Whether the command line asks for an import.
bool isImportCommand(int argc, char **argv);
/// `--import-onnx MODEL [--dim D]... [--shape S]... [--alias A=B]... [--const NAME=FILE]...`: prints the prim module,
/// or the diagnostics on standard error, one a line, and returns the exit code that they mean.
int importOnnxMain(int argc, char **argv);

} // namespace ptc

#endif // PTC_LOWERING_ONNX_IMPORTTOOL_H
