// The passes of each stage between import and code generation.
#ifndef PTC_COMPILER_STAGES_H
#define PTC_COMPILER_STAGES_H

#include "codegen/Target.h"
#include "compiler/Options.h"
#include "compiler/Phases.h"
#include "ir/eval/ReferenceEval.h"
#include "mlir/Pass/PassManager.h"

namespace ptc {

/// Adds the passes of a stage; import, codegen and link have none. `weights` outlives the passes.
void addStage(mlir::OpPassManager &passes, Phase phase, const CompileOptions &options, const codegen::Target &target,
              eval::WeightSource &weights);

} // namespace ptc

#endif // PTC_COMPILER_STAGES_H
