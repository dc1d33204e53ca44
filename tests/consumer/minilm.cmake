# Builds examples/minilm against an installed Tessera outside of the tree, verifies its programs at small extents, and compares the
# application with others, where its model is there. Arguments: PREFIX (the installed tree), SOURCE (the checkout), WORK (a folder to
# make), GENERATOR (of CMake), PYTHON (with NumPy), MODEL (the folder of the model).
include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")

file(REMOVE_RECURSE "${WORK}")
file(GLOB_RECURSE package "${PREFIX}/TesseraConfig.cmake")
cmake_path(GET package PARENT_PATH package)
file(COPY "${SOURCE}/examples/minilm/" DESTINATION "${WORK}/minilm")
run("configuring" "${CMAKE_COMMAND}" -S "${WORK}/minilm" -G "${GENERATOR}" -B "${WORK}/build" "-DTessera_DIR=${package}"
  "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror")
run("building" "${CMAKE_COMMAND}" --build "${WORK}/build" --parallel 2)
# verify(<words>): at one small shape, by bits.
macro(verify)
  run("verifying ${ARGV}" "${WORK}/build/minilm_generator" verify ${ARGV} --option heads=2 --shape L=2 D=24 F=50 V=7 P=9 --extents B=3 T=7
    --schedule-dir "${WORK}/minilm/schedules")
endmacro()
verify(sentence_embedding)
verify(sentence_embedding --numerics bf16)
verify(sentence_embedding --numerics int8)
if(NOT EXISTS "${MODEL}/model.safetensors")
  message("skipped: not installed: the model, ./tessera demo fetches it")
  return()
endif()
run("comparing" "${PYTHON}" "${SOURCE}/tests/minilm/check.py" "${WORK}/build/minilm" "${MODEL}")
message("${output}")
file(REMOVE_RECURSE "${WORK}")
