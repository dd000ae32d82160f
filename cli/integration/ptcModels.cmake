# Models in a CMake project. Needs CMake 3.20, a Ninja or Makefile generator, and C or C++ among the project's languages.
#
#   ptc_add_model(NAME MODEL FILE.onnx        a target NAME to link against, which brings NAME.h and NAME.hpp
#     [TYPE SHARED|STATIC|OBJECT]             SHARED: NAME.so, STATIC: libNAME.a, OBJECT: in what links it
#     [CPU LEVEL...] [GPU ARCH...]            one or both; default: the levels of CMAKE_SYSTEM_PROCESSOR
#     [DIMS batch=1..64:8...] [SHAPES x=1x3x48x320...] [ALIASES state=stateN...]
#     [WEIGHTS embed|file|none] [THREADS pool|openmp|none] [C_NAME PREFIX] [MODE MODE] [TUNE_FILE FILE]
#     [OPTIONS FLAG...] [DEPENDS FILE...])    any other flag of `ptc compile`; what the model is made from
#   ptc_add_verify_test(NAME [DATA DIR...] [OPTIONS FLAG...])   tests NAME.verify: results against a reference
#   ptc_add_bench(NAME [OPTIONS FLAG...])                       a target NAME.bench that measures
#   ptc_add_gate(NAME [BASELINE FILE] [OPTIONS FLAG...])        a test NAME.gate: its kernels are as FILE, which is
#                                                               gates/NAME.json, says
#   ptc_add_gate_update(NAME [BASELINE FILE] [OPTIONS FLAG...]) a target NAME.gate-update, part of gate-update, that
#                                                               records FILE, or updates it
#
# How a model becomes a target. One custom command compiles it into the folder NAME.ptc; its OUTPUT is a stamp, and the
# files are by-products: ptc leaves files alone whose bytes have not changed, so nothing that uses them is rebuilt then,
# and the stamp alone says that there is nothing to do. A static library is CMake's own archive of ptc's object. A
# shared one is a target whose only "object" is the library that ptc wrote, and whose link command is replaced by one
# that puts it in its place (ptcPlaceLibrary.cmake). So both are targets of the usual kind: $<TARGET_FILE>, install()
# and export sets work. An object is an interface library that brings the file.
include_guard(GLOBAL)

set(_ptc_place "${CMAKE_CURRENT_LIST_DIR}/ptcPlaceLibrary.cmake")
set_property(GLOBAL PROPERTY PTC_PLACE_SCRIPT "${_ptc_place}")
unset(_ptc_place)

function(_ptc_fail text)
  message(FATAL_ERROR "${PTC_FUNCTION}: ${text}")
endfunction()

# After cmake_parse_arguments with the prefix `arg`.
macro(_ptc_check_arguments keywords)
  if(DEFINED arg_UNPARSED_ARGUMENTS)
    _ptc_fail("'${arg_UNPARSED_ARGUMENTS}' belongs to no keyword; there are ${keywords}")
  endif()
  if(DEFINED arg_KEYWORDS_MISSING_VALUES)
    _ptc_fail("no value behind ${arg_KEYWORDS_MISSING_VALUES}")
  endif()
endmacro()

# The levels of the processor that the project is built for: none where they are ptc's default.
function(_ptc_default_levels result)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64|x86-64)$")
    set(levels "")
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
    set(levels aarch64)
  else()
    _ptc_fail("ptc has no code for CMAKE_SYSTEM_PROCESSOR '${CMAKE_SYSTEM_PROCESSOR}'; there are x86_64 and aarch64")
  endif()
  set(${result} "${levels}" PARENT_SCOPE)
endfunction()

# What decides the code: flags that `compile`, `verify` and `gate` have in common.
function(_ptc_code_flags result)
  set(flags "")
  if(arg_GPU)
    list(JOIN arg_GPU "," architectures)
    if(arg_CPU)
      list(APPEND flags --target=cpu,cuda) # one library, which runs on either
    else()
      list(APPEND flags --target=cuda)
    endif()
    list(APPEND flags --gpu=${architectures})
  endif()
  if(NOT arg_CPU AND NOT arg_GPU AND NOT "${arg_OPTIONS}" MATCHES "(^|;)--(cpu|target)[=;]")
    _ptc_default_levels(arg_CPU)
  endif()
  if(arg_CPU)
    list(JOIN arg_CPU "," levels)
    list(APPEND flags --cpu=${levels})
  endif()
  foreach(pair DIMS=dim SHAPES=shape ALIASES=alias THREADS=threads MODE=mode TUNE_FILE=tune-file)
    string(REGEX MATCH "^(.*)=(.*)$" pair "${pair}")
    set(flag "${CMAKE_MATCH_2}")
    foreach(value IN LISTS arg_${CMAKE_MATCH_1})
      list(APPEND flags "--${flag}=${value}")
    endforeach()
  endforeach()
  set(${result} "${flags}" PARENT_SCOPE)
endfunction()

# OPTIONS with the paths of response files made absolute: the command runs in another folder.
function(_ptc_absolute_options result)
  set(options "")
  foreach(option IN LISTS arg_OPTIONS)
    if(option MATCHES "^@(.+)$")
      get_filename_component(path "${CMAKE_MATCH_1}" ABSOLUTE)
      set(option "@${path}")
    endif()
    list(APPEND options "${option}")
  endforeach()
  set(${result} "${options}" PARENT_SCOPE)
endfunction()

# Libraries of the system that a model linked into a program needs. glibc 2.34 and newer have all in libc.
function(_ptc_system_libraries result flags)
  if("${flags}" MATCHES "(^|;)--threads=openmp(;|$)")
    set(libraries gomp)
  elseif("${flags}" MATCHES "(^|;)--threads=none(;|$)")
    set(libraries "")
  else()
    set(libraries pthread)
  endif()
  set(${result} "${libraries}" PARENT_SCOPE)
endfunction()

function(_ptc_add_library name type folder weights)
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if(type STREQUAL "OBJECT")
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE "$<BUILD_INTERFACE:${folder}/${name}.o>")
  elseif("CXX" IN_LIST languages OR "C" IN_LIST languages)
    set(file "${folder}/${name}.o")
    if(type STREQUAL "SHARED")
      set(file "${folder}/${name}.so")
    endif()
    set_source_files_properties("${file}" PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
    add_library(${name} ${type} "${file}")
    set(language C)
    if("CXX" IN_LIST languages)
      set(language CXX)
    endif()
    set_target_properties(${name} PROPERTIES LINKER_LANGUAGE ${language}
      PUBLIC_HEADER "${folder}/${name}.h;${folder}/${name}.hpp")
  else()
    _ptc_fail("a ${type} model needs C or CXX among the project's languages")
  endif()
  if(type STREQUAL "SHARED")
    # The file's own name is its soname. It has no run path to edit, and nothing to strip.
    get_property(script GLOBAL PROPERTY PTC_PLACE_SCRIPT)
    set_target_properties(${name} PROPERTIES PREFIX "" DEBUG_POSTFIX "" SKIP_BUILD_RPATH TRUE INSTALL_RPATH ""
      INSTALL_RPATH_USE_LINK_PATH FALSE INTERPROCEDURAL_OPTIMIZATION FALSE LINK_WHAT_YOU_USE FALSE RULE_LAUNCH_LINK
      "\"${CMAKE_COMMAND}\" \"-DFROM=${file}\" \"-DWEIGHTS=${weights}\" -DTO=<TARGET> -P \"${script}\" --")
    if(weights)
      set_target_properties(${name} PROPERTIES RESOURCE "${weights}")
    endif()
  endif()
  set(include include) # where install() puts PUBLIC_HEADER
  if(CMAKE_INSTALL_INCLUDEDIR)
    set(include "${CMAKE_INSTALL_INCLUDEDIR}")
  endif()
  target_include_directories(${name} INTERFACE "$<BUILD_INTERFACE:${folder}>" "$<INSTALL_INTERFACE:${include}>")
endfunction()

function(ptc_add_model name)
  set(PTC_FUNCTION "ptc_add_model(${name})")
  set(single MODEL TYPE C_NAME WEIGHTS THREADS MODE TUNE_FILE)
  set(multiple CPU GPU DIMS SHAPES ALIASES OPTIONS DEPENDS)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "${single}" "${multiple}")
  string(REPLACE ";" ", " keywords "${single};${multiple}")
  _ptc_check_arguments("${keywords}")
  if(NOT arg_MODEL)
    _ptc_fail("MODEL is missing: the ONNX file")
  endif()
  if(NOT arg_TYPE)
    set(arg_TYPE SHARED)
  endif()
  set(kind_SHARED so)
  set(kind_STATIC o)
  set(kind_OBJECT o)
  if(NOT DEFINED kind_${arg_TYPE})
    _ptc_fail("unknown TYPE '${arg_TYPE}'; there are SHARED, STATIC and OBJECT")
  endif()
  if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
    _ptc_fail("ptc writes libraries for Linux, not for CMAKE_SYSTEM_NAME '${CMAKE_SYSTEM_NAME}'")
  endif()
  if(TARGET ${name})
    _ptc_fail("there is a target of this name already")
  endif()
  set(kind ${kind_${arg_TYPE}})
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${name}.ptc")
  get_filename_component(model "${arg_MODEL}" ABSOLUTE)
  if(arg_TUNE_FILE)
    get_filename_component(arg_TUNE_FILE "${arg_TUNE_FILE}" ABSOLUTE)
  endif()
  if(NOT arg_C_NAME)
    string(MAKE_C_IDENTIFIER "${name}" arg_C_NAME)
    get_property(other GLOBAL PROPERTY PTC_C_NAME_${arg_C_NAME})
    if(other)
      _ptc_fail("its C names would be those of '${other}', ${arg_C_NAME}_...; C_NAME gives it others")
    endif()
  endif()
  set_property(GLOBAL PROPERTY PTC_C_NAME_${arg_C_NAME} ${name})
  _ptc_code_flags(code)
  _ptc_absolute_options(options)
  set(flags ${code} ${options})
  set(weights "")
  if(arg_WEIGHTS)
    list(APPEND flags --weights=${arg_WEIGHTS})
  endif()
  if("${flags}" MATCHES "(^|;)--weights=file(;|$)")
    set(weights "${folder}/${name}.weights")
  endif()

  file(MAKE_DIRECTORY "${folder}")
  get_target_property(program ptc::ptc IMPORTED_LOCATION)
  set(files "${folder}/${name}.${kind}" "${folder}/${name}.h" "${folder}/${name}.hpp" "${folder}/${name}.json" ${weights})
  set(stamp "${folder}/${name}.stamp")
  get_filename_component(file "${model}" NAME)
  add_custom_command(OUTPUT "${stamp}" BYPRODUCTS ${files}
    COMMAND "${program}" compile "${model}" -o "${folder}/${name}.${kind}" --emit=${kind},h,hpp,json --name=${arg_C_NAME}
            -MD -MF "${folder}/${name}.d" -MT "${stamp}" ${flags}
    COMMAND "${CMAKE_COMMAND}" -E touch "${stamp}"
    DEPENDS "${model}" "${program}" ${arg_TUNE_FILE} ${arg_DEPENDS} DEPFILE "${folder}/${name}.d"
    COMMENT "Compiling ${file} with ptc: ${name}.${kind}" VERBATIM COMMAND_EXPAND_LISTS)
  add_custom_target(${name}.ptc DEPENDS "${stamp}")
  _ptc_add_library(${name} ${arg_TYPE} "${folder}" "${weights}")
  add_dependencies(${name} ${name}.ptc)
  if(NOT arg_TYPE STREQUAL "SHARED")
    _ptc_system_libraries(libraries "${flags}")
    target_link_libraries(${name} INTERFACE ${libraries})
  endif()
  set_target_properties(${name} PROPERTIES PTC_MODEL "${model}" PTC_TYPE ${arg_TYPE} PTC_FLAGS "${code};${options}"
    PTC_C_NAME ${arg_C_NAME} PTC_MANIFEST "${folder}/${name}.json")
endfunction()

# `model` and `flags` of the target; flags that say what is written where are left out.
macro(_ptc_read_model)
  if(NOT TARGET ${name})
    _ptc_fail("no such target; ptc_add_model makes it")
  endif()
  get_target_property(model ${name} PTC_MODEL)
  get_target_property(flags ${name} PTC_FLAGS)
  get_target_property(type ${name} PTC_TYPE)
  if(NOT model)
    _ptc_fail("not a target of ptc_add_model")
  endif()
  list(FILTER flags EXCLUDE REGEX "^(--(weights|stats|time-trace|save-temps)=|--remarks|$)")
  get_target_property(program ptc::ptc IMPORTED_LOCATION)
endmacro()

function(ptc_add_verify_test name)
  set(PTC_FUNCTION "ptc_add_verify_test(${name})")
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DATA;OPTIONS")
  _ptc_check_arguments("DATA and OPTIONS")
  _ptc_read_model()
  set(tests ${name}.verify)
  if(arg_DATA)
    set(tests "")
    foreach(folder IN LISTS arg_DATA)
      get_filename_component(path "${folder}" ABSOLUTE)
      get_filename_component(last "${path}" NAME)
      list(APPEND tests ${name}.verify.${last})
      set(data_${name}.verify.${last} --data "${path}")
    endforeach()
  endif()
  foreach(test IN LISTS tests)
    add_test(NAME ${test} COMMAND "${program}" verify "${model}" ${flags} ${data_${test}} ${arg_OPTIONS} COMMAND_EXPAND_LISTS)
    set_tests_properties(${test} PROPERTIES SKIP_RETURN_CODE 77)
  endforeach()
endfunction()

function(ptc_add_bench name)
  set(PTC_FUNCTION "ptc_add_bench(${name})")
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "OPTIONS")
  _ptc_check_arguments("OPTIONS")
  _ptc_read_model()
  if(NOT type STREQUAL "SHARED")
    _ptc_fail("ptc measures libraries that it can load: TYPE SHARED")
  endif()
  add_custom_target(${name}.bench COMMAND "${program}" bench $<TARGET_FILE:${name}> ${arg_OPTIONS} DEPENDS ${name}
    USES_TERMINAL VERBATIM COMMAND_EXPAND_LISTS)
endfunction()

# `baseline`: the file that BASELINE names.
macro(_ptc_read_baseline)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "BASELINE" "OPTIONS")
  _ptc_check_arguments("BASELINE and OPTIONS")
  _ptc_read_model()
  if(NOT arg_BASELINE)
    set(arg_BASELINE gates/${name}.json)
  endif()
  get_filename_component(baseline "${arg_BASELINE}" ABSOLUTE)
endmacro()

function(ptc_add_gate name)
  set(PTC_FUNCTION "ptc_add_gate(${name})")
  _ptc_read_baseline()
  add_test(NAME ${name}.gate COMMAND "${program}" gate check "${baseline}" "--model=${model}" ${flags} ${arg_OPTIONS}
    COMMAND_EXPAND_LISTS)
endfunction()

function(ptc_add_gate_update name)
  set(PTC_FUNCTION "ptc_add_gate_update(${name})")
  _ptc_read_baseline()
  string(CONCAT script [[ptc=$1 && model=$2 && shift 2 && ]]
    [[test -e "$0" && exec "$ptc" gate update "$0" --model="$model" "$@" || ]]
    [[mkdir -p "${0%/*}" && exec "$ptc" gate record "$model" -o "$0" "$@"]]) # no ';': it would end a list's element
  add_custom_target(${name}.gate-update VERBATIM COMMAND_EXPAND_LISTS
    COMMAND sh -c "${script}" "${baseline}" "${program}" "${model}" ${flags} ${arg_OPTIONS})
  if(NOT TARGET gate-update)
    add_custom_target(gate-update)
  endif()
  add_dependencies(gate-update ${name}.gate-update)
endfunction()
