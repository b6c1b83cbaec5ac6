# SPDX-License-Identifier: Apache-2.0
"""A Slurm of one's own on this machine for tests: munged, slurmctld and some slurmd in a scratch folder.

Needs root and Debian's slurm-wlm and munge. Everything listens on the loopback interface (or in network namespaces,
see namespaces.py), has its own key, sockets, ports, state and spool, and ends with the process that started it.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "faults"))
from taper_runs import PATIENCE, end_of  # noqa: E402

PROGRAMS = ["munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "squeue", "scancel"]
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LIBC = ctypes.CDLL(None)

CONFIG = """\
ClusterName=taper
SlurmctldHost={host}({controller})
SlurmctldPort={port}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket,cred_expire={cred_expire}
SlurmUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=bf_interval=1,batch_sched_delay=0,sched_interval=1
MpiDefault=none
ReturnToService=2
SlurmdTimeout={slurmd_timeout}
KillWait={kill_wait}
MinJobAge=3600
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MailProg=/bin/true
PartitionName=normal Nodes=ALL Default=YES PriorityTier=1
PartitionName=urgent Nodes=ALL PriorityTier=10
"""


class Failure(Exception):
    """What a test found, with what there is to see about it."""


def missing() -> str:
    """Why there can be no cluster here; empty if there can."""
    if os.geteuid() != 0:
        return "only root can run a Slurm of its own"
    absent = [name for name in PROGRAMS if not shutil.which(name)]
    return f"{', '.join(absent)} not found (Debian packages slurm-wlm and munge)" if absent else ""


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on now, all different."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def clean_environment() -> dict[str, str]:
    """Without what another Slurm, or its user, has set."""
    foreign = ("SLURM", "SBATCH_", "SRUN_", "SALLOC_", "SQUEUE_", "SCANCEL_", "PMI_", "TAPER_")
    return {name: value for name, value in os.environ.items() if not name.startswith(foreign)}


def die_with_parent() -> None:
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def processes_below(root: int) -> dict[int, int]:
    """Descendants of a process that are alive, with their parents."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                state, parent = (entry / "stat").read_text().rsplit(")", 1)[1].split()[:2]
                if state != "Z":
                    parents[int(entry.name)] = int(parent)
    found, queue = {}, [root]
    for each in queue:
        children = [pid for pid, parent in parents.items() if parent == each]
        queue += children
        found.update({pid: each for pid in children})
    return found


def environment_of(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def end_processes(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


class Node:
    def __init__(self, name: str, address: str, port: int, prefix: list[str]):
        self.name, self.address, self.port = name, address, port
        self.prefix = prefix  # what starts a command on the node
        self.process: subprocess.Popen | None = None


class Cluster:
    """Use as `with Cluster(folder) as cluster`: it runs inside the block, and nothing of it afterwards."""

    def __init__(self, folder: Path, nodes: int = 2, cpus: int = 4, network=None, slurmd_timeout: int = 300,
                 kill_wait: int = 30, cred_expire: int = 8):
        self.folder, self.cpus, self.network = folder, cpus, network
        self.environment = {**clean_environment(), "SLURM_CONF": str(folder / "slurm.conf")}
        self.settings = {"slurmd_timeout": slurmd_timeout, "kill_wait": kill_wait, "cred_expire": cred_expire}
        ports = free_ports(nodes + 1)
        self.port = ports.pop()
        self.names = [f"n{i + 1}" for i in range(nodes)]
        self.ports = ports
        self.nodes: dict[str, Node] = {}
        self.daemons: list[subprocess.Popen] = []

    # --- start and end -----------------------------------------------------------------------------------------

    def __enter__(self) -> "Cluster":
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1)  # slurmstepd leaves its parent; it comes to us
        self.before = set(processes_below(os.getpid()))
        try:
            if self.network:
                self.network.start(self.names)
            for name, port in zip(self.names, self.ports):
                address = self.network.address(name) if self.network else "127.0.0.1"
                self.nodes[name] = Node(name, address, port, self.network.prefix(name) if self.network else [])
            self.write_config()
            self.start_munge()
            self.start_daemon("slurmctld", self.controller_prefix() + ["slurmctld", "-D", "-c"])
            for name in self.names:
                self.start_node(name)
            self.wait_for(lambda: self.client("sinfo", "-h", "-o", "%T").split() == ["idle"], 60, "no node came up")
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_) -> None:
        self.stop()

    def stop(self) -> None:
        for process in reversed(self.daemons):
            if process.poll() is None:
                process.terminate()
        deadline = time.monotonic() + 10
        while any(process.poll() is None for process in self.daemons) and time.monotonic() < deadline:
            time.sleep(0.05)
        while ours := [pid for pid in processes_below(os.getpid()) if pid not in self.before]:
            end_processes(ours)
            time.sleep(0.05)
        for process in self.daemons:
            process.wait()

    def controller_prefix(self) -> list[str]:
        return self.network.prefix("controller") if self.network else []

    def write_config(self) -> None:
        host = socket.gethostname().split(".")[0]
        text = CONFIG.format(host=host, controller=self.network.address("controller") if self.network else "127.0.0.1",
                             port=self.port, folder=self.folder, **self.settings)
        for node in self.nodes.values():
            text += (f"NodeName={node.name} NodeHostname={host} NodeAddr={node.address} Port={node.port} "
                     f"CPUs={self.cpus} RealMemory=1000\n")
            (self.folder / f"spool.{node.name}").mkdir()
        (self.folder / "state").mkdir()
        (self.folder / "slurm.conf").write_text(text)

    def start_munge(self) -> None:
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        options = {"key-file": key, "socket": self.folder / "munge.socket", "pid-file": self.folder / "munge.pid",
                   "log-file": self.folder / "munged.log", "seed-file": self.folder / "munge.seed"}
        self.start_daemon("munged", ["munged", "--foreground", "--force"] +
                          [f"--{name}={value}" for name, value in options.items()])
        self.wait_for((self.folder / "munge.socket").exists, 30, "munged does not start")

    def start_daemon(self, name: str, words: list[str]) -> subprocess.Popen:
        with open(self.folder / f"{name}.out", "ab") as log:
            process = subprocess.Popen(words, env=self.environment, stdin=subprocess.DEVNULL,
                                       stdout=log, stderr=log, preexec_fn=die_with_parent, start_new_session=True)
        self.daemons.append(process)
        return process

    def start_node(self, name: str) -> None:
        node = self.nodes[name]
        node.process = self.start_daemon(f"slurmd-{name}", node.prefix + ["slurmd", "-D", "-N", name])

    def kill_node(self, name: str) -> None:
        """As when its power fails: slurmd and all steps and ranks of the node are gone at once."""
        node, mark = self.nodes[name], f"SLURMD_NODENAME={name}".encode()
        below = processes_below(os.getpid())
        tasks = [pid for pid in below if mark in environment_of(pid)]
        steps = {below[pid] for pid in tasks if below[pid] in below and "slurmstepd" in name_of(below[pid])}
        node.process.kill()
        end_processes([*steps, *tasks])
        node.process.wait()

    # --- what users do ------------------------------------------------------------------------------------------

    def client(self, *words, cwd: Path | None = None, env: dict | None = None, check: bool = True) -> str:
        """A command of Slurm, as on a login node: its output."""
        done = subprocess.run(self.controller_prefix() + [str(word) for word in words], cwd=cwd, text=True,
                              env={**self.environment, **(env or {})}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
        if check and done.returncode != 0:
            raise Failure(f"{' '.join(map(str, words))} ended with {done.returncode}: {done.stdout}")
        return done.stdout.strip()

    def submit(self, *words, **more) -> str:
        """sbatch: the number of the job."""
        return self.client("sbatch", "--parsable", *words, **more).split(";")[0]

    def job(self, number: str) -> dict[str, str]:
        """What `scontrol show job` says, e.g. JobState, Restarts, ExitCode."""
        text = self.client("scontrol", "--oneliner", "show", "job", number)
        return dict(word.split("=", 1) for word in text.split() if "=" in word)

    def wait_for(self, true, seconds: float, what: str) -> None:
        """A hang guard, no speed limit."""
        deadline = end_of(seconds)
        while not true():
            if time.monotonic() > deadline:
                raise Failure(f"{what} within {PATIENCE * seconds:.0f} s\n{self.logs()}")
            time.sleep(0.1)

    def wait_for_state(self, number: str, *states: str, seconds: float = 300) -> dict[str, str]:
        """Until the job is in one of these states, e.g. RUNNING or COMPLETED; the last job() of it."""
        found = {}

        def is_there() -> bool:
            found.update(self.job(number))
            return found["JobState"] in states
        with contextlib.suppress(Failure):
            self.wait_for(is_there, seconds, "")
        if found.get("JobState") not in states:
            raise Failure(f"job {number} is {found.get('JobState')}, not {' or '.join(states)}\n{self.logs()}")
        return found

    def logs(self) -> str:
        """The ends of the daemons' logs, and what the queue holds."""
        parts = [f"--- squeue\n{self.client('squeue', '-o', '%i %j %T %r %N', check=False)}"]
        for file in sorted(self.folder.glob("*.out")):
            parts.append(f"--- {file.name}\n" + "\n".join(file.read_text(errors="replace").splitlines()[-15:]))
        return "\n".join(parts)


def name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""
