# SPDX-License-Identifier: Apache-2.0
"""Network namespaces for the nodes of a test cluster: each has an interface of its own, eth0, all are on one bridge.

A namespace lives as long as the process that holds it, so nothing of it survives the test.
"""

import shutil
import subprocess
import time

from cluster import die_with_parent, name_of

PREFIX = "10.213.77."


def missing() -> str:
    """Why there can be none here; empty if there can."""
    absent = [name for name in ("ip", "nsenter", "unshare") if not shutil.which(name)]
    if absent:
        return f"{', '.join(absent)} not found (Debian packages iproute2 and util-linux)"
    tried = subprocess.run(["unshare", "--net", "ip", "link", "add", "br0", "type", "bridge"], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True)
    return f"no network namespaces or bridges here: {tried.stdout.strip()}" if tried.returncode else ""


class Namespaces:
    def __init__(self):
        self.holders: dict[str, subprocess.Popen] = {}

    def start(self, nodes: list[str]) -> None:
        for name in ["controller", *nodes]:
            self.holders[name] = subprocess.Popen(["unshare", "--net", "sleep", "infinity"],
                                                  preexec_fn=die_with_parent, start_new_session=True)
            self.wait_for_namespace(name)
            self.ip(name, "link set lo up")
        self.ip("controller", "link add br0 type bridge")
        self.ip("controller", f"addr add {self.address('controller')}/24 dev br0")
        self.ip("controller", "link set br0 up")
        for name in nodes:
            self.ip("controller", f"link add to-{name} type veth peer name eth0 netns {self.holders[name].pid}")
            self.ip("controller", f"link set to-{name} master br0 up")
            self.ip(name, f"addr add {self.address(name)}/24 dev eth0")
            self.ip(name, "link set eth0 up")

    def wait_for_namespace(self, name: str) -> None:
        """unshare has made it once it has become sleep."""
        holder = self.holders[name]
        while name_of(holder.pid).strip() != "sleep":
            if holder.poll() is not None:
                raise OSError(f"unshare --net ended with {holder.returncode}")
            time.sleep(0.01)

    def address(self, name: str) -> str:
        return PREFIX + str(1 if name == "controller" else 1 + int(name[1:]))

    def prefix(self, name: str) -> list[str]:
        """Starts a command there. Not `ip netns exec`, which hides the mounts of the control groups."""
        return ["nsenter", f"--net=/proc/{self.holders[name].pid}/ns/net"]

    def ip(self, name: str, words: str) -> None:
        subprocess.run([*self.prefix(name), "ip", *words.split()], check=True)
