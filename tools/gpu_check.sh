#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks the build for GPUs on a machine with a GPU, also on one that can build and install nothing.
#
#   tools/gpu_check.sh pack CPU_BUILD GPU_BUILD BUNDLE    on a machine with both builds (presets default and cuda)
#   tools/gpu_check.sh run BUNDLE RESULTS [PARTS]         on the machine with the GPU: check, measure, kernels, profiles,
#                                                         sanitize; all
#   tools/gpu_check.sh run BUNDLE RESULTS --emulator DIR  some checks on an emulated one (DIR: tests/gpuemu/lib)
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
  local cpu="$1" gpu="$2" bundle="$3" program
  folder="$(mktemp -d)"
  trap 'rm -rf "$folder"' EXIT
  mkdir -p "$folder/bin" "$folder/lib" "$folder"/tree/tests/{golden,gpuemu,peers}
  [[ -x "$cpu/bin/taper" ]] || die "$cpu has no bin/taper; build the preset default"
  for program in bin/taper tests/kernels/test_kernels tests/engine/test_engine tests/comm/test_comm tests/model/test_model \
    tests/device/test_device tests/reshape/test_reshape tests/bench/bench_device tests/bench/bench_model; do
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
  cp "$root/tests/peers/transformers_on_gpu.py" "$folder/tree/tests/peers/"
  cp -r "$root/data" "$folder/tree/"
  cp "${BASH_SOURCE[0]}" "$folder/"
  tar -C "$folder" -cJf "$bundle" .
  echo "$bundle: $(du -h "$bundle" | cut -f 1)"
}

# part NAME SECONDS COMMAND...: whether it passes, in a log and a line.
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
  [[ $result == pass ]] || tail -n 5 "$results/$name.log"
}
record() {
  printf '{"part": "%s", "result": "%s", "seconds": %d}\n' "$1" "$2" "$3" | tee -a "$results/parts.jsonl"
}

# Folders of libcudart and NCCL in the packages that PyTorch brings, for machines without the toolkit.
wheel_folders() {
  python3 -c 'import glob, site; print(":".join(p for s in site.getsitepackages() for p in glob.glob(s + "/nvidia/*/lib")))'
}

# What is right or wrong. On a GPU, parts run at the same time: each waits for the host most of the time.
check() {
  local commands=(python3 "$folder/tree/tests/gpuemu/compare_devices.py" --cpu "$folder/bin/taper-cpu" --gpu "$folder/bin/taper")
  if [[ -n "$emulator" ]]; then
    part instructions 60 instructions
    part tensor-cores 600 test_kernels '[bf16]'
    part commands 1800 "${commands[@]}" --emulator "$emulator"
    return
  fi
  part facts 30 bash -c "date -u; nvidia-smi; lscpu | grep 'Model name'; ldd $folder/bin/taper"
  part instructions 60 instructions
  part tensor-cores 100 test_kernels '[bf16]' &
  part kernels 150 test_kernels '~[bf16]' &
  part memory 30 test_device &
  part recorded-steps 100 test_engine &
  part nccl 60 mpiexec -n "$devices" test_comm &
  part sums 60 mpiexec -n "$devices" test_model 'sums between connected GPUs*' &
  part layouts 100 mpiexec -n 2 test_reshape 'sequences move between replicas*,a repetition penalty goes with*' &
  part commands 240 "${commands[@]}" --device --train --jobs 8 &
  wait
}

model=(bench_model --draw-weights --arithmetic bf16)
# Times of a model of 8 billion weights; what trains on one GPU has fewer layers.
measure() {
  local peer="$folder/tree/tests/peers/transformers_on_gpu.py"
  write_configs
  part bench-bf16 60 bench_device --arithmetic bf16 --seconds 0.05
  part decode-8b 90 "${model[@]}" --model "$folder/8b" --repeats 2 --parts decode,prefill --batches 1,16,64,256
  part decode-4-layers-long 60 "${model[@]}" --model "$folder/4-layers" --repeats 1 --parts decode --batches 1,16 \
    --context 8000
  part train-4-layers 60 "${model[@]}" --model "$folder/4-layers" --repeats 3 --parts forward,train
  part train-4-layers-plain-sums 60 "${model[@]}" --model "$folder/4-layers" --repeats 3 --parts train --gradients plain
  if python3 -c 'import importlib.util as i, sys; sys.exit(i.find_spec("transformers") is None)'; then
    part transformers 60 env -u LD_LIBRARY_PATH python3 "$peer" --model "$folder/8b" --parts decode,prefill
    part transformers-train 40 env -u LD_LIBRARY_PATH python3 "$peer" --model "$folder/4-layers" --parts train
  else
    record transformers skipped 0
  fi
  part decode-8b-eager 40 "${model[@]}" --model "$folder/8b" --repeats 1 --parts decode --batches 1 --eager
  part bench-f32 30 bench_device --arithmetic f32 --seconds 0.02
}
write_configs() {
  python3 "$folder/tree/tests/gpuemu/plan_memory.py" --write-config "$folder/8b"
  python3 "$folder/tree/tests/gpuemu/plan_memory.py" --write-config "$folder/4-layers" --layers 4
}

# Times of all kernels.
kernels() {
  local way metrics=gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum
  write_configs
  for way in decode train; do
    if ! command -v ncu > /dev/null; then
      record "kernels-of-$way" skipped 0
      continue
    fi
    part "kernels-of-$way" 60 ncu --clock-control none --metrics "$metrics" --csv --kernel-name-base demangled \
      --launch-count 700 "${model[@]}" --model "$folder/4-layers" --repeats 1 --parts "$way" --batches 64 --eager
  done
}

# Profiles of what one of 1, 2, 4 and 8 tensor-parallel ranks has of the model: steps without sums over ranks.
profiles() {
  local share
  for share in 1 2 4 8; do
    python3 "$folder/tree/tests/gpuemu/plan_memory.py" --write-model "$folder/share-$share" --share $share
    part "profile-share-$share" 75 taper profile --model "$folder/share-$share" --arithmetic bf16 --budget 15 \
      --kv-memory-mb 16384 --output "$results/share-$share.h5"
    rm -r "$folder/share-$share"
  done
}

# What the emulator's model may miss. At the same time: most of it is work of the host.
sanitize() {
  local tool sanitizer
  for tool in memcheck racecheck synccheck; do
    if ! command -v compute-sanitizer > /dev/null; then
      record "$tool" skipped 0
      continue
    fi
    sanitizer=(compute-sanitizer --tool "$tool")
    case $tool in
      memcheck) sanitizer+=(--error-exitcode 1 --report-api-errors no) ;; # tests provoke some
      synccheck) sanitizer+=(--error-exitcode 1) ;;
      racecheck) ;; # reports some that are none (doc/gpu.md#measured): its log is to be read
    esac
    sanitizer+=(test_kernels)
    part "$tool-bf16" 150 "${sanitizer[@]}" '[bf16]' &
    part "$tool-others" 150 "${sanitizer[@]}" '~[bf16]' &
  done
  wait
}

run() {
  local bundle="$1" what
  results="$2" emulator=
  shift 2
  if [[ "${1:-}" == --emulator ]]; then
    [[ $# == 2 ]] || die "--emulator expects the folder of the emulator, and no parts"
    emulator="$2"
    set -- check
  elif [[ $# == 0 ]]; then
    set -- check measure kernels profiles sanitize
  fi
  for what in "$@"; do
    case "$what" in
      check | measure | kernels | profiles | sanitize) ;;
      *) die "unknown part '$what'; there are check, measure, kernels, profiles and sanitize" ;;
    esac
  done
  folder="$(mktemp -d)"
  trap 'rm -rf "$folder"' EXIT
  mkdir -p "$results"
  : > "$results/parts.jsonl"
  tar -C "$folder" -xJf "$bundle"
  LD_LIBRARY_PATH="$folder/lib:/usr/local/cuda/lib64:$(wheel_folders):${LD_LIBRARY_PATH:-}"
  export LD_LIBRARY_PATH PATH="$folder/bin:$PATH"
  export HYDRA_LAUNCHER=fork UCX_TLS=self,sysv,posix OMP_PROC_BIND=false KOKKOS_DISABLE_WARNINGS=1
  if [[ -n "$emulator" ]]; then export LD_LIBRARY_PATH="$emulator:$LD_LIBRARY_PATH" GPUEMU_DEVICES=2; fi
  devices="$(nvidia-smi -L 2> /dev/null | grep -c ^GPU || true)"
  for what in "$@"; do "$what"; done
  ! grep -Eq '"(fail|timeout)"' "$results/parts.jsonl"
}

case "${1:-} $#" in
  "pack 4") pack "${@:2}" ;;
  "run "[3-9]) run "${@:2}" ;;
  *) die "expects: pack CPU_BUILD GPU_BUILD BUNDLE, or run BUNDLE RESULTS [--emulator DIR | PART...]" ;;
esac
