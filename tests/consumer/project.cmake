# Builds a project of this folder outside of the tree, with an installed Tessera, and runs its test. Arguments: PREFIX (the
# installed tree), SOURCE (the project), WORK (a folder to make), GENERATOR (of CMake), OPTIONS (for CMake), NEEDS (programs and
# libraries, as they were found or not), PACKAGES (what to say where one was not), TARGETS (of row_softmax, best first), ARCH (of
# the target that product has by default).
foreach(needed IN LISTS NEEDS)
  if(NOT EXISTS "${needed}")
    message("skipped: not installed: ${PACKAGES}")
    return()
  endif()
endforeach()
include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")

file(REMOVE_RECURSE "${WORK}")
file(GLOB_RECURSE package "${PREFIX}/TesseraConfig.cmake")
cmake_path(GET package PARENT_PATH package)
list(JOIN TARGETS "\;" targets)
run("configuring" "${CMAKE_COMMAND}" -S "${SOURCE}" -G "${GENERATOR}" -B "${WORK}/build" "-DTessera_DIR=${package}" -DCMAKE_BUILD_TYPE=Release
  "-DROW_SOFTMAX_TARGETS=${targets}" ${OPTIONS})
run("building" "${CMAKE_COMMAND}" --build "${WORK}/build" --parallel 2)
run("the app" "${CMAKE_CTEST_COMMAND}" --test-dir "${WORK}/build" --output-on-failure)
file(READ "${WORK}/build/tessera/product/product.manifest.json" manifest)
string(JSON arch GET "${manifest}" targets 0 arch)
if(NOT arch STREQUAL ARCH)
  message(FATAL_ERROR "the target of the product is of ${arch}")
endif()
file(READ "${WORK}/build/tessera/row_softmax/row_softmax.manifest.json" manifest)
string(JSON best GET "${manifest}" targets 0 name)
list(GET TARGETS 0 expected)
if(NOT best STREQUAL expected)
  message(FATAL_ERROR "the best target is ${best}")
endif()
file(REMOVE_RECURSE "${WORK}")
