# Builds examples/ocr outside of the tree with an installed Tessera, and reads the lines beside it. Arguments: PREFIX (the installed tree),
# SOURCE (the example), WORK (a folder to make), GENERATOR (of CMake), MODEL (what ./tessera ocr fetches), PYTHON, and
# EXPORT_PYTHON (that has onnx, where it was fetched).
if(NOT EXISTS "${MODEL}/model.safetensors")
  message("skipped: not installed: ${MODEL}, ./tessera ocr fetches it")
  return()
endif()
include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")

file(REMOVE_RECURSE "${WORK}")
file(COPY "${SOURCE}/" DESTINATION "${WORK}/ocr")
file(GLOB_RECURSE package "${PREFIX}/TesseraConfig.cmake")
cmake_path(GET package PARENT_PATH package)
run("configuring" "${CMAKE_COMMAND}" -S "${WORK}/ocr" -G "${GENERATOR}" -B "${WORK}/build" "-DTessera_DIR=${package}" -DCMAKE_BUILD_TYPE=Release)
run("building" "${CMAKE_COMMAND}" --build "${WORK}/build" --parallel 2)
run("reading" "${PYTHON}" "${CMAKE_CURRENT_LIST_DIR}/ocr_lines.py" "${WORK}/build/ocr" "${MODEL}" "${WORK}/ocr/lines")

# A picture of another kind, and one that is cut short.
file(WRITE "${WORK}/line.png" "\\x89PNG")
file(WRITE "${WORK}/short.pgm" "P5\n# a comment\n400 48\n255\n....")
foreach(wrong IN ITEMS "line.png|expected a PGM or PPM picture" "short.pgm|is cut short")
  string(REPLACE "|" ";" wrong "${wrong}")
  list(GET wrong 0 name)
  list(GET wrong 1 expected)
  execute_process(COMMAND "${WORK}/build/ocr" "${MODEL}" "${WORK}/${name}" RESULT_VARIABLE result ERROR_VARIABLE errors)
  string(FIND "${errors}" "${expected}" at)
  if(result EQUAL 0 OR at EQUAL -1)
    message(FATAL_ERROR "expected '${expected}', got\n${errors}")
  endif()
endforeach()
# The graph of another network, which the same wheel has.
if(EXISTS "${EXPORT_PYTHON}")
  execute_process(COMMAND "${EXPORT_PYTHON}" "${WORK}/ocr/export.py" "${MODEL}/../rapidocr/ch_PP-OCRv4_det_infer.onnx" "${WORK}/other"
    RESULT_VARIABLE result ERROR_VARIABLE errors)
  string(FIND "${errors}" "error[ocr.graph]: expected " at)
  if(result EQUAL 0 OR at EQUAL -1)
    message(FATAL_ERROR "expected error[ocr.graph], got\n${errors}")
  endif()
endif()
file(REMOVE_RECURSE "${WORK}")
