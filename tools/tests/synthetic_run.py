# SPDX-License-Identifier: Apache-2.0
"""Files as `taper train` writes them, with made-up numbers that a test knows."""
import json
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np

SAMPLES = 128
PHASES = {
    "gen": 2.2,
    "reward": 0.06,
    "ref": 0.3,
    "adv": 0.01,
    "update_actor": 1.2,
    "publish": 0.08,
    "testing": 0.9,
}
CONFIG = """# The job as a whole
Run:
  # Seed of all random numbers [an integer, at least 0]
  Seed: {seed}

# AdamW and its learning rate
Optimizer:
  # Peak learning rate [a number, at least 0]
  Learning Rate: {rate}
  Beta1: 0.9

# Where results go
Output:
  # run.h5, rollouts, metrics.jsonl, checkpoints [text]
  Directory: 'out/seed{seed}'
"""


@dataclass(frozen=True)
class Synthetic:
    """What was put in, to compare with."""

    steps: np.ndarray  # (iterations)
    metrics: dict[str, np.ndarray]  # (iterations)
    timing: dict[str, np.ndarray]  # (iterations, 3)
    lengths: np.ndarray  # (iterations, samples), -1: none
    config: str


def make_numbers(iterations: int, seed: int = 1, rate: float = 2e-4) -> Synthetic:
    rng = np.random.default_rng(seed)
    steps = np.arange(1, iterations + 1)
    progress = steps / max(iterations, 45)
    lengths = (
        np.minimum(
            np.exp(rng.normal(3.7 + 0.5 * progress[:, None], 0.7, (iterations, SAMPLES))), 1024
        ).astype(np.int32)
        + 1
    )
    if iterations > 2:
        lengths[2, 100:] = -1  # an iteration with fewer samples
    score = (
        0.48 + 0.4 * np.tanh(rate / 1e-4 * progress) / np.tanh(2) + rng.normal(0, 0.02, iterations)
    )
    timing = {}
    for phase, seconds in PHASES.items():
        mean = seconds * (1 + 0.2 * rng.random(iterations))
        if phase == "testing":
            mean *= steps % 10 == 1
        apart = mean * (0.12 if phase in ("gen", "update_actor") else 0.03) * rng.random(iterations)
        timing[phase] = np.stack([mean - apart, mean, mean + apart], axis=1)
    step = sum(values[:, 1] for values in timing.values()) + 0.05
    tokens = np.where(lengths > 0, lengths, 0).sum(axis=1)
    valid = [row[row >= 0] for row in lengths]
    metrics = {
        "critic/score/mean": score,
        "critic/score/max": np.ones(iterations),
        "critic/score/min": np.zeros(iterations),
        "critic/rewards/mean": score.copy(),
        "response_length/mean": np.array([row.mean() for row in valid]),
        "response_length/max": np.array([row.max() for row in valid], float),
        "response_length/min": np.array([row.min() for row in valid], float),
        "response_length/clip_ratio": rng.binomial(SAMPLES, 0.004, iterations) / SAMPLES,
        "prompt_length/mean": np.full(iterations, 31.0),
        "actor/entropy": 0.8 * np.exp(-1.2 * progress) + rng.normal(0, 0.01, iterations),
        "actor/pg_loss": rng.normal(0, 0.02, iterations),
        "actor/pg_clipfrac": 0.02 * rng.random(iterations),
        "actor/ppo_kl": 0.002 * rng.random(iterations),
        "actor/kl_loss": 0.05 * progress + 0.001 * rng.random(iterations),
        "actor/grad_norm": 0.5 + rng.gamma(2, 0.15, iterations),
        "actor/lr": rate * np.minimum(steps / 5, 1),
        "training/rollout_probs_diff_max": np.zeros(iterations),
        "training/global_step": steps.astype(float),
        "perf/throughput": (tokens + 31 * SAMPLES) / step,
        "perf/time_per_step": step,
        "perf/max_memory_allocated_gb": 0.4 + 0.05 * progress,
        "rollout/preemptions": rng.binomial(3, 0.1, iterations).astype(float),
        "val/score/mean": np.where(steps % 10 == 1, score + 0.03, np.nan),
        "timing_s/step": step,
        **{f"timing_s/{phase}": values[:, 1] for phase, values in timing.items()},
    }
    return Synthetic(steps, metrics, timing, lengths, CONFIG.format(seed=seed, rate=rate))


def write_run(path: Path, numbers: Synthetic) -> None:
    """run.h5 as of src/results/RunFile.cpp: fixed-length strings, checksums, units, scales."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        _set_text(
            file,
            {"format": "taper-run", "git_hash": "0123456789ab", "created": "2030-01-02T03:04:05Z"},
        )
        file.attrs["format_version"] = np.int64(2)
        text = numbers.config.encode()
        config = file.create_dataset(
            "config", data=np.array(text, dtype=h5py.string_dtype("utf-8", max(1, len(text))))
        )
        _set_text(config, {"units": "1", "description": "parameters of the run, including defaults"})
        _set_text(
            file.create_group("build"),
            {"version": "0.1.0", "compiler": "GCC 12.2.0", "build_type": "Release"},
        )
        _set_text(
            file.create_group("machine"), {"host": "node01", "hardware_threads": "2", "ranks": "2"}
        )
        _write_table(file, "metrics", numbers.steps, numbers.metrics)
        _write_table(file, "timing", numbers.steps, numbers.timing)
        if numbers.lengths.size:
            _write_table(file, "rollout", numbers.steps, {"response_length": numbers.lengths})
    alive = np.arange(2.0 * len(numbers.steps[:2]))
    write_records(path, "decisions", np.repeat(numbers.steps[:2], 2), {"alive": alive})


def write_records(
    path: Path, table: str, steps: np.ndarray, columns: dict[str, np.ndarray]
) -> None:
    """Adds a table of records to a run.h5."""
    with h5py.File(path, "r+") as file:
        _write_table(file, table, steps, columns)
        _set_text(file[table], {"kind": "records"})


def write_log(path: Path, numbers: Synthetic) -> None:
    lines = []
    for i, step in enumerate(numbers.steps):
        values = {name: float(column[i]) for name, column in numbers.metrics.items()}
        lines.append(
            json.dumps(
                {"step": int(step)}
                | {name: v if np.isfinite(v) else "nan" for name, v in values.items()}
            )
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


def write_rollouts(path: Path) -> None:
    """Three samples with responses of 2, 0 and 3 tokens."""
    with h5py.File(path, "w") as file:
        _set_text(file, {"format": "taper-rollouts", "git_hash": "0123456789ab", "model": "tiny"})
        file.attrs["format_version"], file.attrs["iteration"] = np.int64(1), np.int64(7)
        file["reward_names"] = np.array(
            [b"correct", b"length"], dtype=h5py.string_dtype("utf-8", 7)
        )
        file["group"], file["sample"] = np.array([0, 0, 1]), np.array([0, 1, 0], np.int32)
        file["prompt_length"], file["response_length"] = np.array([2, 2, 1], np.int32), np.array(
            [2, 0, 3], np.int32
        )
        file["advantage"], file["finish"] = np.array([1.0, -1.0, 0.0]), np.array([0, 3, 2], np.int8)
        file["rewards"] = np.array([[1, 0.5], [0, 0], [1, 0]], np.float32)
        ragged = {
            "tokens": (np.arange(10, dtype=np.int32), [0, 4, 6, 10]),
            "log_probs": (-np.arange(5, dtype=np.float32), [0, 2, 2, 5]),
            "kept_mass": (np.empty(0, np.float32), [0, 0, 0, 0]),
            "values": (np.arange(5, dtype=np.float32), [0, 2, 2, 5]),
            "layout": (np.array([[0, 1, 0], [0, 1, 1], [2, 2, 0]], np.int32), [0, 1, 1, 3]),
        }
        for name, (values, offsets) in ragged.items():
            file[f"{name}/values"], file[f"{name}/offsets"] = values, np.array(offsets)


def _write_table(
    file: h5py.File, group: str, steps: np.ndarray, columns: dict[str, np.ndarray]
) -> None:
    scale = file.create_dataset(f"{group}/step", data=steps.astype(np.int64), fletcher32=True)
    _set_text(scale, {"units": "1", "description": "iteration of each row"})
    scale.make_scale("step")
    for name, values in columns.items():
        if values.dtype.kind == "U":
            texts = np.char.encode(values, "utf-8")
            values = texts.astype(h5py.string_dtype("utf-8", texts.dtype.itemsize))
        dataset = file.create_dataset(f"{group}/{name}", data=values, fletcher32=True)
        unit = "s" if group == "timing" or name.startswith("timing_s/") else "1"
        _set_text(dataset, {"units": unit, "description": name})
        dataset.dims[0].attach_scale(scale)


def _set_text(item: h5py.HLObject, attributes: dict[str, str]) -> None:
    for name, value in attributes.items():
        data = value.encode()
        item.attrs.create(name, data, dtype=h5py.string_dtype("utf-8", max(1, len(data))))
