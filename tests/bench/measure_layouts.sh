#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures what doc/adaptive-tp.md shows: profiles, then static and adaptive layouts in turns, on two ranks with a core
# each. A profile or a file of generations that OUTPUT holds is not made again. Nothing else should run on the machine.
#
#   tests/bench/measure_layouts.sh OUTPUT SETTING...
#
# Settings: tcp, shared, slow (the embedded model through TCP, shared memory, TCP at 500 Mbit/s), smollm2-tcp,
# smollm2-shared, smollm2-slow (200 Mbit/s). Slow ones need root. TAPER_BUILD_DIR: the folder of the default build.
set -euo pipefail
[[ $# -ge 2 ]] || { sed -n '3,9s/^# \{0,1\}//p' "$0"; exit 2; }
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)"
build="$(realpath "${TAPER_BUILD_DIR:-$root/build}/default")"
export OMP_NUM_THREADS=1 OMP_PROC_BIND=false KOKKOS_DISABLE_WARNINGS=1
mkdir -p "$1"
cd "$1"
shift

smollm2="${TAPER_DEPS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/taper}/models/SmolLM2-135M-Instruct"
through_tcp=(env "UCX_TLS=tcp,self" UCX_NET_DEVICES=lo MPIR_CVAR_NOLOCAL=1 OMPI_MCA_pml=ob1 "OMPI_MCA_btl=tcp,self")
slow="$root/tests/bench/slow_network.sh"

# use SETTING: its transport and model.
use() {
  transport=() model="$root/data/model"
  case "$1" in
    tcp | smollm2-tcp) transport=("${through_tcp[@]}") ;;
    shared | smollm2-shared) ;;
    slow) transport=("${through_tcp[@]}" "$slow" 500mbit) ;;
    smollm2-slow) transport=("${through_tcp[@]}" "$slow" 200mbit) ;;
    *) printf 'unknown setting %s\n' "$1" >&2; exit 2 ;;
  esac
  [[ $1 != smollm2-* ]] || model="$smollm2"
}

# ranks COMMAND...: two of them, in the setting in use.
ranks() { "${transport[@]}" mpiexec -n 2 -bind-to core "$@" < /dev/null; }

# live SETTING LENGTHS GENERATIONS SEQUENCES LIMIT; natural lengths are what the model answers on the in-tree tasks.
live() {
  local lines="$1-$2.jsonl" kind=(--law "$2")
  [[ $2 != natural ]] || kind=(--task mix --samples 8)
  [[ ! -s "$lines" ]] || return 0
  printf '%s: %s generations, lengths %s\n' "$1" "$3" "$2"
  ranks "$build/tests/bench/bench_layouts" --model "$model" --profile "$1.h5" "${kind[@]}" --generations "$3" \
    --sequences "$4" --max-new-tokens "$5" > "$lines.part"
  mv "$lines.part" "$lines"
}

for setting in "$@"; do
  use "$setting"
  [[ -s "$setting.h5" ]] || ranks "$build/bin/taper" profile --model "$model" --output "$setting.h5"
  case "$setting" in
    tcp)
      live tcp heavy-tail 24 128 1024
      live tcp log-normal 24 128 1024
      live tcp bimodal 8 128 1024
      live tcp no-tail 5 128 1024
      live tcp natural 40 128 1024 ;;
    shared)
      live shared heavy-tail 8 128 1024
      live shared log-normal 8 128 1024 ;;
    slow) live slow heavy-tail 8 128 1024 ;;
    smollm2-tcp) live smollm2-tcp heavy-tail 7 64 512 ;;
    smollm2-shared) live smollm2-shared heavy-tail 5 64 512 ;;
    smollm2-slow) live smollm2-slow straggler 8 32 1024 ;;
  esac
done
tables=()
for lines in *.jsonl; do tables+=("$(basename "$lines" .jsonl)=$lines"); done
python3 "$root/tests/bench/layouts_table.py" --skip 1 "${tables[@]}"
