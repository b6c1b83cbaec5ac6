# SPDX-License-Identifier: Apache-2.0
"""Our files as h5py, h5dump and the safetensors package see them, and theirs as we do.

readers.py COMMAND...: COMMAND DIRECTORY reads and writes the samples (samples.cpp). Exit code 77: packages missing.
"""
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import h5py
    import numpy as np
    from safetensors import safe_open
    from safetensors.numpy import save_file
except ImportError as missing:
    print(f"skipped: {missing} (set TAPER_TEST_PYTHON to an interpreter with h5py, numpy and safetensors)")
    sys.exit(77)


def eighths(count):
    return 0.125 * np.arange(count, dtype=np.float32) - 10


def write_python_weights(path):
    rng = np.random.default_rng(1)
    tensors = {
        "a.f32": rng.standard_normal((4, 6)).astype(np.float32),
        "b.f16": rng.standard_normal((3, 5)).astype(np.float16),
        "c.i64": np.arange(4, dtype=np.int64),
        "d.scalar": np.array(1.5, dtype=np.float32),
        "e.bool": np.array([True, False]),
    }
    save_file(tensors, path, metadata={"format": "np"})
    return tensors


def check_python_weights(tensors, path):
    seen = json.loads(path.read_text())
    assert sorted(seen) == sorted(tensors)
    for name, tensor in tensors.items():
        assert seen[name]["shape"] == list(tensor.shape), name
        if "values" in seen[name]:
            got = np.array(seen[name]["values"], dtype=np.float32).reshape(tensor.shape)
            np.testing.assert_array_equal(got, tensor.astype(np.float32))
    assert "values" in seen["b.f16"] and "values" not in seen["c.i64"]


def check_our_weights(path):
    with safe_open(path, framework="numpy") as file:
        assert file.metadata() == {"format": "pt"}
        assert sorted(file.keys()) == ["bf16", "empty", "f32", "scalar"]
        np.testing.assert_array_equal(file.get_tensor("f32"), eighths(30).reshape(3, 5, 2))
        assert file.get_tensor("empty").shape == (0, 2)
        assert file.get_tensor("scalar") == 2.5
        assert file.get_slice("bf16").get_dtype() == "BF16"
    # numpy has no bf16: the upper halves of floats, and eighths up to 16 fit.
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    assert length % 8 == 0
    begin, end = json.loads(raw[8 : 8 + length])["bf16"]["data_offsets"]
    halves = np.frombuffer(raw[8 + length + begin : 8 + length + end], dtype="<u2").astype("<u4")
    np.testing.assert_array_equal((halves << 16).view("<f4"), eighths(77))


def check_described(file):
    def visit(name, item):
        if isinstance(item, h5py.Dataset):
            assert item.attrs["units"] and item.attrs["description"], name

    file.visititems(visit)


def check_run(path):
    with h5py.File(path) as file:
        check_described(file)
        assert file.attrs["format"] == "taper-run" and file.attrs["format_version"] == 2
        assert file["config"][()].decode() == "Seed: 1\n"
        np.testing.assert_array_equal(file["metrics/timing_s/gen"], 0.1 * np.arange(5))
        scales = file["metrics/critic/score/mean"].dims[0]
        assert len(scales) == 0 or scales[0].name == "/metrics/step"
        np.testing.assert_array_equal(file["timing/gen"][2], [1, 2, 3])
        np.testing.assert_array_equal(file["rollout/response_length"][3], [3, 4])
        assert file["metrics/timing_s/gen"].fletcher32
        layouts = file["layouts/layout"]
        assert h5py.check_string_dtype(layouts.dtype).encoding == "utf-8" and layouts.fletcher32
        assert layouts.asstr()[:].tolist() == ["1x2"] * 3 + ["2+1+1"] * 2
        assert file["layouts/alive"].dtype == np.int64 and file["layouts/alive"][:].tolist() == [9, 8, 7, 6, 5]
    for number, line in enumerate(path.with_name("metrics.jsonl").read_text().splitlines()):
        assert json.loads(line)["step"] == number


def check_rollouts(path):
    with h5py.File(path) as file:
        check_described(file)
        assert file.attrs["iteration"] == 3
        np.testing.assert_array_equal(file["group"], np.arange(50))
        np.testing.assert_array_equal(file["response_length"], 10 * np.arange(50))
        offsets = file["tokens/offsets"][:]
        values = file["tokens/values"]
        assert values.fletcher32 and values.compression == "gzip"
        assert len(offsets) == 51 and offsets[-1] == len(values)
        for group in (0, 7, 49):
            np.testing.assert_array_equal(values[offsets[group] : offsets[group + 1]], group + np.arange(2 + 10 * group))
        assert [name.decode() for name in file["reward_names"]] == ["correct"]
        assert (file["finish"][:] == 2).all() and "2 length" in file["finish"].attrs["description"]


def check_h5dump(path):
    tool = shutil.which("h5dump")
    if tool is None:
        print("h5dump is not here: not run")
        return
    result = subprocess.run([tool, str(path)], capture_output=True, text=True)
    assert result.returncode == 0 and not result.stderr, result.stderr


def main():
    with tempfile.TemporaryDirectory(prefix="taper-test-") as name:
        directory = Path(name)
        tensors = write_python_weights(directory / "python.safetensors")
        subprocess.run([*sys.argv[1:], name], check=True)
        check_python_weights(tensors, directory / "python.json")
        check_our_weights(directory / "taper.safetensors")
        check_run(directory / "run.h5")
        check_rollouts(directory / "rollouts.h5")
        for file in ("run.h5", "rollouts.h5"):
            check_h5dump(directory / file)
    print("all readable")


if __name__ == "__main__":
    main()
