# Code generation from .td files. Every generated file lands in the build folder under its source's path, so
# that ir/prim/PrimOps.td gives "ir/prim/PrimOps.h.inc". Only files that exist are generated; a new .td file is
# noticed at the next build.

find_program(PTC_MLIR_TBLGEN mlir-tblgen HINTS ${LLVM_TOOLS_BINARY_DIR} NO_DEFAULT_PATH REQUIRED)
add_custom_target(ptcGenerated)

# ptc_tablegen(<source> <output> <generator flags>...): paths relative to the project's root.
function(ptc_tablegen source output)
  set(out ${PROJECT_BINARY_DIR}/${output})
  get_filename_component(folder ${out} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(OUTPUT ${out}
    COMMAND ${PTC_MLIR_TBLGEN} ${ARGN} -I ${PROJECT_SOURCE_DIR} -I ${MLIR_INCLUDE_DIRS} ${PROJECT_SOURCE_DIR}/${source}
            --write-if-changed -o ${out} -d ${out}.d
    DEPENDS ${PROJECT_SOURCE_DIR}/${source} ${PTC_MLIR_TBLGEN} DEPFILE ${out}.d
    COMMENT "generating ${output}" VERBATIM)
  string(MAKE_C_IDENTIFIER gen_${output} name)
  add_custom_target(${name} DEPENDS ${out})
  add_dependencies(ptcGenerated ${name})
endfunction()

# ptc_dialect(<folder> <Stem> <dialect name>): everything of one dialect, from <folder>/<Stem>Ops.td, which
# includes the dialect's other .td files; <Stem>Interfaces.td is separate, if there is one.
function(ptc_dialect folder stem dialect)
  file(GLOB found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.td)
  set(top ${folder}/${stem}Ops.td)
  set(at ${folder}/${stem})
  if(EXISTS ${PROJECT_SOURCE_DIR}/${top})
    ptc_tablegen(${top} ${at}Ops.h.inc -gen-op-decls)
    ptc_tablegen(${top} ${at}Ops.cpp.inc -gen-op-defs)
    ptc_tablegen(${top} ${at}Dialect.h.inc -gen-dialect-decls -dialect=${dialect})
    ptc_tablegen(${top} ${at}Dialect.cpp.inc -gen-dialect-defs -dialect=${dialect})
    ptc_tablegen(${top} ${at}Types.h.inc -gen-typedef-decls -typedefs-dialect=${dialect})
    ptc_tablegen(${top} ${at}Types.cpp.inc -gen-typedef-defs -typedefs-dialect=${dialect})
    ptc_tablegen(${top} ${at}Attrs.h.inc -gen-attrdef-decls -attrdefs-dialect=${dialect})
    ptc_tablegen(${top} ${at}Attrs.cpp.inc -gen-attrdef-defs -attrdefs-dialect=${dialect})
    ptc_tablegen(${top} ${at}Enums.h.inc -gen-enum-decls)
    ptc_tablegen(${top} ${at}Enums.cpp.inc -gen-enum-defs)
  endif()
  if(EXISTS ${PROJECT_SOURCE_DIR}/${at}Interfaces.td)
    ptc_tablegen(${at}Interfaces.td ${at}Interfaces.h.inc -gen-op-interface-decls)
    ptc_tablegen(${at}Interfaces.td ${at}Interfaces.cpp.inc -gen-op-interface-defs)
  endif()
endfunction()

# ptc_passes(<folder>): every Passes.td below the folder. The registration function is named after the file's
# own folder: lowering/prim_to_loop/Passes.td gives registerPrimToLoopPasses(), lowering/passes/Passes.td
# registerLoweringPasses().
function(ptc_passes folder)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/${folder}/Passes.td)
  foreach(td ${found})
    get_filename_component(at ${td} DIRECTORY)
    string(REGEX REPLACE "/passes$" "" name ${at})
    get_filename_component(name ${name} NAME)
    string(REPLACE "_" ";" words ${name})
    set(name "")
    foreach(word ${words})
      string(SUBSTRING ${word} 0 1 head)
      string(SUBSTRING ${word} 1 -1 tail)
      string(TOUPPER ${head} head)
      string(APPEND name ${head}${tail})
    endforeach()
    ptc_tablegen(${td} ${at}/Passes.h.inc -gen-pass-decls -name ${name})
  endforeach()
endfunction()
