#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command beside HOSTS hosts (2 unless the environment says so) that are network namespaces of this machine: each
# has a core of its own, where there are as many, and a link of so many bits a second, in either direction, to a switch.
# mpiexec of MPICH in the command starts its ranks there, in turn on all hosts; they must not be bound (-bind-to) a
# second time. Needs root, iproute2 and the kernel's tbf. All ends with the command. (slow_network.sh has one link that
# all ranks share.)
#
#   tests/bench/slow_hosts.sh 200mbit mpiexec -n 2 ...
set -euo pipefail
network=10.213.78 hosts="${HOSTS:-2}"

# What mpiexec calls in place of ssh: OPTIONS HOST COMMAND.
if [[ "${1:-}" == --enter ]]; then
  shift
  while [[ "$1" == -* ]]; do shift; done
  host="${1##*.}"
  shift
  read -r -a holders <<< "$SLOW_HOSTS"
  core=()
  if ((hosts <= $(nproc --all))); then core=(taskset -c $((host - 1))); fi
  exec nsenter --net="/proc/${holders[host - 1]}/ns/net" ${core[@]+"${core[@]}"} bash -c "$*"
fi

[[ $# -ge 2 ]] || { printf 'usage: %s RATE COMMAND...   (RATE as tc reads it, 500mbit)\n' "$0" >&2; exit 2; }
self="$(realpath "$0")"
[[ -n "${SLOW_HOSTS+set}" ]] || exec env SLOW_HOSTS= unshare --net -- "$self" "$@"
rate="$1" folder="$(mktemp -d)" holders=()
shift
trap 'kill ${holders[@]+"${holders[@]}"} || true; rm -rf "$folder"' EXIT
ip link set lo up
ip link add switch type bridge
ip addr add "$network.254/24" dev switch
ip link set switch up
for ((host = 1; host <= hosts; ++host)); do
  unshare --net sleep infinity &
  holders+=($!)
  until [[ "$(cat "/proc/$!/comm")" == sleep ]]; do # then it has its namespace
    kill -0 $!
    sleep 0.01
  done
  ip link add "port$host" type veth peer name eth0 netns $!
  ip link set "port$host" master switch up
  tc qdisc add dev "port$host" root tbf rate "$rate" burst 128kb latency 200ms
  nsenter --net="/proc/$!/ns/net" sh -ec "
    ip link set lo up
    ip addr add $network.$host/24 dev eth0
    ip link set eth0 up
    tc qdisc add dev eth0 root tbf rate $rate burst 128kb latency 200ms"
  printf '%s.%d\n' "$network" "$host" >> "$folder/hosts"
done
printf '#!/bin/sh\nexec "%s" --enter "$@"\n' "$self" > "$folder/enter"
chmod +x "$folder/enter"
export SLOW_HOSTS="${holders[*]}" UCX_TLS=tcp,self UCX_NET_DEVICES=eth0
export HYDRA_LAUNCHER=ssh HYDRA_LAUNCHER_EXEC="$folder/enter" HYDRA_HOST_FILE="$folder/hosts" HYDRA_IFACE=switch
"$@"
