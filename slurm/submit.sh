# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the scripts that submit several jobs have in common. Sourced by them; `here` is their folder.
# shellcheck disable=SC2154

# split_arguments WORDS...: those before the first -- (options of sbatch), those up to the next (the run), the rest.
split_arguments() {
  local part=0
  sbatch_options=() run=() rest=()
  while [[ $# -gt 0 ]]; do
    if [[ "$1" == -- && $part -lt 2 ]]; then
      part=$((part + 1))
    else
      case $part in
        0) sbatch_options+=("$1") ;;
        1) run+=("$1") ;;
        2) rest+=("$1") ;;
      esac
    fi
    shift
  done
  [[ $part -gt 0 ]]
}

# value_of NAME: of a parameter of the run.
value_of() {
  local command
  read -r -a command <<< "${TAPER_COMMAND:-taper}"
  "${command[@]}" train "${run[@]}" --print "$1"
}

# submit SCRIPT WORDS...: with sbatch_options and job_options; prints the job's number.
submit() {
  local id
  id="$(sbatch --parsable ${sbatch_options[@]+"${sbatch_options[@]}"} ${job_options[@]+"${job_options[@]}"} "$here/$1" "${@:2}")" || return
  printf '%s' "${id%%;*}"
}
