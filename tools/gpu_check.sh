#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks the build for GPUs on a machine with a GPU, also on one that can build and install nothing.
#
#   tools/gpu_check.sh pack CPU_BUILD GPU_BUILD BUNDLE    on a machine with both builds (presets default and cuda)
#   tools/gpu_check.sh run BUNDLE RESULTS                 on the machine with the GPU
#   tools/gpu_check.sh run BUNDLE RESULTS --emulator DIR  the same on an emulated one (tests/gpuemu), without tools of CUDA
#
# The bundle is one .tar.xz of programs, their libraries (MPI and HDF5 too; libcudart and the driver are the target's) and
# small models. `run` makes its parts in order of value. Each has a time limit, a log in RESULTS and a line in
# RESULTS/parts.jsonl: {"part", "result": "pass" | "fail" | "timeout" | "skipped", "seconds"}. It ends with 1 if a part
# failed.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

die() {
  echo "gpu_check.sh: $*" >&2
  exit 2
}

# libraries PROGRAM...: paths of the shared libraries, less those that belong to the target.
libraries() {
  ldd "$@" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
    grep -Ev '/(libcudart|libcuda|libc|libm|libdl|librt|libpthread|libresolv|ld-linux[^/]*)\.so'
}

pack() {
  local cpu="$1" gpu="$2" bundle="$3" folder program
  folder="$(mktemp -d)"
  trap 'rm -rf "$folder"' RETURN
  mkdir -p "$folder/bin" "$folder/lib" "$folder/tree/tests/golden" "$folder/tree/tests/gpuemu"
  [[ -x "$cpu/bin/taper" ]] || die "$cpu has no bin/taper; build the preset default"
  for program in bin/taper tests/kernels/test_kernels tests/engine/test_engine tests/comm/test_comm \
    tests/bench/bench_device tests/bench/bench_model; do
    [[ -x "$gpu/$program" ]] || die "$gpu has no $program; build the preset cuda"
    install -s "$gpu/$program" "$folder/bin/"
  done
  install -s "$cpu/bin/taper" "$folder/bin/taper-cpu"
  cp "$cpu/tests/gpuemu/instructions" "$folder/bin/"
  for program in mpiexec.hydra hydra_pmi_proxy; do cp "$(command -v "$program")" "$folder/bin/"; done
  ln -s mpiexec.hydra "$folder/bin/mpiexec"
  libraries "$folder"/bin/* | xargs -I {} cp -L {} "$folder/lib/"
  cp -r "$root/tests/golden/models" "$folder/tree/tests/golden/"
  cp "$root"/tests/gpuemu/{compare_devices,plan_memory}.py "$folder/tree/tests/gpuemu/"
  cp -r "$root/data" "$folder/tree/"
  cp "${BASH_SOURCE[0]}" "$folder/"
  tar -C "$folder" -cJf "$bundle" .
  echo "$bundle: $(du -h "$bundle" | cut -f 1)"
}

# part NAME SECONDS COMMAND...
part() {
  local name="$1" limit="$2" start=$SECONDS code=0 result=pass
  shift 2
  timeout --kill-after 10 "$limit" "$@" > "$results/$name.log" 2>&1 || code=$?
  case $code in
    0) ;;
    124 | 137) result=timeout ;;
    *) result=fail ;;
  esac
  record "$name" "$result" $((SECONDS - start))
  if [[ $result != pass ]]; then
    failed=1
    tail -n 5 "$results/$name.log"
  fi
}
record() {
  printf '{"part": "%s", "result": "%s", "seconds": %d}\n' "$1" "$2" "$3" | tee -a "$results/parts.jsonl"
}

run() {
  local bundle="$1" place=(--device) folder tool
  results="$2" failed=0
  folder="$(mktemp -d)"
  trap 'rm -rf "$folder"' RETURN
  mkdir -p "$results"
  : > "$results/parts.jsonl"
  tar -C "$folder" -xJf "$bundle"
  export PATH="$folder/bin:$PATH" LD_LIBRARY_PATH="$folder/lib:/usr/local/cuda/lib64:${LD_LIBRARY_PATH:-}"
  export HYDRA_LAUNCHER=fork UCX_TLS=self,sysv,posix OMP_PROC_BIND=false KOKKOS_DISABLE_WARNINGS=1
  if [[ "${3:-}" == --emulator ]]; then
    export LD_LIBRARY_PATH="$4:$LD_LIBRARY_PATH"
    place=(--emulator "$4")
    export GPUEMU_DEVICES=2
  else
    part facts 30 bash -c "date -u; nvidia-smi; lscpu | grep 'Model name'; ldd $folder/bin/taper"
  fi
  devices="${GPUEMU_DEVICES:-$(nvidia-smi -L 2> /dev/null | grep -c ^GPU)}"
  part instructions 60 instructions
  part tensor-cores 120 test_kernels '*on tensor cores*'
  part kernels 600 test_kernels '~*on tensor cores*'
  part recorded-steps 300 test_engine
  part nccl 120 mpiexec -n "$devices" test_comm
  part commands 900 python3 "$folder/tree/tests/gpuemu/compare_devices.py" --cpu "$folder/bin/taper-cpu" \
    --gpu "$folder/bin/taper" "${place[@]}" --train
  if [[ "${place[0]}" == --device ]]; then
    part bench-f32 120 bench_device --arithmetic f32
    part bench-bf16 120 bench_device --arithmetic bf16
    mkdir -p "$folder/llama-8b"
    python3 "$folder/tree/tests/gpuemu/plan_memory.py" --write-config "$folder/llama-8b"
    for way in "" --eager; do
      part "decode-8b$way" 400 bench_model --model "$folder/llama-8b" --draw-weights --arithmetic bf16 --repeats 2 \
        --parts decode,prefill --batches 1,16,64,256 $way
    done
    for tool in memcheck racecheck synccheck; do
      if command -v compute-sanitizer > /dev/null; then
        part "$tool" 300 compute-sanitizer --tool "$tool" --error-exitcode 1 test_kernels '[product]'
      else
        record "$tool" skipped 0
      fi
    done
  fi
  return $failed
}

case "${1:-} $#" in
  "pack 4") pack "${@:2}" ;;
  "run 3" | "run 5") run "${@:2}" ;;
  *) die "expects: pack CPU_BUILD GPU_BUILD BUNDLE, or run BUNDLE RESULTS [--emulator DIR]" ;;
esac
