# SPDX-License-Identifier: Apache-2.0
# Installs BUILD into PREFIX: the executable must run there, and find its tools there.
file(REMOVE_RECURSE ${PREFIX})
# expect(regex command...)
function(expect regex)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0 OR NOT output MATCHES "${regex}")
    message(FATAL_ERROR "${ARGN}\nended with ${result}, no '${regex}' in\n${output}")
  endif()
endfunction()

expect("taper" ${CMAKE_COMMAND} --install ${BUILD} --prefix ${PREFIX})
expect("^taper [0-9]" ${PREFIX}/bin/taper --version)
# An interpreter that says what it should run.
expect("${PREFIX}/share/taper/tools/taper_report.py RUN" ${CMAKE_COMMAND} -E env TAPER_PYTHON=echo
  ${PREFIX}/bin/taper report RUN)
expect("4 layers" ${PREFIX}/bin/taper inspect ${PREFIX}/share/taper/data/model)
# The scripts find what they share; the modulefile finds its prefix, wherever it was moved.
expect("usage: slurm/pipeline.sh" ${PREFIX}/share/taper/slurm/pipeline.sh --help)
expect("no status.json" ${PREFIX}/share/taper/slurm/status.sh ${PREFIX})
file(GLOB modulefile ${PREFIX}/share/modulefiles/taper/*)
find_program(tclsh tclsh)
if(tclsh)
  file(WRITE ${PREFIX}/module.tcl "
    proc unknown {args} { puts $args }
    set ModulesCurrentModulefile {${modulefile}}
    source $ModulesCurrentModulefile")
  expect("prepend-path PATH ${PREFIX}/bin.*setenv TAPER_SLURM ${PREFIX}/share/taper/slurm" ${tclsh} ${PREFIX}/module.tcl)
endif()
foreach(file LICENSE README.md data/quickstart.yaml doc/data.md tools/taper_h5.py tools/taper_results.py tools/report/figures.py
    tools/report/scaling.py slurm/train.sbatch slurm/report.sbatch slurm/common.sh slurm/machines/example.env)
  if(NOT EXISTS ${PREFIX}/share/taper/${file})
    message(FATAL_ERROR "${file} was not installed")
  endif()
endforeach()
