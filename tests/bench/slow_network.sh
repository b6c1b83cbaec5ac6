#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command in a network namespace whose loopback passes so many bits a second: all ranks there talk through it as
# over a network of that rate. Needs root, iproute2 and the kernel's tbf. The namespace ends with the command.
#
#   tests/bench/slow_network.sh 500mbit mpiexec -n 2 ...
set -euo pipefail
[[ $# -ge 2 ]] || { printf 'usage: %s RATE COMMAND...   (RATE as tc reads it, 500mbit)\n' "$0" >&2; exit 2; }
rate="$1"
shift
exec unshare --net -- bash -c '
  set -e
  ip link set lo up
  tc qdisc add dev lo root tbf rate "$0" burst 128kb latency 200ms
  exec "$@"' "$rate" "$@"
