# SPDX-License-Identifier: Apache-2.0
# A Python environment for reports, data scripts, golden files and tests of file formats; `taper train` never needs it.
# Sourced by install.sh.

TAPER_PYTHON_RECIPE=2 # raise it when the packages change: a new environment is made beside the old one
python_packages=("h5py>=3.8" "numpy>=1.24" "matplotlib>=3.6" "pyyaml>=6" "safetensors>=0.4")

# python_key: the environment belongs to one interpreter version.
python_key() {
  "${PYTHON:-python3}" -c 'import platform, sys
print("%s%d.%d.%d-%s" % (sys.implementation.name, *sys.version_info[:3], platform.machine()))' \
    2> /dev/null
}

build_python() {
  "${PYTHON:-python3}" -m venv "$1" && "$1/bin/python" -m pip install -q "${python_packages[@]}" &&
    "$1/bin/python" -c 'import h5py, matplotlib, numpy, safetensors, yaml'
}

install_python() {
  local prefix="$1" stage
  [[ ! -d "$prefix" ]] || return 0
  stage="$(new_work_dir python)"
  step python build_python "$stage" || exit 1
  # The start lines of bin/* name the folder they were made in.
  grep -rlIF "$stage" "$stage/bin" "$stage/pyvenv.cfg" | xargs -r sed -i "s#$stage#$prefix#g"
  chmod 755 "$stage"
  publish "$stage" "$prefix"
}
