#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Submits three jobs, each after the success of the one before: profile, train with the adaptive layout, eval.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"
# shellcheck source=slurm/submit.sh
source "$here/submit.sh"

usage() {
  cat << 'END'
usage: slurm/pipeline.sh [--static] [options of sbatch] -- RUN.yaml [options of taper train] [-- options of taper eval]
  --static  no profile, and the layout that the run file says
The profile is written beside Output/Directory, as DIR-profile.h5; the figures of the trained model as DIR/eval.json.
Prints the numbers of the jobs. If one fails, those after it are canceled.
END
}

case "${1:-}" in -h | --help) usage; exit 0 ;; esac
static=no
if [[ "${1:-}" == --static ]]; then static=yes; shift; fi
if ! split_arguments "$@" || [[ ${#run[@]} -eq 0 ]]; then usage >&2; exit 2; fi

output="$(value_of Output/Directory)"
model="$(value_of Model/Directory)"
last="$(printf '%s/checkpoints/iter_%06d' "$output" "$(value_of Training/Iterations)")"
job_options=()
if [[ $static == no ]]; then
  mkdir -p "$(dirname "$output")"
  profile="$(submit profile.sbatch --model "$model" --output "$output-profile.h5" \
    --dtype "$(value_of "Model/Weight Type")" --arithmetic "$(value_of Model/Arithmetic)" \
    --cache-type "$(value_of "Model/Cache Type")")"
  printf 'profile %s\n' "$profile"
  job_options=("--dependency=afterok:$profile" --kill-on-invalid-dep=yes)
  run+=(--set "Rollout/Mode=adaptive" --set "Rollout/Profile=$output-profile.h5")
fi
train="$(submit train.sbatch "${run[@]}")"
printf 'train %s\n' "$train"
job_options=("--dependency=afterok:$train" --kill-on-invalid-dep=yes)
scores="$(submit eval.sbatch --model "$last" --output "$output/eval.json" ${rest[@]+"${rest[@]}"})"
printf 'eval %s\n' "$scores"
