#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The scaling study of doc/scaling.md: the embedded model on 1, 2 and 4 ranks of this machine, with given lengths of
# responses, as slurm/scaling.sh does it on clusters. A run that OUTPUT holds is not made again. Nothing else should run.
#
#   tests/bench/measure_scaling.sh OUTPUT [options of taper train]
#
# Each rank has one thread and, if there are as many cores, a core of its own. TAPER_BUILD_DIR: the folder of the
# default build; TAPER_PYTHON: a Python with h5py and matplotlib, for the report.
set -euo pipefail
[[ $# -ge 1 ]] || { sed -n '3,9s/^# \{0,1\}//p' "$0"; exit 2; }
taper_root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)"
source "$taper_root/tools/setup.sh"
source "$taper_root/slurm/scaling_options.sh"
taper="$TAPER_BUILD_DIR/default/bin/taper"
[[ -x "$taper" ]] || { complain "there is no $taper: cmake --preset default && cmake --build --preset default"; exit 2; }
mkdir -p "$1"
output="$(realpath "$1")"
shift
export OMP_NUM_THREADS=1
cores="$(count_cores)"

# size STUDY RANKS PROMPTS: one run.
size() {
  local run="$output/$1/ranks-$2" bind=(-bind-to core)
  [[ ! -f "$run/status.json" ]] || ! grep -q '"completed"' "$run/status.json" || return 0
  [[ $2 -le $cores ]] || bind=()
  say "$1: $2 ranks, $3 prompts"
  (cd "$taper_root" && mpiexec -n "$2" ${bind[@]+"${bind[@]}"} "$taper" train data/quickstart.yaml \
    "${scaling_options[@]}" --set "Rollout/Prompts=$3" --set "Output/Directory=$run" "${@:4}" < /dev/null)
}

for ranks in 1 2 4; do
  size strong "$ranks" 16 "$@"
  size weak "$ranks" $((8 * ranks)) "$@"
done
"$taper" report --scaling "$output"/{strong,weak}/ranks-{1,2,4} --output "$output/report"
