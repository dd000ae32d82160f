# ONNX's C++ library (protobuf schema, checker, operator schemas with their function bodies), built once
# per dependency folder and shared by every build folder that names the same PTC_DEPS_DIR.
#
# Debian's own package is too old for today's models, so the source package comes from PyPI. pip must prepare
# a package's metadata before it hands out the archive, and ONNX's build wants a newer CMake for that than
# Debian has: pip's isolated build environment brings one along, so isolation stays on. The library itself
# builds with CMake 3.25 once the version line is lowered. It is linked against Debian's static protobuf.
#
# The installed folder's name carries everything that decides its content; a finished build is marked by the
# rename of a staging folder, so an interrupted build leaves nothing that looks finished.

set(PTC_ONNX_VERSION 1.23.2)

find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
set(Protobuf_USE_STATIC_LIBS ON)
find_package(Protobuf REQUIRED)

string(SHA256 key "${PTC_ONNX_VERSION};${Protobuf_VERSION};${CMAKE_CXX_COMPILER_ID};${CMAKE_CXX_COMPILER_VERSION};${CMAKE_SYSTEM_PROCESSOR}")
string(SUBSTRING ${key} 0 12 key)
set(PTC_ONNX_PREFIX ${PTC_DEPS_DIR}/onnx-${PTC_ONNX_VERSION}-${key})

function(ptc_run)
  cmake_parse_arguments(arg "" "WHAT;IN" "COMMAND" ${ARGN})
  execute_process(COMMAND ${arg_COMMAND} WORKING_DIRECTORY ${arg_IN}
    RESULT_VARIABLE rc OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT rc EQUAL 0)
    message(FATAL_ERROR "${arg_WHAT} failed:\n${out}")
  endif()
endfunction()

function(ptc_build_onnx)
  file(MAKE_DIRECTORY ${PTC_DEPS_DIR})
  file(LOCK ${PTC_DEPS_DIR}/onnx.lock GUARD FUNCTION TIMEOUT 1800)
  if(EXISTS ${PTC_ONNX_PREFIX}/lib/libonnx.a)
    return()
  endif()
  set(src ${PTC_DEPS_DIR}/onnx-${PTC_ONNX_VERSION})
  set(archive ${src}.tar.gz)
  if(NOT EXISTS ${archive})
    message(STATUS "fetching the source package onnx ${PTC_ONNX_VERSION}")
    ptc_run(WHAT "pip download onnx" IN ${PTC_DEPS_DIR} COMMAND
      ${Python3_EXECUTABLE} -m pip download --quiet --no-binary onnx --no-deps -d ${PTC_DEPS_DIR} onnx==${PTC_ONNX_VERSION})
  endif()
  file(REMOVE_RECURSE ${src} ${src}-build ${src}-stage)
  file(ARCHIVE_EXTRACT INPUT ${archive} DESTINATION ${PTC_DEPS_DIR})
  file(READ ${src}/CMakeLists.txt text)
  string(REPLACE "cmake_minimum_required(VERSION 3.26)" "cmake_minimum_required(VERSION 3.25)" text "${text}")
  file(WRITE ${src}/CMakeLists.txt "${text}")
  message(STATUS "building libonnx.a once in ${PTC_ONNX_PREFIX} (2-4 minutes)")
  ptc_run(WHAT "configuring onnx" IN ${PTC_DEPS_DIR} COMMAND
    ${CMAKE_COMMAND} -G Ninja -S ${src} -B ${src}-build -DCMAKE_BUILD_TYPE=Release
    -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} -DCMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER}
    "-DCMAKE_CXX_FLAGS=-ffunction-sections -fdata-sections"
    -DONNX_BUILD_PYTHON=OFF -DONNX_INSTALL=ON -DProtobuf_USE_STATIC_LIBS=ON
    -DCMAKE_INSTALL_LIBDIR=lib -DPython3_EXECUTABLE=${Python3_EXECUTABLE} -DCMAKE_INSTALL_PREFIX=${src}-stage)
  ptc_run(WHAT "building onnx" IN ${PTC_DEPS_DIR} COMMAND ${CMAKE_COMMAND} --build ${src}-build -j 2)
  ptc_run(WHAT "installing onnx" IN ${PTC_DEPS_DIR} COMMAND ${CMAKE_COMMAND} --install ${src}-build)
  file(RENAME ${src}-stage ${PTC_ONNX_PREFIX})
  file(REMOVE_RECURSE ${src} ${src}-build)
endfunction()

if(NOT EXISTS ${PTC_ONNX_PREFIX}/lib/libonnx.a)
  ptc_build_onnx()
endif()

# Operator schemas register themselves in static constructors, which a linker drops from an archive unless
# something refers to them; ONNX's own OpSet_*_ver headers do, through RegisterOnnxOperatorSetSchema().
add_library(ptc_onnx STATIC IMPORTED)
set_target_properties(ptc_onnx PROPERTIES IMPORTED_LOCATION ${PTC_ONNX_PREFIX}/lib/libonnx.a)
target_include_directories(ptc_onnx SYSTEM INTERFACE ${PTC_ONNX_PREFIX}/include ${Protobuf_INCLUDE_DIRS})
target_compile_definitions(ptc_onnx INTERFACE ONNX_ML=1 ONNX_NAMESPACE=onnx)
target_link_libraries(ptc_onnx INTERFACE ${Protobuf_LIBRARY})
