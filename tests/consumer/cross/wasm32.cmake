# A toolchain file for WebAssembly, with clang and wasi-libc; programs run under node.
set(CMAKE_SYSTEM_NAME WASI)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
set(CMAKE_C_COMPILER clang)
set(CMAKE_C_COMPILER_TARGET wasm32-wasi)
# CMake 3.25 has no file for WASI.
list(APPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}/modules")
# Kernels keep arrays on the stack, of which a program has 64 KiB unless it asks for more.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,-z,stack-size=1048576")
find_program(NODE node REQUIRED)
set(CMAKE_CROSSCOMPILING_EMULATOR "${NODE}" --no-warnings --experimental-wasi-unstable-preview1
  "${CMAKE_CURRENT_LIST_DIR}/../../compiler/wasi.mjs")
