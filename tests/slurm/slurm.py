#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The scripts of slurm/ on a real Slurm of this machine: training on two nodes, preemption, stops, scancel, arrays,
pipelines. Whatever interrupts a run, its end has the bits of an undisturbed one."""

import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import long_scenarios
import scenarios
from cluster import Cluster, Failure, missing
from jobs import Jobs, Runs, arguments
from namespaces import Namespaces
from namespaces import missing as namespaces_missing

SKIPPED = 77


class Test:
    def __init__(self, args, cluster: Cluster):
        args.taper, args.source = args.taper.resolve(), args.source.resolve()  # jobs run in folders of their own
        self.jobs = Jobs(cluster, Runs(args, cluster.folder))
        self.start = time.monotonic()

    def tell(self, scenario, *more) -> None:
        said = scenario(self.jobs, *more)
        print(f"[{time.monotonic() - self.start:4.0f} s] {scenario.__name__}: {said}", flush=True)

    def tell_at_once(self, chosen: list) -> None:
        """They wait for Slurm most of the time."""
        with ThreadPoolExecutor(3) as pool:
            for done in [pool.submit(self.tell, each) for each in chosen]:
                done.result()


def quick(args, folder: Path) -> None:
    with Cluster(folder) as cluster:
        test = Test(args, cluster)
        test.tell(scenarios.two_nodes)
        test.tell(scenarios.preemption)  # takes the nodes from all jobs
        test.tell_at_once([scenarios.asked_to_stop, scenarios.cancelled, scenarios.array, scenarios.pipeline,
                           scenarios.bad_input, scenarios.stopped_for_good, scenarios.fine_tuning])


def long(args, folder: Path) -> None:
    with Cluster(folder, nodes=4, slurmd_timeout=20) as cluster:
        test = Test(args, cluster)
        for each in [scenarios.two_nodes, *long_scenarios.LONG]:
            test.tell(each)


def namespaces(args, folder: Path) -> None:
    with Cluster(folder, network=Namespaces()) as cluster:
        test = Test(args, cluster)
        for each in [scenarios.two_nodes, long_scenarios.as_mpiexec, scenarios.preemption, scenarios.asked_to_stop]:
            test.tell(each)


def kills(args, folder: Path) -> None:
    with Cluster(folder, kill_wait=10) as cluster:  # what ranks that wait for a killed one are given
        test = Test(args, cluster)
        test.tell(scenarios.two_nodes)
        test.tell(long_scenarios.random_kills, args.kills, args.seed)


def enter_process_namespace() -> None:
    """If that is possible: all processes of the test end with it, even if it is killed."""
    unshare = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.getpid() != 1 and subprocess.run([*unshare, "true"], stderr=subprocess.DEVNULL).returncode == 0:
        os.execvp(unshare[0], [*unshare, sys.executable, *sys.argv])


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--long", action="store_true", help="what takes minutes, instead")
    parser.add_argument("--namespaces", action="store_true", help="nodes with a network of their own")
    parser.add_argument("--kills", type=int, help="random interruptions of one run")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if why := missing() or args.namespaces and namespaces_missing():
        print(f"skipped: {why}")
        return SKIPPED
    enter_process_namespace()
    test = long if args.long else namespaces if args.namespaces else kills if args.kills else quick
    with tempfile.TemporaryDirectory(prefix="taper-slurm-") as scratch:
        try:
            test(args, Path(scratch))
        except Failure as failure:
            print(f"FAILED: {failure}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
