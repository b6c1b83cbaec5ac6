# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the job scripts have in common; they source it and call taper_job. doc/slurm.md says what users set.
#
#   TAPER_MACHINE         file with the facts of the cluster, or its name in slurm/machines
#   TAPER_COMMAND         how taper is started, words without blanks in them (default: taper)
#   TAPER_SRUN_OPTIONS    options of srun (default: --mpi=pmi2)
#   TAPER_MAX_RESTARTS    a job that was started again so often is not requeued any more (default: 100)
#   TAPER_PYTHON          for report.sbatch: a Python with h5py, numpy and matplotlib (default: python3)

taper_say() { printf '[job %s %s] %s\n' "$taper_id" "$(date +%FT%T)" "$*"; }
taper_refuse() { taper_say "error: $*" >&2; exit 2; }

# The job for squeue and scontrol. SLURM_JOB_ID will not do in arrays: for one of its tasks it is the number of the
# array, and `scontrol requeue` of that starts all of its tasks again.
taper_id="${SLURM_JOB_ID:-none}"
[[ -z "${SLURM_ARRAY_TASK_ID:-}" ]] || taper_id="${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"

# taper_end_time: when Slurm ends this job, in seconds since 1970; nothing where that is not known. Newer Slurms say it
# in the environment.
taper_end_time() {
  local end="${SLURM_JOB_END_TIME:-}"
  [[ -n "$end" ]] || end="$(SLURM_TIME_FORMAT=%s squeue -h -j "$taper_id" -o %e 2> /dev/null)"
  [[ ! "$end" =~ ^[1-9][0-9]*$ ]] || printf '%s' "$end"
}

# taper_status_field NAME TEXT: a value of a status.json, of which each has a line.
taper_status_field() {
  sed -n "s/^ *\"$1\": \"\(.*\)\",\{0,1\}\$/\1/p; s/^ *\"$1\": \([0-9]*\),\{0,1\}\$/\1/p" <<< "$2"
}

# taper_load_machine: the facts of the cluster, where TAPER_MACHINE names them.
taper_load_machine() {
  local file="${TAPER_MACHINE:-}"
  [[ -n "$file" ]] || return 0
  [[ "$file" == */* ]] || file="$TAPER_SLURM/machines/$file.env"
  [[ -f "$file" ]] || taper_refuse "TAPER_MACHINE is $TAPER_MACHINE, and there is no $file"
  # shellcheck source=/dev/null
  source "$file" || taper_refuse "$file ended with an error"
}

# taper_read_command: what starts taper, as the array taper_command.
taper_read_command() {
  read -r -a taper_command <<< "${TAPER_COMMAND:-taper}"
  command -v "${taper_command[0]}" > /dev/null || taper_refuse "there is no ${taper_command[0]} on $(hostname)" \
    "(put taper into PATH, load its module, or set TAPER_COMMAND, all of it best in a file of slurm/machines)"
}

# taper_expand WORDS...: fills the array taper_words. @FILE is replaced by the words of that line of FILE which the
# index of the job array counts, %a by the index, %N by the number of nodes, %n by that of ranks, %% by %.
taper_expand() {
  local index="${SLURM_ARRAY_TASK_ID:-}" given word line more
  taper_words=()
  for given in "$@"; do
    more=("$given")
    if [[ "$given" == @* ]]; then
      taper_need_index "$given"
      [[ -r "${given#@}" ]] || taper_refuse "$given: that file cannot be read in $PWD"
      line="$(sed -n "${index}p" "${given#@}")"
      [[ -n "$line" ]] || taper_refuse "$given has no line $index: choose the indices of --array by its lines, from 1 on"
      mapfile -t more < <(xargs printf '%s\n' <<< "$line")
    fi
    for word in "${more[@]}"; do
      word="${word//%%/$'\1'}"
      [[ "$word" != *%a* ]] || taper_need_index "$word"
      word="${word//%a/$index}" word="${word//%N/${SLURM_JOB_NUM_NODES:-1}}" word="${word//%n/${SLURM_NTASKS:-1}}"
      taper_words+=("${word//$'\1'/%}")
    done
  done
}

taper_need_index() {
  [[ -n "${SLURM_ARRAY_TASK_ID:-}" ]] ||
    taper_refuse "'$1' needs the index of a job array: submit with sbatch --array"
}

# taper_forward SIGNAL: what Slurm sends to this script goes on to the ranks. Always as SIGUSR1: an srun that gets
# SIGTERM kills its step.
taper_forward() {
  taper_signals=$((taper_signals + 1))
  taper_say "got SIG$1: the ranks are asked to stop at the next safe point"
  [[ -z "$taper_pid" ]] || kill -USR1 "$taper_pid" 2> /dev/null
}

# taper_run WORDS...: taper on all ranks of the job; returns the exit code of srun. Traps run while bash waits.
taper_run() {
  local options code="" last seen
  read -r -a options <<< "${TAPER_SRUN_OPTIONS---mpi=pmi2}"
  [[ $taper_signals -eq 0 ]] || return 75
  srun --kill-on-bad-exit=1 ${options[@]+"${options[@]}"} "${taper_command[@]}" "$@" &
  taper_pid=$!
  while :; do
    seen=$taper_signals
    wait "$taper_pid"
    last=$?
    [[ $last -eq 127 && -n "$code" ]] || code=$last # 127: its code was fetched before the last signal came
    [[ $seen -ne $taper_signals ]] || break
  done
  taper_pid=""
  return "$code"
}

# taper_requeue: this job comes again, with the same number and log. A job that Slurm ends itself (scancel, time limit,
# preemption) is left to Slurm, which knows whether it comes again.
taper_requeue() {
  local state restarts="${SLURM_RESTART_COUNT:-0}" again
  again="go on: scontrol requeue $taper_id, or the same sbatch command"
  state="$(squeue -h -j "$taper_id" -o %T 2> /dev/null)"
  if [[ "$state" != RUNNING ]]; then
    taper_say "stopped; Slurm is ending this job (${state:-gone}) and decides whether it comes again. To $again"
  elif [[ $restarts -ge ${TAPER_MAX_RESTARTS:-100} ]]; then
    taper_say "stopped, and not requeued after $restarts restarts (TAPER_MAX_RESTARTS). To $again"
  else
    # said before it is asked: Slurm may end this script before it could say anything more
    taper_say "stopped, to be requeued; Slurm waits some minutes before it starts a job again"
    if scontrol requeue "$taper_id"; then
      sleep 20 # Slurm ends this script
    else
      taper_say "not requeued: Slurm says why above. To $again"
    fi
  fi
}

# taper_leave CODE BEFORE: the end of the job. BEFORE is the status of the run as the job found it.
taper_leave() {
  local code="$1" status="" state="" why
  trap - USR1 TERM
  [[ -z "$taper_status" || ! -f "$taper_status" ]] || status="$(cat "$taper_status")"
  if [[ -n "$status" && "$status" != "$2" ]]; then
    state="$(taper_status_field state "$status")"
    why="$(taper_status_field why "$status")"
    taper_say "run $state after iteration $(taper_status_field iteration "$status") of" \
      "$(taper_status_field iterations "$status")${why:+ ($why)}"
  fi
  # With --kill-on-bad-exit the first rank that ends with 75 may take others with it, whose work is done as well.
  if [[ "$state" == stopped && $code -gt 128 ]]; then code=75; fi
  case "$code" in
    0) taper_say "done" ;;
    75) taper_requeue ;;
    2) taper_say "bad input (exit code 2): the same job will fail again, see 'error:' above" ;;
    *) taper_say "failed (exit code $code of srun), see 'error:' above; not requeued" ;;
  esac
  exit "$code"
}

# taper_print COMMAND NAME: the value of a parameter of the run.
taper_print() { "${taper_command[@]}" "$1" "${taper_words[@]}" --print "$2"; }

# taper_run_directory COMMAND: where the run has its status.json.
taper_run_directory() {
  local output run=""
  output="$(taper_print "$1" Output/Directory)" || return
  if [[ "$1" != train ]]; then # a model, with the run beside it
    run="$(taper_print "$1" "Output/Run Directory")" || return
    while [[ "$output" == ?*/ ]]; do output="${output%/}"; done
    output="${run:-$output.run}"
  fi
  printf '%s' "$output"
}

# taper_examine_run COMMAND END: finds the status of the run; refuses a job that would stop before it has begun, each
# time anew.
taper_examine_run() {
  local directory margin
  directory="$(taper_run_directory "$1")" || exit 2
  taper_status="$directory/status.json"
  margin="$(printf '%.0f' "$(taper_print "$1" "Run/Deadline Margin")")"
  [[ -z "$2" || $(($2 - $(date +%s))) -gt $margin ]] ||
    taper_refuse "this job ends within Run/Deadline Margin, $margin s: give it more time (--time), or set the margin"
}

# taper_job COMMAND WORDS...: all of a job. Does not return.
taper_job() {
  local command="$1" end before="" code=0
  taper_signals=0 taper_pid="" taper_status=""
  trap 'taper_forward USR1' USR1
  trap 'taper_forward TERM' TERM
  taper_load_machine
  taper_read_command
  taper_expand "${@:2}"
  end="$(taper_end_time)"
  [[ -z "$end" ]] || export TAPER_DEADLINE="$end"
  # srun takes no --cpus-per-task from sbatch.
  [[ -z "${SLURM_CPUS_PER_TASK:-}" ]] || export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK"
  case "$command" in train | sft | reward-model) taper_examine_run "$command" "$end" ;; esac
  [[ ! -f "$taper_status" ]] || before="$(cat "$taper_status")"
  taper_say "start ${SLURM_RESTART_COUNT:-0} on ${SLURM_JOB_NODELIST:-?}, ${SLURM_NTASKS:-1}" \
    "ranks${end:+, until $(date -d "@$end" +%FT%T)}: ${taper_command[*]} $command ${taper_words[*]}"
  taper_run "$command" "${taper_words[@]}" || code=$?
  taper_leave "$code" "$before"
}
