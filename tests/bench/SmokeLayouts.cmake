# SPDX-License-Identifier: Apache-2.0
# A small profile by LAUNCHER TAPER, one generation of few responses by BENCH with it, its tables by TABLES.
file(REMOVE_RECURSE ${DIRECTORY})
file(MAKE_DIRECTORY ${DIRECTORY})
# run(output command...)
function(run output)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE text ERROR_VARIABLE errors)
  message("${text}${errors}")
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN}\nended with ${result}")
  endif()
  set(${output} "${text}" PARENT_SCOPE)
endfunction()

run(unused ${LAUNCHER} ${TAPER} profile --model ${MODEL} --output ${DIRECTORY}/profile.h5 --max-positions 64
  --max-batch 4 --kv-memory-mb 16)
run(lines ${LAUNCHER} ${BENCH} --model ${MODEL} --profile ${DIRECTORY}/profile.h5 --generations 1 --sequences 8
  --prompt-tokens 8 --max-new-tokens 24 --max-running 8 --kv-memory-mb 16 --speculation fixed)
file(WRITE ${DIRECTORY}/lines.jsonl "${lines}")
run(tables ${TABLES} small=${DIRECTORY}/lines.jsonl)
foreach(part "1x2, s | 2x1, s | adaptive, s" "| small | 1 |" "| setting | prediction error"
    "adaptive with drafts, s")
  string(FIND "${tables}" "${part}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "no '${part}' in the tables")
  endif()
endforeach()
