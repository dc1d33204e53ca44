# Generates two kernels with what pkg-config says of a moved install tree, and builds an application without CMake. Arguments: PREFIX
# (the installed tree), SOURCE (this folder), WORK (a folder to make), CC.
include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")

find_program(PKG_CONFIG NAMES pkg-config pkgconf REQUIRED)
file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")
file(GLOB_RECURSE pc "${PREFIX}/tessera.pc")
cmake_path(GET pc PARENT_PATH folder)
set(ENV{PKG_CONFIG_PATH} "${folder}")
set(ENV{CC} "${CC}")
set(ENV{PKG_CONFIG} "${PKG_CONFIG}")
run("the build" sh -ec [[
  eval "generator=$("$PKG_CONFIG" --variable=generator tessera)"
  "$generator" generate matmul --name product --target x86-64,avx2 --quiet --out .
  "$generator" generate softmax --name row_softmax --target x86-64,avx2,avx512 --quiet --out .
  eval "\"$CC\" -std=c11 -O1 -I. -o app \"$1/app.c\" libproduct.a librow_softmax.a $("$PKG_CONFIG" --cflags --libs tessera)"
  ./app
]] sh "${SOURCE}" WORKING_DIRECTORY "${WORK}")
file(REMOVE_RECURSE "${WORK}")
