#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A table of runs from their status.json: state, iterations, time of the last change (UTC), directory, and why a run
# stopped or failed.
set -euo pipefail
case "${1:-}" in
  '' | -h | --help) printf 'usage: slurm/status.sh RUN_DIR...\n'; [[ $# -gt 0 ]]; exit ;;
esac
# shellcheck source=slurm/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

printf '%-9s  %11s  %-20s  %s\n' state iteration time directory
for directory in "$@"; do
  file="$directory/status.json"
  if [[ ! -f "$file" ]]; then
    printf '%-9s  %11s  %-20s  %s\n' - - - "$directory (no status.json)"
    continue
  fi
  status="$(cat "$file")"
  why="$(taper_status_field why "$status")"
  printf '%-9s  %11s  %-20s  %s%s\n' "$(taper_status_field state "$status")" \
    "$(taper_status_field iteration "$status")/$(taper_status_field iterations "$status")" \
    "$(taper_status_field time "$status")" "$directory" "${why:+ ($why)}"
done
