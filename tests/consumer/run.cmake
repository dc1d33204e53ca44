# run(<description> <command>...): fails with the command's output; leaves it in `output`.
macro(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${what} failed with ${result}\n${output}\n${errors}")
  endif()
endmacro()
