# SPDX-License-Identifier: Apache-2.0
"""What happens to jobs on a cluster, each with what must come of it. The quick ones: seconds of work each."""

import json

from jobs import PATIENCE, TWO_NODES, Jobs, check, status

# Many short iterations of a tiny model, for what needs no exact end.
TINY = {"Training__Iterations": 60, "Rollout__Prompts": 4, "Rollout__Samples_Per_Prompt": 2,
        "Rollout__Max_New_Tokens": 24, "Rollout__KV_Memory_MB": 8, "Training__Max_Tokens": 256, "Evaluation__Every": 0}
TUNING_STEPS = 3000 // PATIENCE  # of some milliseconds


def two_nodes(jobs: Jobs) -> str:
    """The undisturbed run that others are compared with."""
    jobs.wait_until_over("straight", jobs.train("straight"))
    log = jobs.log("straight")
    for words in ("rank 0  node n1  cores", "rank 1  node n2  cores", "run completed after iteration"):
        check(words in log, f"'{words}' is not in the log", log)
    return "one rank on each of two nodes"


def preemption(jobs: Jobs) -> str:
    """A job of a higher partition takes the nodes; Slurm sends SIGTERM and requeues."""
    number = jobs.train("preempted")
    jobs.wait_for_iteration("preempted", 1)
    jobs.preempt()
    restarts = jobs.wait_until_equal("preempted", number)["Restarts"]
    log = jobs.log("preempted")
    check(restarts == "1" and "DUE TO PREEMPTION" in log, f"{restarts} restarts", log)
    check("stopped after iteration" in log, "no safe stop", log)
    return "preempted, saved, requeued, the same bits"


def asked_to_stop(jobs: Jobs) -> str:
    """The signal before the time is over: the script gets exit code 75 and requeues its job."""
    number = jobs.train("asked")
    jobs.wait_for_iteration("asked", 1)
    jobs.ask_to_stop(number)
    restarts = jobs.wait_until_equal("asked", number)["Restarts"]
    log = jobs.log("asked")
    check(restarts == "1" and log.count("start 0 on") == 1 and log.count("start 1 on") == 1, "one log of both", log)
    check("stopped, to be requeued" in log and "run stopped after iteration" in log, "the script says so", log)
    return "SIGUSR1, exit code 75, requeued by the script, the same bits"


def stopped_for_good(jobs: Jobs) -> str:
    """Jobs that may not come again end with 75: Slurm forbids it, or they were restarted often enough."""
    cases = {"forbidden": (["--no-requeue"], {}, "Slurm says why above"),
             "often": ([], {"TAPER_MAX_RESTARTS": "0"}, "not requeued after 0 restarts")}
    for name, (options, env, words) in cases.items():
        number = jobs.train(name, options=options, env=env, Model__Directory=jobs.tiny, **TINY)
        jobs.wait_for_iteration(name, 1)
        jobs.cluster.client("scancel", "--signal=USR1", number)  # to the ranks, not to the script
        found = jobs.wait_until_over(name, number, "FAILED")
        check(found["ExitCode"] == "75:0" and words in jobs.log(name), f"{found}", jobs.log(name))
    return "exit code 75 where a job must not be requeued"


def fine_tuning(jobs: Jobs) -> str:
    """Ranks that are killed when they have stopped safely, as the first one that leaves may do to the others: the
    script sees a code above 128 and requeues its job all the same."""
    folder = jobs.folder("tuned")
    wrapper = folder / "killed-at-its-end"
    wrapper.write_text(f'#!/usr/bin/env bash\ntrap : USR1\n"{jobs.runs.taper}" "$@"\ncode=$?\n'
                       '[[ $code -ne 75 ]] || kill -9 $$\nexit $code\n')
    wrapper.chmod(0o755)
    values = {"Model/Directory": jobs.tiny, "Output/Directory": folder / "model", "Training/Steps": TUNING_STEPS,
              "Training/Batch Tokens": 256, "Training/Max Tokens": 256}
    words = [word for name, value in values.items() for word in ("--set", f"{name}={value}")]
    number = jobs.submit("tuned", "sft.sbatch", *words, options=TWO_NODES, env={"TAPER_COMMAND": str(wrapper)})
    run = folder / "model.run"
    jobs.wait_for_iteration("tuned", 1, output=run)
    jobs.ask_to_stop(number)
    restarts = jobs.wait_until_over("tuned", number)["Restarts"]
    log = jobs.log("tuned")
    check(restarts == "1" and "Killed" in log, f"{restarts} restarts", log)
    check("run stopped after iteration" in log and "stopped, to be requeued" in log, "the script says so", log)
    check(status(run)["state"] == "completed" and (folder / "model/config.json").exists(), f"{status(run)}", log)
    return "fine-tuning, stopped, its ranks killed at their end, requeued by the script"


def cancelled(jobs: Jobs) -> str:
    """scancel ends a job for good, with a checkpoint; the same sbatch command goes on."""
    number = jobs.train("cancelled")
    jobs.wait_for_iteration("cancelled", 1)
    jobs.cluster.client("scancel", number)
    found = jobs.wait_until_over("cancelled", number, "CANCELLED")
    check(found["Restarts"] == "0", f"a cancelled job came again: {found}")
    state = status(jobs.output("cancelled"))
    check(state["state"] == "stopped" and state["why"] in ("SIGTERM", "SIGUSR1"), f"{state}", jobs.log("cancelled"))
    jobs.wait_until_equal("cancelled", jobs.train("cancelled"))
    return "scancel, not requeued, submitted again, the same bits"


def bad_input(jobs: Jobs) -> str:
    """Ends at once, says what is wrong, does not come again."""
    cases = {"typo": (dict(Rollout__Temprature="1"), {}, "Rollout/Temprature"),
             "no-model": (dict(Model__Directory="/nowhere"), {}, "Model/Directory is /nowhere"),
             "wrong-mpi": ({}, {"TAPER_SRUN_OPTIONS": "--mpi=none"}, "srun --mpi=pmi2"),
             "no-taper": ({}, {"TAPER_COMMAND": "no-such-program"}, "no-such-program"),
             "no-time": (dict(Run__Deadline_Margin="1e9"), {}, "ends within Run/Deadline Margin"),
             "no-machine": ({}, {"TAPER_MACHINE": "nowhere"}, "machines/nowhere.env")}
    numbers = {name: jobs.train(name, options=["--time=60"], env=env, **changes)
               for name, (changes, env, _) in cases.items()}
    for name, number in numbers.items():
        found = jobs.wait_until_over(name, number, "FAILED")
        check(cases[name][2] in jobs.log(name), f"{name}: '{cases[name][2]}' is not in the log", jobs.log(name))
        check(found["Restarts"] == "0", f"{name}: {found}", jobs.log(name))
        check(not (jobs.output(name) / "status.json").exists(), f"{name}: there is a status")
    return f"{', '.join(cases)} refused with the reason"


def array(jobs: Jobs) -> str:
    """Seeds and parameters by index; a task that stops comes again alone."""
    folder = jobs.folder("array")
    (folder / "sweep.txt").write_text('--set "Optimizer/Learning Rate=1e-3"\n--set "Optimizer/Learning Rate=2e-3"\n')
    words = jobs.runs.train(jobs.tiny, folder / "seed-%a", **{**TINY, "Checkpoint__Every": 0})[1:]
    number = jobs.submit("array", "train.sbatch", *words, "@sweep.txt", "--set", "Run/Seed=%a",
                         options=[*TWO_NODES, "--array=1-2"])
    outputs = {index: folder / f"seed-{index}" for index in (1, 2)}
    for output in outputs.values():
        jobs.wait_for_iteration("array", 1, output=output)
    jobs.ask_to_stop(f"{number}_2")  # the last task has the number of the array
    restarts = [jobs.wait_until_over("array", f"{number}_{index}")["Restarts"] for index in outputs]
    check(restarts == ["0", "1"], f"restarts of the tasks: {restarts}", jobs.log("array"))
    models = [output / "checkpoints/iter_000060/model.safetensors" for output in outputs.values()]
    check(models[0].read_bytes() != models[1].read_bytes(), "both tasks have the same weights")
    log = jobs.log("array")
    for words in ("1e-3 --set Run/Seed=1", "2e-3 --set Run/Seed=2"):
        check(words in log, f"'{words}' is not in the log", log)
    table = jobs.cluster.client(jobs.scripts / "status.sh", *outputs.values(), folder / "nowhere")
    check(table.count("completed        60/60") == 2 and "nowhere (no status.json)" in table, table)
    return "two seeds, one of them stopped and requeued alone"


def pipeline(jobs: Jobs) -> str:
    """Train, then evaluate what came of it; the evaluation waits over a requeue, and goes where training fails."""
    words = jobs.runs.train(jobs.tiny, jobs.output("broken"), **{**TINY, "Rollout__Tensor_Parallel": 3})[1:]
    broken = jobs.pipeline("broken", "--static", *TWO_NODES, "--", *words)
    words = jobs.runs.train(jobs.tiny, jobs.output("pipeline"), **TINY)[1:]
    numbers = jobs.pipeline("pipeline", "--static", *TWO_NODES, "--", *words, "--", "--count", "4")
    jobs.wait_for_iteration("pipeline", 5)
    jobs.ask_to_stop(numbers["train"])
    check(jobs.wait_until_over("pipeline", numbers["train"])["Restarts"] == "1", "not requeued", jobs.log("pipeline"))
    jobs.wait_until_over("pipeline", numbers["eval"])
    figures = json.loads((jobs.output("pipeline") / "eval.json").read_text())
    check(figures, "no figures", jobs.log("pipeline"))
    jobs.wait_until_over("broken", broken["train"], "FAILED")
    jobs.wait_until_over("broken", broken["eval"], "CANCELLED")
    return "train with a requeue, then eval; nothing after a failure"

