# Generates two kernels with what pkg-config says of a moved install tree, and builds an application without CMake: with libraries, with
# C, and where OpenCL is there, with a kernel for it. Arguments: PREFIX (the installed tree), SOURCE (this folder), WORK (a folder to
# make), CC, OPENCL (its library, as it was found or not).
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
  mkdir c
  "$generator" generate matmul --name product --target x86-64 --emit c --quiet --out c
  eval "\"$CC\" -std=c11 -O1 -Wno-psabi -c -o c/product.o c/product.c $("$PKG_CONFIG" --cflags tessera)"
  eval "\"$CC\" -std=c11 -O1 -I. -o c/app \"$1/app.c\" c/product.o librow_softmax.a $("$PKG_CONFIG" --cflags --libs tessera)"
  c/app
]] sh "${SOURCE}" WORKING_DIRECTORY "${WORK}")
if(EXISTS "${OPENCL}")
  run("the build for OpenCL" sh -ec [[
    eval "generator=$("$PKG_CONFIG" --variable=generator tessera)"
    mkdir opencl
    "$generator" generate matmul --name product --target opencl --quiet --out opencl
    "$generator" generate softmax --name row_softmax --target opencl --quiet --out opencl
    for kernel in product row_softmax
    do
      eval "\"$CC\" -std=c99 -O1 -c -o opencl/$kernel.o opencl/$kernel.c $("$PKG_CONFIG" --cflags tessera)"
    done
    for source in gpu opencl
    do
      eval "\"$CC\" -std=c99 -O1 -c -o opencl/$source.o $("$PKG_CONFIG" --variable=gpu tessera)/$source.c $("$PKG_CONFIG" --cflags tessera)"
    done
    eval "\"$CC\" -std=c11 -O1 -Iopencl -o opencl/app \"$1/opencl/app.c\" opencl/product.o opencl/row_softmax.o opencl/gpu.o opencl/opencl.o $("$PKG_CONFIG" --cflags --libs tessera) \"$2\""
    opencl/app
  ]] sh "${SOURCE}" "${OPENCL}" WORKING_DIRECTORY "${WORK}")
endif()
file(REMOVE_RECURSE "${WORK}")
