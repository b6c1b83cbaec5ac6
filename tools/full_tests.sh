# SPDX-License-Identifier: Apache-2.0
# What `./run-tests --full` does beyond the default preset. Sourced by run-tests.

run_full_tests() {
  # MPI and OpenMP keep memory until the process ends, which is no leak of ours.
  export ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
  test_preset sanitize --label-exclude 'gpu|long|style'
  test_preset audit --label-exclude 'gpu|style'
  if command -v clang-tidy > /dev/null; then
    note "clang-tidy" run_clang_tidy
  else
    say "clang-tidy is not here: skipped"
    skipped=$((skipped + 1))
  fi
  if provide_peers; then
    run_peers
  else
    say "the packages of the peers cannot be installed: skipped"
    skipped=$((skipped + 1))
  fi
}

# run_clang_tidy: all files of the default build; .clang-tidy says which checks.
run_clang_tidy() {
  (cd "$taper_root" && find src kernels apps -name '*.cpp' ! -name '*.device.cpp' -print0 |
    xargs -0 -n 4 -P "${TAPER_JOBS:-$(nproc)}" clang-tidy --quiet -p "$TAPER_BUILD_DIR/$preset" \
      --extra-arg=-Wno-unknown-warning-option)
}

# provide_peers: PyTorch and what comes with it, in an environment of its own outside the tree.
provide_peers() {
  peers="${TAPER_DEPS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/taper}/peers"
  local packages=(torch transformers tokenizers safetensors numpy gguf pyarrow)
  say "Python packages of the peers ($peers, the first time some gigabytes)"
  [[ -x "$peers/bin/python" ]] || python3 -m venv "$peers" || return 1
  "$peers/bin/python" -c 'import gguf, pyarrow, safetensors, tokenizers, torch, transformers' 2> /dev/null ||
    run_logged peers "$peers/bin/python" -m pip install -q "${packages[@]}"
}

# run_peers: other programs' answers beside ours, on a real model where data/make_smollm2.py can fetch it.
run_peers() {
  local python="$peers/bin/python" taper="$TAPER_BUILD_DIR/$preset/bin/taper"
  local model="${TAPER_DEPS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/taper}/models/SmolLM2-135M-Instruct"
  note "golden files against transformers" "$python" "$taper_root/tests/golden/make_models.py" --check
  note "golden pairs of numbers against Python's fractions" "$python" "$taper_root/tests/golden/make_rationals.py" --check
  note "tokenizers against Hugging Face" "$python" "$taper_root/tests/peers/compare_tokenizers.py" \
    "$TAPER_BUILD_DIR/$preset/tests/text/tokenize_tool"
  [[ -d "$model" ]] || "$python" "$taper_root/data/make_smollm2.py" "$model" || return
  note "score and generate against transformers" "$python" "$taper_root/tests/peers/compare_transformers.py" \
    --taper "$taper" --model "$model"
  note "... with a repetition penalty" "$python" "$taper_root/tests/peers/compare_transformers.py" \
    --taper "$taper" --model "$model" --repetition-penalty 1.3
  note "... with tensor parallelism" "$python" "$taper_root/tests/peers/compare_transformers.py" \
    --taper "$taper" --model "$model" --launcher "mpiexec -n 2" --layout 2x1
  note "converter from Parquet" "$python" "$taper_root/tools/tests/test_parquet.py"
  note "golden fine-tuning against transformers" "$python" "$taper_root/tests/golden/make_sft.py" --check
  note "fine-tuning against transformers" "$python" "$taper_root/tests/peers/compare_sft.py" --taper "$taper" \
    --model "$model"
  note "training against PyTorch" "$python" "$taper_root/tests/peers/compare_training.py" \
    --tool "$TAPER_BUILD_DIR/$preset/tests/peers/training_tool" --model "$model"
}
