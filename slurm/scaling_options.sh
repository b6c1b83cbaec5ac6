# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What makes `taper train` a run of a scaling study: short, the same work on any number of ranks, nothing beside the
# iterations. Sourced by scaling.sbatch and by tests/bench/measure_scaling.sh.
# shellcheck disable=SC2034
scaling_options=(
  --resume none
  --set Training/Iterations=10
  --set Rollout/Lengths=heavy-tail
  --set "Algorithm/Max Rounds=1" # of dynamic sampling, whose number follows from the answers
  --set Checkpoint/Every=0
  --set "Critic/Warmup Iterations=0" # in which policies do not learn
  --set Evaluation/Every=0 --set "Evaluation/Best By=" --set Evaluation/Patience=0
)
