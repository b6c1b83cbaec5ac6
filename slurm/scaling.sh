#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Submits one short training run per size of a job, and a job behind them that makes table and pictures of all.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"
# shellcheck source=slurm/submit.sh
source "$here/submit.sh"

usage() {
  cat << 'END'
usage: slurm/scaling.sh [--weak] [--ranks] "1 2 4 8" [options of sbatch] -- RUN.yaml [options of taper train]
         [-- options of sbatch for the report]
  --weak   prompts of an iteration grow with the size: Rollout/Prompts is that of one node (or rank)
  --ranks  the sizes are numbers of ranks; without it they are numbers of nodes, with --ntasks-per-node ranks each
Ten iterations each, into Output/Directory/nodes-N (or ranks-N), unless --set Training/Iterations=N is given. Responses
have the lengths of a heavy-tailed law, the same ones in all sizes; --set Rollout/Lengths=RUN_DIR takes those of a run,
--set Rollout/Lengths= leaves them to the model. Table and pictures: Output/Directory/report, by a job of its own, which
needs TAPER_PYTHON, a Python with h5py, numpy and matplotlib.
END
}

case "${1:-}" in -h | --help) usage; exit 0 ;; esac
weak=no unit=nodes option=--nodes mark=%N
while [[ "${1:-}" == --* ]]; do
  case "$1" in
    --weak) weak=yes ;;
    --ranks) unit=ranks option=--ntasks mark=%n ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done
sizes="${1:-}"
if [[ ! "$sizes" =~ ^[0-9]+(\ +[0-9]+)*$ ]] || ! split_arguments "${@:2}" || [[ ${#run[@]} -eq 0 ]]; then
  usage >&2
  exit 2
fi

output="$(value_of Output/Directory)"
prompts="$(value_of Rollout/Prompts)"
if [[ "$output" == *%* ]]; then
  printf 'error: Output/Directory is %s: each size gets a directory of its own in it; leave %% out\n' "$output" >&2
  exit 2
fi
jobs="" directories=() refused=()
for size in $sizes; do
  job_options=("$option=$size")
  more=(--set "Output/Directory=$output/$unit-$mark")
  [[ $weak == no ]] || more+=(--set "Rollout/Prompts=$((prompts * size))")
  if job="$(submit scaling.sbatch "${run[@]}" "${more[@]}")"; then
    jobs+=":$job" directories+=("$output/$unit-$size")
    printf '%s %s: job %s, %s/%s-%s\n' "$size" "$unit" "$job" "$output" "$unit" "$size"
  else
    refused+=("$size $unit")
  fi
done
if [[ ${#directories[@]} -gt 0 ]]; then
  # What the runs need (GPUs, ranks, whole nodes) a report does not.
  sbatch_options=(${rest[@]+"${rest[@]}"}) job_options=("--dependency=afterany$jobs")
  if job="$(submit report.sbatch --scaling "${directories[@]}" --output "$output/report")"; then
    printf 'report: job %s, %s/report/index.html\n' "$job" "$output"
  else
    refused+=("(report)")
  fi
  printf 'report by hand: taper report --scaling %s --output %s/report\n' "${directories[*]}" "$output"
fi
[[ ${#refused[@]} -eq 0 ]] || { printf 'error: not submitted: %s\n' "${refused[*]}" >&2; exit 1; }
