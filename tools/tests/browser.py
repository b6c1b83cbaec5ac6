# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium for tests, driven over pipes by the DevTools protocol (standard library only)."""
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

NAMES = ("chromium", "chromium-headless-shell", "google-chrome", "chromium-browser", "chrome")


def find_browser() -> str | None:
    """TAPER_BROWSER, or what the path has."""
    named = os.environ.get("TAPER_BROWSER")
    return named or next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page. Console messages of errors, exceptions and requests are kept as texts."""

    def __init__(self, executable: str) -> None:
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._profile = tempfile.TemporaryDirectory(
            prefix="taper-browser-", ignore_cleanup_errors=True
        )
        self._buffer, self._number, self._loaded = b"", 0, False
        self._start(executable)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = session["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def _start(self, executable: str) -> None:
        """The browser reads commands from its file descriptor 3 and answers on 4."""
        self._session = ""
        from_here, self._write = os.pipe()
        self._read, to_here = os.pipe()

        def place() -> None:  # in the child
            kept = os.dup(from_here), os.dup(to_here)
            os.dup2(kept[0], 3)
            os.dup2(kept[1], 4)

        # Above 4, so that placing one does not overwrite the other.
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                   "--disable-background-networking", "--disable-component-update",
                   "--no-first-run", "--remote-debugging-pipe",
                   f"--user-data-dir={self._profile.name}"]
        self._process = subprocess.Popen(
            [executable, *options, "about:blank"], close_fds=False, preexec_fn=place,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        os.close(from_here)
        os.close(to_here)

    def close(self) -> None:
        try:
            self._session = ""
            self.call("Browser.close")
            self._process.wait(timeout=20)
        except (OSError, TimeoutError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)
        self._profile.cleanup()

    def _receive(self, deadline: float) -> dict:
        """The next message: JSON, ended by a zero byte."""
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
            part = os.read(self._read, 1 << 20) if ready else b""
            if not part:
                raise TimeoutError("the browser gives no answer, or has ended")
            self._buffer += part
        line, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(line)

    def _note(self, message: dict) -> None:
        """Keeps what an event tells."""
        method, values = message.get("method"), message.get("params", {})
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Network.requestWillBeSent":
            self.requests.append(values["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(values["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and values["type"] in ("error", "warning"):
            self.errors.append(json.dumps(values["args"]))
        elif method == "Log.entryAdded" and values["entry"]["level"] in ("error", "warning"):
            self.errors.append(values["entry"]["text"])

    def call(self, method: str, **values: object) -> dict:
        """A command and its answer; events on the way are noted."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": values}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:  # a pipe takes only so much at once
            data = data[os.write(self._write, data):]
        deadline = time.monotonic() + 60
        while True:
            answer = self._receive(deadline)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self._note(answer)

    def open(self, path: Path, width: int, height: int = 900, mobile: bool = False) -> None:
        """Loads a file in a window of this size and waits until all of it is there."""
        self.errors.clear()
        self.requests.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=mobile)
        self._loaded = False
        self.call("Page.navigate", url=path.resolve().as_uri())
        deadline = time.monotonic() + 60
        while not self._loaded:
            self._note(self._receive(deadline))

    def value(self, expression: str) -> object:
        """Of a JavaScript expression, as JSON has it."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']['text']}")
        return answer["result"].get("value")
