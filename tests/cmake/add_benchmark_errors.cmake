# The words of the errors of tessera_add_benchmark. Run by itself (cmake -P) it runs itself once for each case.
if(DEFINED CASE)
  include("${CMAKE_CURRENT_LIST_DIR}/../../cmake/TesseraAddKernel.cmake")
  include("${CMAKE_CURRENT_LIST_DIR}/../../cmake/TesseraAddBenchmark.cmake")
  cmake_language(EVAL CODE "${CASE}")
  return()
endif()

include("${CMAKE_CURRENT_LIST_DIR}/expect_of.cmake")

# expect(<its arguments> <what the message says>)
function(expect arguments said)
  expect_of(tessera_add_benchmark "${arguments}" "${said}")
endfunction()

expect("2b KERNEL gemm" "the name becomes a program and a target; expected letters, digits and _, got '2b'")
expect("b KERNEL gemm SHAPE M=1" "no argument 'SHAPE;M=1'; the keywords are KERNEL, EXTENTS")
expect("b EXTENTS M=1" "expected KERNEL, got none; name what tessera_add_kernel made")
expect("b KERNEL gemm EXTENTS M" "EXTENTS 'M'; expected <dim>=<extent>,... for each shape, for example M=512,K=768")
expect("b KERNEL gemm EXTENTS [[M=1;M=1,K=x]]" "EXTENTS 'M=1,K=x'; expected <dim>=<extent>,... for each shape")
expect("b KERNEL gemm EXTENTS M=1" "KERNEL 'gemm' is not a target of tessera_add_kernel for processors; make it before the benchmark, with")
