# SPDX-License-Identifier: Apache-2.0
# Runs PROGRAM with several numbers of threads and instruction sets; what it writes must be the same to the last bit.
file(REMOVE_RECURSE ${DIRECTORY})
file(MAKE_DIRECTORY ${DIRECTORY})
foreach(run 1 2 3 2-scalar)
  string(REGEX MATCH "^[0-9]+" threads ${run})
  set(isa)
  if(run MATCHES "-(.*)")
    set(isa TAPER_ISA=${CMAKE_MATCH_1})
  endif()
  set(file ${DIRECTORY}/threads-${run}.bin)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env OMP_NUM_THREADS=${threads} OMP_DYNAMIC=false OMP_PROC_BIND=false
      OMP_WAIT_POLICY=passive ${isa}
      TAPER_GENERATIONS=${file} ${PROGRAM}
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${run} threads: ${result}\n${output}")
  endif()
  if(NOT output MATCHES "threads: ${threads}\n")
    message(FATAL_ERROR "${threads} threads were asked for:\n${output}")
  endif()
  file(SHA256 ${file} hash)
  file(SIZE ${file} size)
  message("${run} threads: ${size} bytes, ${hash}")
  if(size LESS 10000)
    message(FATAL_ERROR "${file} is too short to tell anything")
  endif()
  if(NOT DEFINED first)
    set(first ${hash})
  elseif(NOT hash STREQUAL first)
    message(FATAL_ERROR "${run} threads change the bits of a generation or of a gradient")
  endif()
endforeach()
