# SPDX-License-Identifier: Apache-2.0
# What quickstart and run-tests share: messages with the time, dependencies, configure and build. Sourced, never run.
# Both may set: taper_root (the source tree) before, and TAPER_BUILD_DIR, the folder that holds one build per preset.

# configure() creates that: what is refused before leaves nothing.
TAPER_BUILD_DIR="$(realpath -m "${TAPER_BUILD_DIR:-$taper_root/build}")"

say() { printf '[%4d s] %s\n' "$SECONDS" "$*"; }
complain() { printf '[%4d s] ERROR: %s\n' "$SECONDS" "$*" >&2; }

# Environment of all runs. The job and the tests choose their threads and binding themselves; Open MPI refuses root and
# more ranks than cores unless told.
export OMP_PROC_BIND=false KOKKOS_DISABLE_WARNINGS=1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe

# What makes MPICH (with UCX) and Open MPI send everything through TCP, also between ranks of one host.
through_tcp=("UCX_TLS=tcp,self" UCX_NET_DEVICES=lo MPIR_CVAR_NOLOCAL=1 OMPI_MCA_pml=ob1 "OMPI_MCA_btl=tcp,self")

# count_cores: that this process may use. A number of OpenMP threads in the environment would lower what nproc says.
count_cores() { env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc; }

# count_jobs: parallel compilers, one to a core that this process may use and to 1.5 GB of memory.
count_jobs() {
  local cores memory
  cores="$(count_cores)"
  memory="$(awk '/MemAvailable/ { print int($2 / 1572864) }' /proc/meminfo 2> /dev/null)"
  if [[ -n "$memory" && "$memory" -lt "$cores" ]]; then cores=$((memory < 1 ? 1 : memory)); fi
  printf '%s' "$cores"
}

# provide_dependencies: puts them into the environment. Python packages are a convenience: without them there are no
# pictures, and the tests that need them are skipped.
provide_dependencies() {
  local lines
  say "dependencies (the first time some minutes, then a second)"
  if lines="$("$taper_root/cmake/deps/install.sh" --python "$@")"; then
    eval "$lines"
  elif lines="$("$taper_root/cmake/deps/install.sh" "$@")"; then
    eval "$lines"
    say "no Python environment: no pictures, some tests are skipped"
  else
    complain "the dependencies could not be provided, see the messages above"
    return 1
  fi
}

# run_logged LABEL COMMAND...: output goes to a log, with a line of progress every half minute; its end is shown where
# the command fails. Builds on a terminal show themselves.
run_logged() {
  local label="$1" log="$TAPER_BUILD_DIR/$1.log" code=0 pid told=$SECONDS
  shift
  if [[ -t 1 && "$label" == build-* ]]; then
    "$@"
    return
  fi
  "$@" > "$log" 2>&1 < /dev/null &
  pid=$!
  while kill -0 "$pid" 2> /dev/null; do
    sleep 0.2
    if ((SECONDS - told >= 30)); then
      told=$SECONDS
      say "$label: $(tail -n 1 "$log" | cut -c 1-100)"
    fi
  done
  wait "$pid" || code=$?
  if [[ $code -ne 0 ]]; then
    { grep -nE -A 8 'error[: ]|FAILED|undefined reference' "$log" || true; tail -n 30 "$log"; } | head -n 120 >&2
    complain "$label failed (exit code $code); the whole log is $log"
  fi
  return "$code"
}

# configure PRESET [OPTIONS...]: comes before anything else in TAPER_BUILD_DIR. A build folder that belongs to another source tree is made anew.
configure() {
  local preset="$1" folder="$TAPER_BUILD_DIR/$1" home
  shift
  mkdir -p "$TAPER_BUILD_DIR"
  home="$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$folder/CMakeCache.txt" 2> /dev/null || true)"
  if [[ -n "$home" && "$(cd "$home" 2> /dev/null && pwd -P)" != "$(cd "$taper_root" && pwd -P)" ]]; then
    say "$folder was made for $home and is started anew"
    rm -rf "$folder"
  fi
  (cd "$taper_root" && run_logged "configure-$preset" cmake --preset "$preset" -B "$folder" "$@")
}

# build PRESET [TARGETS...]
build() {
  local preset="$1" targets=()
  shift
  if [[ $# -gt 0 ]]; then targets=(--target "$@"); fi
  run_logged "build-$preset" cmake --build "$TAPER_BUILD_DIR/$preset" --parallel "${TAPER_JOBS:-$(count_jobs)}" \
    ${targets[@]+"${targets[@]}"}
}
