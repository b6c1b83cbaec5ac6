# SPDX-License-Identifier: Apache-2.0
# minja, the Jinja implementation in C++ that renders chat templates: one header, and for the tests
# published templates. No distribution packages it. Sourced by install.sh.

# This source package on PyPI holds both, in its folder vendor/llama.cpp.
llama_cpp_version=0.3.16
llama_cpp_sha=34ed0f9bd9431af045bb63d9324ae620ad0536653740e9bb163a2e1fcb973be6

download_llama_cpp() {
  printf 'llama-cpp-python==%s --hash=sha256:%s\n' "$llama_cpp_version" "$llama_cpp_sha" > "$1/pin.txt"
  "${PYTHON:-python3}" -m venv "$1/venv" &&
    "$1/venv/bin/pip" install -q setuptools wheel scikit-build-core &&
    "$1/venv/bin/pip" download -q --no-deps --no-binary :all: --no-build-isolation \
      --require-hashes -d "$1" -r "$1/pin.txt"
}

install_minja() {
  local prefix="$1" work name="llama_cpp_python-$llama_cpp_version" inner
  [[ ! -d "$prefix" ]] || return 0
  work="$(new_work_dir minja)"
  from_archives "$name.tar.gz" "$llama_cpp_sha" "$work" || step minja-download download_llama_cpp "$work" ||
    die "no source for minja: $name.tar.gz (set TAPER_DEPS_ARCHIVES?)"
  inner="$name/vendor/llama.cpp"
  mkdir -p "$work/source" "$work/stage/include/minja" "$work/stage/share/minja"
  tar -xzf "$work/$name.tar.gz" -C "$work/source" "$inner/vendor/minja" "$inner/models/templates"
  cp "$work/source/$inner/vendor/minja/minja.hpp" "$work/stage/include/minja"
  cp -r "$work/source/$inner/models/templates" "$work/stage/share/minja"
  publish "$work/stage" "$prefix"
}
