# SPDX-License-Identifier: Apache-2.0
# What `./run-tests --full` does beyond the default preset. Sourced by run-tests.

run_full_tests() {
  # MPI and OpenMP keep memory until the process ends, which is no leak of ours.
  export ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
  test_devices
  # Benchmarks take minutes there, and their times mean nothing.
  test_preset sanitize --label-exclude '^gpu$|^long$|^style$|^gpuemu$|^bench$'
  test_preset audit --label-exclude '^gpu$|^style$|^gpuemu$'
  if command -v clang-tidy > /dev/null; then
    note "clang-tidy" run_clang_tidy
  else
    skip "clang-tidy is not here"
  fi
  if ! provide_peers; then
    skip "the packages of the peers cannot be installed"
    return
  fi
  run_peers
  local model="${TAPER_DEPS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/taper}/models/SmolLM2-135M-Instruct"
  if [[ -d "$model" ]] || "$peers/bin/python" "$taper_root/data/make_smollm2.py" "$model"; then
    run_peers_on "$model"
  else
    skip "SmolLM2 cannot be fetched: no comparison on a real model"
  fi
}

# test_devices: kernels and whole commands on emulated GPUs.
test_devices() {
  if ! (. "$taper_root/cmake/deps/cuda.sh" && find_nvcc) > /dev/null 2>&1; then
    skip "nvcc is not here: the code for GPUs is not tested"
    return
  fi
  # The default of install.sh last: its file for later shells (env-*-cuda.sh) has the last one.
  with_gpus 80 test_sm_80
  with_gpus 90 test_sm_90
}

# with_gpus SM COMMAND: COMMAND in an environment with the dependencies for GPUs of that architecture.
with_gpus() {
  local lines name host_environment host_names
  say "dependencies for GPUs (sm_$1)"
  if ! lines="$(TAPER_CUDA_SM="$1" "$taper_root/cmake/deps/install.sh" --cuda --tests)"; then
    failed=$((failed + 1)) problems+=("dependencies for GPUs (sm_$1)")
    return
  fi
  host_environment="$(export -p)" host_names=" $(compgen -e | tr '\n' ' ')"
  eval "$lines"
  export PATH="$CUDA_ROOT/bin:$PATH" GPUEMU_ARCH="$1"
  "$2"
  eval "${host_environment//declare -x/declare -gx}"
  for name in $(compgen -e); do [[ "$host_names" == *" $name "* ]] || unset "$name"; done
}

# test_sm_80: that all compiles, kernels (tensor cores of sm_80 round elsewhere), and what is built on them.
test_sm_80() { test_preset cuda80 --label-regex '^kernels$|^model$|^engine$' --label-exclude '^gpu$|^long$'; }

test_sm_90() {
  test_preset cuda --label-exclude '^gpu$|^long$|^style$|^tools$'
  note "commands on an emulated GPU against the CPU" python3 "$taper_root/tests/gpuemu/compare_devices.py" --train \
    --cpu "$TAPER_BUILD_DIR/$preset/bin/taper" --gpu "$TAPER_BUILD_DIR/cuda/bin/taper" \
    --emulator "$TAPER_BUILD_DIR/cuda/tests/gpuemu/lib"
  note "resources of kernels" python3 "$taper_root/tools/kernel_resources.py" "$TAPER_BUILD_DIR/cuda"
}

skip() {
  say "$1: skipped"
  skipped=$((skipped + 1))
}

# run_clang_tidy: all files of the preset minimal: clang cannot read headers that GCC has precompiled.
run_clang_tidy() {
  local build="$TAPER_BUILD_DIR/minimal"
  python3 -c 'import json, sys; print(*(e["file"] for e in json.load(open(sys.argv[1]))), sep="\0", end="")' \
    "$build/compile_commands.json" |
    xargs -0 -n 4 -P "${TAPER_JOBS:-$(count_cores)}" clang-tidy --quiet -p "$build" \
      --extra-arg=-Wno-unknown-warning-option
}

# provide_peers: PyTorch and what comes with it, in an environment of its own outside the tree.
provide_peers() {
  peers="${TAPER_DEPS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/taper}/peers"
  local packages=(torch transformers trl tokenizers safetensors numpy gguf pyarrow math-verify)
  say "Python packages of the peers ($peers, the first time some gigabytes)"
  [[ -x "$peers/bin/python" ]] || python3 -m venv "$peers" || return 1
  "$peers/bin/python" -c 'import gguf, math_verify, pyarrow, safetensors, tokenizers, torch, transformers, trl' \
    2> /dev/null ||
    run_logged peers "$peers/bin/python" -m pip install -q "${packages[@]}"
}

# run_peers: other programs' answers beside ours.
run_peers() {
  local python="$peers/bin/python"
  note "golden files against transformers" "$python" "$taper_root/tests/golden/make_models.py" --check
  note "golden pairs of numbers against Python's fractions" "$python" "$taper_root/tests/golden/make_rationals.py" --check
  note "tokenizers against Hugging Face" "$python" "$taper_root/tests/peers/compare_tokenizers.py" \
    "$TAPER_BUILD_DIR/$preset/tests/text/tokenize_tool"
  note "chat templates of TRL against transformers" compare_chat_templates
  note "the worker that asks Math-Verify" "$python" "$taper_root/tools/tests/test_reward_math_verify.py"
  note "converter from Parquet" "$python" "$taper_root/tools/tests/test_parquet.py"
  note "golden fine-tuning against transformers" "$python" "$taper_root/tests/golden/make_sft.py" --check
  note "golden reward models against transformers" "$python" "$taper_root/tests/golden/make_reward_model.py" --check
  note "golden advantages and losses against PyTorch" "$python" "$taper_root/tests/golden/make_rl.py" --check
}

# compare_chat_templates: those that TRL ships for the models it supports, less those that doc/validation.md names.
compare_chat_templates() {
  local cases folder
  local others=(cohere. cohere_ diffusion_gemma gemma4. gemma4_v3 gemma4_v4 gemma4_v5 glm4moe idefics3 llava_next qwen3_8
    smolvlm)
  cases="$(mktemp)"
  folder="$("$peers/bin/python" -c 'import importlib.util as u; print(u.find_spec("trl").submodule_search_locations[0])')"
  "$peers/bin/python" "$taper_root/tests/golden/make_chat.py" --of "$folder/chat_templates" "$cases" "${others[@]}" &&
    TAPER_CHAT_CASES="$cases" "$TAPER_BUILD_DIR/$preset/tests/text/test_text" 'rendered chats*'
  local status=$?
  rm -f "$cases"
  return $status
}

# run_peers_on MODEL: the same on a real model.
run_peers_on() {
  local python="$peers/bin/python" taper="$TAPER_BUILD_DIR/$preset/bin/taper" model="$1"
  note "score and generate against transformers" "$python" "$taper_root/tests/peers/compare_transformers.py" \
    --taper "$taper" --model "$model"
  note "... with a repetition penalty" "$python" "$taper_root/tests/peers/compare_transformers.py" \
    --taper "$taper" --model "$model" --repetition-penalty 1.3
  note "... with tensor parallelism" "$python" "$taper_root/tests/peers/compare_transformers.py" \
    --taper "$taper" --model "$model" --launcher "mpiexec -n 2" --layout 2x1
  note "fine-tuning against transformers" "$python" "$taper_root/tests/peers/compare_sft.py" --taper "$taper" \
    --model "$model"
  note "reward models against transformers" "$python" "$taper_root/tests/peers/compare_reward_model.py" \
    --taper "$taper" --model "$model" --launcher "mpiexec -n 2" --tp 2
  note "training against PyTorch" "$python" "$taper_root/tests/peers/compare_training.py" \
    --tool "$TAPER_BUILD_DIR/$preset/tests/peers/training_tool" --model "$model"
  note "... and against float64" "$python" "$taper_root/tests/peers/compare_training.py" \
    --tool "$TAPER_BUILD_DIR/$preset/tests/peers/training_tool" --model "$model" --float64
}
