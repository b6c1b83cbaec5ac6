#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Submits one short training run per number of nodes; tools/scaling_table.py prints what came of them.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"
# shellcheck source=slurm/submit.sh
source "$here/submit.sh"

usage() {
  cat << 'END'
usage: slurm/scaling.sh [--weak] "1 2 4 8" [options of sbatch] -- RUN.yaml [options of taper train]
  --weak  the prompts of an iteration grow with the number of nodes: Rollout/Prompts is that of one node
Ten iterations each unless Training/Iterations is set, into Output/Directory/nodes-N. Give ranks by node:
--ntasks-per-node.
END
}

case "${1:-}" in -h | --help) usage; exit 0 ;; esac
weak=no
if [[ "${1:-}" == --weak ]]; then weak=yes; shift; fi
sizes="${1:-}"
if [[ ! "$sizes" =~ ^[0-9]+(\ +[0-9]+)*$ ]] || ! split_arguments "${@:2}" || [[ ${#run[@]} -eq 0 ]]; then
  usage >&2
  exit 2
fi

output="$(value_of Output/Directory)"
prompts="$(value_of Rollout/Prompts)"
for nodes in $sizes; do
  job_options=("--nodes=$nodes")
  more=(--set "Output/Directory=$output/nodes-%N")
  [[ $weak == no ]] || more+=(--set "Rollout/Prompts=$((prompts * nodes))")
  job="$(submit scaling.sbatch "${run[@]}" "${more[@]}")"
  printf '%s nodes: job %s, %s/nodes-%s\n' "$nodes" "$job" "$output" "$nodes"
done
printf 'afterwards: python3 %s %s/nodes-*\n' "$(realpath "$here/../tools/scaling_table.py")" "$output"
