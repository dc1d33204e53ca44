# The words of the errors of tessera_add_bundle. Run by itself (cmake -P) it runs itself once for each case.
if(DEFINED CASE)
  include("${CMAKE_CURRENT_LIST_DIR}/../../cmake/TesseraAddKernel.cmake")
  include("${CMAKE_CURRENT_LIST_DIR}/../../cmake/TesseraAddBundle.cmake")
  cmake_language(EVAL CODE "${CASE}")
  return()
endif()

include("${CMAKE_CURRENT_LIST_DIR}/expect_of.cmake")

# expect(<its arguments> <what the message says>)
function(expect arguments said)
  expect_of(tessera_add_bundle "${arguments}" "${said}")
endfunction()

expect("2b KERNELS gemm" "the name becomes a file and a target; expected letters, digits and _, got '2b'")
expect("b SHAPE M=1 KERNELS gemm" "no argument 'SHAPE;M=1'; the keywords are KERNELS, WEIGHTS, FLOATS, WEIGHT, LICENCES")
expect("b WEIGHTS w" "expected KERNELS, got none; name what tessera_add_kernel or tessera_add_library made")
expect("b KERNELS gemm KEY_NAME me" "KEY_NAME 'me' without KEY; say which key signs, or leave it out")
expect("b KERNELS gemm WEIGHT w=x" "WEIGHT 'w=x' without WEIGHTS; say which file has the tensors")
expect("b KERNELS gemm" "KERNELS 'gemm' is not a target of tessera_add_kernel or tessera_add_library for processors, a library; make it before")
