# The words of tessera_add_kernel's errors. Run by itself (cmake -P) it runs itself once for each case.
if(DEFINED CASE)
  include("${CMAKE_CURRENT_LIST_DIR}/../../cmake/TesseraAddKernel.cmake")
  cmake_language(EVAL CODE "tessera_add_kernel(${CASE})")
  return()
endif()

# expect(<arguments of tessera_add_kernel> <what the message says, each a piece of it>...)
function(expect arguments)
  execute_process(COMMAND "${CMAKE_COMMAND}" "-DCASE=${arguments}" -P "${CMAKE_CURRENT_LIST_FILE}"
    RESULT_VARIABLE result ERROR_VARIABLE got)
  string(REGEX REPLACE "[ \n]+" " " got "${got}")
  foreach(piece IN ITEMS "error[cmake.add-kernel]: tessera_add_kernel(" ${ARGN})
    string(FIND "${got}" "${piece}" at)
    if(result EQUAL 0 OR at EQUAL -1)
      message(SEND_ERROR "tessera_add_kernel(${arguments})\n  expected: ${piece}\n  got:      ${got}")
    endif()
  endforeach()
endfunction()

# A program that exists, so that the arguments after GENERATOR are looked at.
set(gemm "gemm GENERATOR [[${CMAKE_COMMAND}]]")

expect("2gemm" "the name becomes a C function; expected letters, digits and _, got '2gemm'")
expect("gemm SIZE 3" "no argument 'SIZE;3'; the keywords are GENERATOR, ALGORITHM, NUMERICS, SHAPE, SCHEDULE,")
expect("gemm NUMERICS" "NUMERICS has no value")
expect("gemm" "GENERATOR 'Tessera::generator' is neither an executable target nor an absolute path of a program")
expect("gemm GENERATOR mine" "make the generator before the kernel, with add_executable(mine ...)")
expect("${gemm} SHAPE N" "SHAPE 'N'; expected <dim>=<extent>, for example N=768")
expect("${gemm} SHAPE N=16 K=-1" "SHAPE 'K=-1'; expected <dim>=<extent>, for example N=768")
expect("${gemm} SCHEDULE none.json" "SCHEDULE '" "none.json' is not a file")
expect("${gemm} SCHEDULE_DIRS none" "SCHEDULE_DIRS '" "none' is not a folder")
expect("${gemm} TARGET avx1024" "no TARGET 'avx1024'; the targets are avx512, avx2, x86-64, host")
expect("${gemm} TARGET none.json" "TARGET '" "none.json' is not a file")
