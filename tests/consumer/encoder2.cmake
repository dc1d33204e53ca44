# Builds examples/encoder2 outside of the tree with an installed Tessera, and trains with it: its losses are those of a twin in NumPy and float64,
# a run that is killed again and again leaves, byte for byte, what one that is not leaves, and it writes the same with a cache. Arguments: PREFIX (the installed tree), SOURCE
# (the checkout), WORK (a folder to make), GENERATOR (of CMake), PYTHON (that has NumPy).
if(NOT EXISTS "${PYTHON}")
  message("skipped: not installed: ${PYTHON}, ./tessera test fetches it")
  return()
endif()
include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")

file(REMOVE_RECURSE "${WORK}")
file(COPY "${SOURCE}/examples/encoder2" DESTINATION "${WORK}")
file(GLOB_RECURSE package "${PREFIX}/TesseraConfig.cmake")
cmake_path(GET package PARENT_PATH package)
# Loops as they stand are made in seconds; a build for use takes minutes to choose better ones.
run("configuring" "${CMAKE_COMMAND}" -S "${WORK}/encoder2" -G "${GENERATOR}" -B "${WORK}/build" "-DTessera_DIR=${package}" -DSCHEDULE=none
  -DBATCH=2 -DBYTES=32 "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wno-restrict -Werror")
run("building" "${CMAKE_COMMAND}" --build "${WORK}/build" --parallel 2)
set(encoder2 "${WORK}/build/encoder2")

# What it learns from: the manual.
file(GLOB pages "${SOURCE}/docs/*.md")
list(SORT pages)
set(text "${WORK}/text")
foreach(page IN LISTS pages)
  file(READ "${page}" one)
  file(APPEND "${text}" "${one}")
endforeach()

# losses_as_by_hand(<folder> <largest difference>): 20 steps with and without dropout, beside the twin's.
function(losses_as_by_hand folder most)
  run("taking no step" "${encoder2}" train --steps 0 --text "${text}" --out "${WORK}/${folder}_first")
  foreach(dropout IN ITEMS 0 0.1)
    set(out "${WORK}/${folder}_${dropout}")
    run("training with dropout ${dropout}" "${encoder2}" train --steps 20 --dropout ${dropout} --text "${text}" --out "${out}")
    run("training again" "${PYTHON}" "${CMAKE_CURRENT_LIST_DIR}/encoder2_twin.py" "${WORK}/${folder}_first/checkpoint.safetensors" "${out}/loss.csv"
      "${text}" 20 2 32 ${dropout})
    message("${output}")
    if(NOT output MATCHES "at most [0-9.]+e-([0-9]+) off" OR CMAKE_MATCH_1 LESS most)
      message(FATAL_ERROR "expected losses within 1e-${most} of the twin's, got\n${output}")
    endif()
  endforeach()
endfunction()
losses_as_by_hand(single 5)

run("being killed" "${PYTHON}" "${CMAKE_CURRENT_LIST_DIR}/encoder2_kills.py" "${encoder2}" "${text}" "${WORK}" 8)
message("${output}")
if(NOT output MATCHES "step 30: loss [0-4]\\.[0-9]+, held-out [0-4]\\.")
  message(FATAL_ERROR "expected a loss below 5 after 30 steps, got\n${output}")
endif()
run("training on two threads" "${encoder2}" train --steps 20 --threads 2 --text "${text}" --out "${WORK}/threads")
execute_process(COMMAND "${CMAKE_COMMAND}" -E compare_files "${WORK}/single_0.1/loss.csv" "${WORK}/threads/loss.csv" RESULT_VARIABLE differs)
if(differs)
  message(FATAL_ERROR "losses on two threads are others")
endif()

# More bytes than it has places, so that the cache is filled again on the way.
run("writing" "${encoder2}" write --bytes 70 --out "${WORK}/whole" "The ")
set(written "${output}")
if(NOT written MATCHES "^The ")
  message(FATAL_ERROR "expected a beginning and what follows it, got\n${written}")
endif()
run("writing without a cache" "${encoder2}" write --bytes 70 --no-cache --out "${WORK}/whole" "The ")
if(NOT output STREQUAL written)
  message(FATAL_ERROR "expected the same bytes with a cache as without, got\n${written}\nand\n${output}")
endif()
run("quantizing" "${encoder2}" quantize --text "${text}" --out "${WORK}/whole")
message("${output}")
if(NOT output MATCHES "loss ([0-9])\\.([0-9][0-9])[0-9]+; .*loss ([0-9])\\.([0-9][0-9])")
  message(FATAL_ERROR "expected a loss before and one after, got\n${output}")
endif()
math(EXPR change "${CMAKE_MATCH_1}${CMAKE_MATCH_2} - ${CMAKE_MATCH_3}${CMAKE_MATCH_4}")
if(change GREATER 2 OR change LESS -2)
  message(FATAL_ERROR "expected codes to change the loss by at most 0.02, got\n${output}")
endif()
run("writing with codes" "${encoder2}" write --bytes 70 --int8 --out "${WORK}/whole" "The ")
if(NOT output MATCHES "^The ")
  message(FATAL_ERROR "expected a beginning and what follows it, got\n${output}")
endif()

execute_process(COMMAND "${encoder2}" write --int8 --no-cache --out "${WORK}/whole" RESULT_VARIABLE result ERROR_VARIABLE errors OUTPUT_QUIET)
if(result EQUAL 0 OR NOT errors MATCHES "codes of i8 write with a cache")
  message(FATAL_ERROR "expected a refusal, got ${result} and\n${errors}")
endif()

# The same with weights and gradients in bf16, whose sums and masters are in f32.
run("configuring for bf16" "${CMAKE_COMMAND}" -S "${WORK}/encoder2" -B "${WORK}/build" -DNUMERICS=training)
run("building for bf16" "${CMAKE_COMMAND}" --build "${WORK}/build" --parallel 2)
run("training in bf16" "${encoder2}" train --steps 30 --every 10 --text "${text}" --out "${WORK}/narrow")
message("${output}")
if(NOT output MATCHES "step 30: loss [0-4]\\.[0-9]+, held-out [0-4]\\.")
  message(FATAL_ERROR "expected a loss below 5 after 30 steps in bf16, got\n${output}")
endif()

# A scale at which gradients in bf16 overflow: steps are skipped, made in f32 while the scale comes down, and in bf16 again. What is resumed in
# between goes on so.
run("overflowing" "${encoder2}" train --steps 40 --every 5 --scale 70 --text "${text}" --out "${WORK}/overflow")
message("${output}")
if(NOT output MATCHES "in f32, 4 steps skipped, step 5:.*in bf16, 4 steps skipped, step 40: loss [0-4]\\.[0-9]+, held-out [0-3]\\.")
  message(FATAL_ERROR "expected four steps skipped, then some in f32, then bf16, got\n${output}")
endif()
run("beginning to overflow" "${encoder2}" train --steps 12 --scale 70 --text "${text}" --out "${WORK}/resumed")
run("going on in f32" "${encoder2}" train --steps 40 --resume --text "${text}" --out "${WORK}/resumed")
execute_process(COMMAND "${CMAKE_COMMAND}" -E compare_files "${WORK}/overflow/checkpoint.safetensors" "${WORK}/resumed/checkpoint.safetensors"
  RESULT_VARIABLE differs)
if(differs)
  message(FATAL_ERROR "the run that went on in f32 is another one")
endif()

foreach(wrong IN ITEMS "train|--steps|many|expected a number" "train|--text|${CMAKE_CURRENT_LIST_FILE}|bytes of text; expected at least"
    "train|--resume|--text|${SOURCE}/algorithms/build|--out|${WORK}/whole|is of another text" "rest|expected train, time, quantize or write")
  string(REPLACE "|" ";" wrong "${wrong}")
  list(POP_BACK wrong expected)
  execute_process(COMMAND "${encoder2}" ${wrong} RESULT_VARIABLE result ERROR_VARIABLE errors OUTPUT_QUIET)
  string(FIND "${errors}" "${expected}" at)
  if(result EQUAL 0 OR at EQUAL -1)
    message(FATAL_ERROR "expected '${expected}', got ${result} and\n${errors}")
  endif()
endforeach()

# And in f64, where nothing but the order of sums is another than the twin's.
run("configuring for f64" "${CMAKE_COMMAND}" -S "${WORK}/encoder2" -B "${WORK}/build" -DNUMERICS=f64)
run("building for f64" "${CMAKE_COMMAND}" --build "${WORK}/build" --parallel 2)
losses_as_by_hand(double 12)
file(REMOVE_RECURSE "${WORK}")
