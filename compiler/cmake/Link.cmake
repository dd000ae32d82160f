# Linking a program of ptc.
#
# dev: against the shared libMLIR and libLLVM. release: the exported MLIR targets would drag in libLLVM.so, so
# the archive files themselves are linked, in one group; lld drops what nothing refers to. Left out are the back
# ends of other processors; lld's library calls the initialisers of all of them, which stubs/ provides, empty.
# The C and C++ run-time libraries are static too but for libc and libm.

set(PTC_STUBS ${PROJECT_SOURCE_DIR}/compiler/cmake/stubs)
set(PTC_TARGETS X86 AArch64 NVPTX)
set(PTC_OTHER_TARGETS AMDGPU ARM AVR BPF Hexagon Lanai LoongArch Mips MSP430 PowerPC RISCV Sparc SPIRV SystemZ
    VE WebAssembly XCore M68k Xtensa)

# The archive behind an imported target, or nothing when it is not one.
function(ptc_archive variable target)
  set(${variable} "" PARENT_SCOPE)
  if(TARGET ${target})
    get_target_property(file ${target} IMPORTED_LOCATION_RELWITHDEBINFO)
    if(file MATCHES "[.]a$")
      set(${variable} ${file} PARENT_SCOPE)
    endif()
  endif()
endfunction()

if(PTC_STATIC)
  set(archives)
  get_property(mlir GLOBAL PROPERTY MLIR_ALL_LIBS)
  list(FILTER mlir EXCLUDE REGEX "CAPI|Test|ExecutionEngine$|ExecutionEngineShared|Runner")
  string(REPLACE ";" "|" others "${PTC_OTHER_TARGETS}")
  set(llvm ${LLVM_AVAILABLE_LIBS})
  list(FILTER llvm EXCLUDE REGEX "^LLVM(${others})[A-Z]|BOLT|Exegesis|Polly|^LLVM$|^LTO$|Remarks$")
  foreach(library lldELF lldCommon ${mlir} ${llvm})
    ptc_archive(file ${library})
    list(APPEND archives ${file})
  endforeach()
  list(APPEND archives ${LLVM_LIBRARY_DIR}/libLLVMRemarks.a) # its exported target is the shared libRemarks
  find_library(PTC_ZSTD libzstd.a REQUIRED)
  find_library(PTC_ZLIB libz.a REQUIRED)

  set(stubs "/* lld initialises every back end; these are not linked in. */\n")
  foreach(target ${PTC_OTHER_TARGETS})
    foreach(part TargetInfo Target TargetMC AsmPrinter AsmParser Disassembler)
      string(APPEND stubs "void LLVMInitialize${target}${part}(void) {}\n")
    endforeach()
  endforeach()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/empty/targets.c CONTENT "${stubs}")

  # Compiled once, linked as objects: they must win over the archives' and libc's own definitions.
  add_library(ptcStubs OBJECT ${PROJECT_BINARY_DIR}/empty/targets.c ${PTC_STUBS}/libc.c ${PTC_STUBS}/polly.cpp)
  target_include_directories(ptcStubs SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
  target_compile_definitions(ptcStubs PRIVATE ${definitions})

  add_library(ptcToolchain INTERFACE)
  target_sources(ptcToolchain INTERFACE $<TARGET_OBJECTS:ptcStubs>)
  target_link_libraries(ptcToolchain INTERFACE -Wl,--start-group ${archives} -Wl,--end-group ${PTC_ZSTD} ${PTC_ZLIB} m)
  target_link_options(ptcToolchain INTERFACE -static-libstdc++ -static-libgcc -Wl,--gc-sections -Wl,--as-needed
    -Wl,-z,relro,-z,now -s)
else()
  add_library(ptcToolchain INTERFACE)
  target_link_libraries(ptcToolchain INTERFACE lldELF lldCommon MLIR LLVM)
endif()

function(ptc_link program)
  target_link_libraries(${program} PRIVATE ptcToolchain)
endfunction()
