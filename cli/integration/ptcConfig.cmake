# find_package(ptc): the program as ptc::ptc, and functions that build models with it (ptcModels.cmake).
#
# ptc is a program of the machine that builds, whatever the target is: it is looked for beside this file, then on the
# machine's own paths, never below CMAKE_FIND_ROOT_PATH. PTC_EXECUTABLE names another one.
if(CMAKE_VERSION VERSION_LESS 3.20)
  set(ptc_FOUND FALSE)
  set(ptc_NOT_FOUND_MESSAGE "ptc's CMake package needs CMake 3.20 (dependency files of custom commands)")
  return()
endif()
cmake_policy(PUSH)
cmake_policy(VERSION 3.20)

if(NOT PTC_EXECUTABLE)
  get_filename_component(_ptc_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
  if(EXISTS "${_ptc_prefix}/bin/ptc")
    set(_ptc_program "${_ptc_prefix}/bin/ptc") # not cached: follows a prefix that moves
  else()
    find_program(PTC_EXECUTABLE ptc NO_CMAKE_FIND_ROOT_PATH DOC "the program ptc")
    set(_ptc_program "${PTC_EXECUTABLE}")
  endif()
  unset(_ptc_prefix)
else()
  set(_ptc_program "${PTC_EXECUTABLE}")
endif()

if(NOT EXISTS "${_ptc_program}")
  set(ptc_FOUND FALSE)
  set(ptc_NOT_FOUND_MESSAGE "there is no program ptc at '${_ptc_program}'; set PTC_EXECUTABLE to where it is")
else()
  if(NOT TARGET ptc::ptc)
    add_executable(ptc::ptc IMPORTED GLOBAL)
    set_target_properties(ptc::ptc PROPERTIES IMPORTED_LOCATION "${_ptc_program}")
  endif()
  include("${CMAKE_CURRENT_LIST_DIR}/ptcModels.cmake")
endif()
unset(_ptc_program)
cmake_policy(POP)
