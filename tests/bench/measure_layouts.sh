#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures what doc/adaptive-tp.md shows: profiles, then static and adaptive layouts in turns, on two ranks with a core
# each. A profile or a file of generations that OUTPUT holds is not made again. Nothing else should run on the machine.
#
#   tests/bench/measure_layouts.sh OUTPUT SETTING...
#
# Settings: tcp, shared (the embedded model through TCP, shared memory), smollm2-tcp, smollm2-shared, smollm2-slow (two
# hosts with links of 200 Mbit/s, needs root). SmolLM2 answers chats, with drafts and without, through TCP and between the
# hosts. TAPER_BUILD_DIR: the folder of the default build.
set -euo pipefail
[[ $# -ge 2 ]] || { sed -n '3,9s/^# \{0,1\}//p' "$0"; exit 2; }
taper_root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)"
source "$taper_root/tools/setup.sh"
build="$TAPER_BUILD_DIR/default"
export OMP_NUM_THREADS=1
mkdir -p "$1"
cd "$1"
shift

smollm2="${TAPER_DEPS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/taper}/models/SmolLM2-135M-Instruct"

# use SETTING: how two ranks are started there, and its model.
use() {
  launch=(mpiexec -n 2 -bind-to core) model="$taper_root/data/model"
  case "$1" in
    tcp | smollm2-tcp) launch=(env "${through_tcp[@]}" "${launch[@]}") ;;
    shared | smollm2-shared) ;;
    smollm2-slow) launch=("$taper_root/tests/bench/slow_hosts.sh" 200mbit mpiexec -n 2) ;;
    *) printf 'unknown setting %s\n' "$1" >&2; exit 2 ;;
  esac
  [[ $1 != smollm2-* ]] || model="$smollm2"
}

# ranks COMMAND...: two of them, in the setting in use.
ranks() { "${launch[@]}" "$@" < /dev/null; }

# live LENGTHS GENERATIONS SEQUENCES LIMIT [TEMPERATURE]; natural lengths are what the model answers on the in-tree tasks.
# At a temperature that is given, responses are to chats, with drafts and without.
live() {
  local lines="$setting-$1${5:+-$5}.jsonl" kind=(--law "$1")
  [[ $1 != natural ]] || kind=(--task mix --samples 8)
  [[ -z ${5:-} ]] || kind+=(--prompts chats.jsonl --temperature "$5" --speculation auto)
  [[ ! -s "$lines" ]] || return 0
  say "$setting: $2 generations, lengths $1${5:+, temperature $5}"
  ranks "$build/tests/bench/bench_layouts" --model "$model" --profile "$setting.h5" "${kind[@]}" --generations "$2" \
    --sequences "$3" --max-new-tokens "$4" > "$lines.part"
  mv "$lines.part" "$lines"
}

python3 "$taper_root/data/make_chats.py" --count 400 --seed 3 > chats.jsonl

for setting in "$@"; do use "$setting"; done # a wrong name is told now, not hours later
for setting in "$@"; do
  use "$setting"
  [[ -s "$setting.h5" ]] || ranks "$build/bin/taper" profile --model "$model" --output "$setting.h5"
  case "$setting" in
    tcp)
      live heavy-tail 24 128 1024
      live log-normal 24 128 1024
      live bimodal 8 128 1024
      live no-tail 5 128 1024
      live natural 80 128 1024 ;;
    shared)
      live heavy-tail 8 128 1024
      live log-normal 8 128 1024 ;;
    smollm2-tcp) live heavy-tail 7 64 512 1 ;;
    smollm2-shared) live heavy-tail 4 64 512 ;;
    smollm2-slow) live straggler 8 32 1024 0 ;;
  esac
done
# What comes before the policy knows anything of lengths does not count: one generation, two with rare stragglers.
for lines in *-*.jsonl; do
  skip=1
  [[ $lines != *straggler* ]] || skip=2
  python3 "$taper_root/tests/bench/layouts_table.py" --skip $skip "$(basename "$lines" .jsonl)=$lines"
done
