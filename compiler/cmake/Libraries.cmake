# ptc's own libraries: one target a top-level folder, sources by pattern, one precompiled header for all.

find_program(PTC_CCACHE ccache)
if(PTC_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${PROJECT_SOURCE_DIR}/compiler/cmake/cached-compile.sh ${PTC_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

separate_arguments(definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")

# What every C++ file of ptc is compiled with.
add_library(ptcSettings INTERFACE)
target_include_directories(ptcSettings INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
target_include_directories(ptcSettings SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS} ${LLD_INCLUDE_DIRS})
target_compile_definitions(ptcSettings INTERFACE ${definitions})
target_compile_options(ptcSettings INTERFACE
  -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers
  -Wno-deprecated-declarations -Wimplicit-fallthrough
  -fvisibility-inlines-hidden -ffunction-sections -fdata-sections -fcolor-diagnostics)
if(PTC_PCH)
  # A time stamp inside the precompiled header would make every use of it look new to ccache.
  target_compile_options(ptcSettings INTERFACE "SHELL:-Xclang -fno-pch-timestamp")
endif()

# LLVM's archives are built without exceptions; nothing may throw through their frames.
add_library(ptcNoExceptions INTERFACE)
target_compile_options(ptcNoExceptions INTERFACE -fno-exceptions)

# ptc_sources(<variable> <folder> [EXCLUDE <regex>]): the folder's .cpp files, recursively.
function(ptc_sources variable folder)
  cmake_parse_arguments(arg "" "EXCLUDE" "" ${ARGN})
  file(GLOB_RECURSE found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
  if(arg_EXCLUDE)
    list(FILTER found EXCLUDE REGEX "${arg_EXCLUDE}")
  endif()
  if(NOT found)
    string(MAKE_C_IDENTIFIER "${folder}" stem)
    set(found ${PROJECT_BINARY_DIR}/empty/${stem}.cpp)
    file(CONFIGURE OUTPUT ${found} CONTENT "")
  endif()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

# ptc_library(<name> SOURCES ... [LINK ...]): a static library compiled without exceptions.
function(ptc_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC ptcSettings ${arg_LINK} PRIVATE ptcNoExceptions)
  add_dependencies(${name} ptcGenerated)
  if(PTC_PCH)
    target_precompile_headers(${name} REUSE_FROM ptcPch)
  endif()
endfunction()

# The precompiled header, once without exceptions (libraries) and once with (cli, tests): clang refuses to mix them.
if(PTC_PCH)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/empty/Pch.cpp CONTENT "")
  foreach(pch ptcPch ptcPchExceptions)
    add_library(${pch} STATIC ${PROJECT_BINARY_DIR}/empty/Pch.cpp)
    target_link_libraries(${pch} PUBLIC ptcSettings)
    target_precompile_headers(${pch} PRIVATE ${PROJECT_SOURCE_DIR}/compiler/cmake/Pch.h)
  endforeach()
  target_link_libraries(ptcPch PRIVATE ptcNoExceptions)
  # Its users are programs, which cmake compiles with -fPIE.
  set_target_properties(ptcPchExceptions PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(ptcPchExceptions PRIVATE -fPIE)
endif()
