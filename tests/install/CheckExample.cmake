# SPDX-License-Identifier: Apache-2.0
# Installs BUILD below FOLDER, builds the example in SOURCE against that, and runs it on two ranks.
file(REMOVE_RECURSE ${FOLDER}/prefix ${FOLDER}/example)
# run(command...): leaves what it printed in `output`
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN}\nended with ${result}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${FOLDER}/prefix)
run(${FOLDER}/prefix/bin/taper --version)
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${FOLDER}/example -G Ninja -DCMAKE_BUILD_TYPE=Release
  -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_PREFIX_PATH=${FOLDER}/prefix -DKokkos_DIR=${KOKKOS}
  -DTeuchosParameterList_DIR=${TEUCHOS} -Dnlohmann_json_DIR=${JSON} -DCUDAToolkit_ROOT=${CUDA})
run(${CMAKE_COMMAND} --build ${FOLDER}/example)
run(${LAUNCHER} ${FOLDER}/example/example ${RUN_FILE})
if(NOT output MATCHES "2 ranks, 80 iterations")
  message(FATAL_ERROR "the example says\n${output}")
endif()
