# For scripts that hold the words of errors: cmake -P runs a script by itself, and this runs it again for each case, with CASE.

# expect_of(<function> <its arguments> <what the message says, each a piece of it>...)
function(expect_of function arguments)
  string(REGEX REPLACE "^tessera_add_" "" kind "${function}")
  execute_process(COMMAND "${CMAKE_COMMAND}" "-DCASE=${function}(${arguments})" -P "${CMAKE_SCRIPT_MODE_FILE}"
    RESULT_VARIABLE result ERROR_VARIABLE got)
  string(REGEX REPLACE "[ \n]+" " " got "${got}")
  math(EXPR last "${ARGC} - 1")
  set(ARGV1 "error[cmake.add-${kind}]: ${function}(")
  foreach(i RANGE 1 ${last})
    set(piece "${ARGV${i}}")  # with its semicolons
    string(FIND "${got}" "${piece}" at)
    if(result EQUAL 0 OR at EQUAL -1)
      message(SEND_ERROR "${function}(${arguments})\n  expected: ${piece}\n  got:      ${got}")
    endif()
  endforeach()
endfunction()
