# Builds examples/reader outside of the tree with an installed Tessera, and reads a page by its program in C and by NumPy: the same text,
# the expected one, and the same bits. Arguments: PREFIX (the installed tree), SOURCE (the folder examples), WORK (a folder to make),
# GENERATOR (of CMake), MODELS (what ./tessera reader fetches), PYTHON (that has NumPy and finds the package tessera).
if(NOT EXISTS "${MODELS}/ch_PP-OCRv4_det_infer.onnx")
  message("skipped: not installed: ${MODELS}, ./tessera reader fetches it")
  return()
endif()
include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")

file(REMOVE_RECURSE "${WORK}")
file(COPY "${SOURCE}/reader" DESTINATION "${WORK}")
file(GLOB_RECURSE package "${PREFIX}/TesseraConfig.cmake")
cmake_path(GET package PARENT_PATH package)
run("configuring" "${CMAKE_COMMAND}" -S "${WORK}/reader" -G "${GENERATOR}" -B "${WORK}/build" "-DTessera_DIR=${package}"
  "-DMODELS=${MODELS}" "-DCMAKE_C_FLAGS=-Wall -Wextra -Wpedantic -Werror")
run("building" "${CMAKE_COMMAND}" --build "${WORK}/build" --parallel 2)

# A fourth line of examples/ocr, "ubp utiuq", would be letters too when it is turned.
set(lines "${SOURCE}/ocr/lines/line0.ppm" "${SOURCE}/ocr/lines/line1.ppm" "${SOURCE}/ocr/lines/line2.ppm")
set(page "${WORK}/page.ppm")
run("composing" "${PYTHON}" "${CMAKE_CURRENT_LIST_DIR}/reader_page.py" "${page}" ${lines})
run("reading by C" "${WORK}/build/read" "${WORK}/build/reader.tess" "${page}")
set(by_c "${output}")
set(box "[0-9]+ [0-9]+ [0-9]+ [0-9]+")
string(REPEAT "[0-9a-f]" 64 hash)
if(NOT by_c MATCHES "^${box} upright 8684849\n${box} turned vcju EROFmaE\n${box} upright IGU\nsha256 ${hash}\n$")
  message(FATAL_ERROR "expected three lines of text, the second turned, got\n${by_c}")
endif()
run("reading by Python" "${PYTHON}" "${WORK}/reader/read.py" "${WORK}/build/libpage.so" "${WORK}/build/reader.tess" "${page}")
if(NOT output STREQUAL by_c)
  message(FATAL_ERROR "C and Python differ:\n${by_c}\n${output}")
endif()

# A picture that is cut short, a page that is missing, and a bundle that is none.
file(WRITE "${WORK}/short.ppm" "P6\n400 48\n255\n....")
foreach(wrong IN ITEMS "reader.tess|short.ppm|reader.page" "reader.tess|none.ppm|reader.page" "read|page.ppm|reader.bundle")
  string(REPLACE "|" ";" wrong "${wrong}")
  list(GET wrong 0 bundle)
  list(GET wrong 1 picture)
  list(GET wrong 2 expected)
  execute_process(COMMAND "${WORK}/build/read" "${WORK}/build/${bundle}" "${WORK}/${picture}" RESULT_VARIABLE result ERROR_VARIABLE errors)
  string(FIND "${errors}" "error[${expected}]: " at)
  if(NOT result EQUAL 1 OR at EQUAL -1)
    message(FATAL_ERROR "expected error[${expected}] and 1, got ${result} and\n${errors}")
  endif()
endforeach()
file(REMOVE_RECURSE "${WORK}")
