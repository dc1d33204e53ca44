# Imports a network of PP-OCR, builds the example in C that `import` writes beside it with an installed Tessera, and compares its outputs with
# onnxruntime. Arguments: PREFIX (the installed tree), WORK (a folder to make), GENERATOR (of CMake), MODEL (the ONNX file), PYTHON (that has
# onnxruntime).
foreach(needed IN ITEMS "${MODEL}" "${PYTHON}")
  if(NOT EXISTS "${needed}")
    message("skipped: not installed: ${needed}, ./tessera test fetches it")
    return()
  endif()
endforeach()
include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")

file(REMOVE_RECURSE "${WORK}")
file(GLOB_RECURSE package "${PREFIX}/TesseraConfig.cmake")
cmake_path(GET package PARENT_PATH package)
run("importing" "${PREFIX}/bin/tessera-generator" import "${MODEL}" --shape x.2=48 x.3=192 --name angle --out "${WORK}/made")
set(example "${WORK}/made/example")
run("configuring" "${CMAKE_COMMAND}" -S "${example}" -G "${GENERATOR}" -B "${WORK}/build" "-DTessera_DIR=${package}"
  "-DCMAKE_C_FLAGS=-Wall -Wextra -Wpedantic -Wconversion -Werror")
run("building" "${CMAKE_COMMAND}" --build "${WORK}/build" --parallel 2)
run("comparing" "${PYTHON}" "${CMAKE_CURRENT_LIST_DIR}/imported.py" "${WORK}/build/run_angle" "${WORK}/build/angle_bundle.tess" "${WORK}/made"
  "${MODEL}")
message("${output}")
file(REMOVE_RECURSE "${WORK}")
