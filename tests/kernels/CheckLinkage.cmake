# SPDX-License-Identifier: Apache-2.0
cmake_minimum_required(VERSION 3.25)
# cmake -DNM=... -DLIBRARY=libtaper_kernels.a -P CheckLinkage.cmake: fails if an object file of a wider
# instruction set defines a function that the linker could take for all, that is, a weak one without the set in its name.
# (DW.ref.*: the pointer to the C++ runtime that exceptions need, the same in all.)
execute_process(COMMAND ${NM} -A -C --defined-only ${LIBRARY}
  OUTPUT_VARIABLE symbols RESULT_VARIABLE result ERROR_VARIABLE error)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${NM} ${LIBRARY}: ${error}")
endif()
string(REGEX REPLACE "[];[]" " " symbols "${symbols}")
string(REPLACE "\n" ";" lines "${symbols}")
set(seen "")
set(shared "")
foreach(line IN LISTS lines)
  if(line MATCHES "HostOps(Avx2|Avx512Bf16|Avx512|Amx)\\.cpp")
    set(isa ${CMAKE_MATCH_1})
    list(APPEND seen ${isa})
    # No compiler makes instructions for tiles by itself: vector code for AMX is that for AVX-512.
    string(REPLACE Amx Avx512 vectors ${isa})
    if(line MATCHES " [VWu] " AND NOT line MATCHES " V DW\\.ref\\." AND
        NOT line MATCHES " [VWu] .*detail::${vectors}[^A-Za-z0-9]")
      string(APPEND shared "\n  ${line}")
    endif()
  endif()
endforeach()
foreach(isa Avx2 Avx512 Avx512Bf16 Amx)
  if(NOT isa IN_LIST seen)
    message(FATAL_ERROR "no object file of ${isa} in ${LIBRARY}")
  endif()
endforeach()
if(shared)
  message(FATAL_ERROR "functions that one instruction set could take from another (make them static):${shared}")
endif()
