"""The real server as a process, and what /proc and its metrics tell about it."""
import os
import pathlib
import re
import signal
import ssl
import subprocess
import tempfile
import time
import urllib.request

import arithmetic

START_SECONDS = 120


class NotMeasured(Exception):
    """The reason why a figure cannot be measured."""


class Server:
    """A server on 127.0.0.1 that is ready. On leaving the context it is killed if it still runs."""

    def __init__(self, program: pathlib.Path, *flags: str, launcher: tuple = (), preparation=None,
                 authority: pathlib.Path | None = None):
        """`launcher` is a command that starts it, such as taskset; `preparation` runs in the child; `authority` is the
        certificate that signed the server's, if it has one."""
        self.authority = authority
        self._https = ssl.create_default_context(cafile=str(authority)) if authority else None
        self._scratch = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self._scratch.name)
        self._log = self.folder / "log"
        ports = self.folder / "ports"
        command = [*launcher, str(program), "--port-file", str(ports), "--http-port", "0", *flags]
        if not any(flag.startswith("--address") for flag in flags):
            command += ["--address", "127.0.0.1"]
        if not any(flag.startswith("--port=") for flag in flags):
            command += ["--port", "0"]
        with open(self._log, "w", encoding="utf-8") as log:
            self._process = subprocess.Popen(command, stderr=log, preexec_fn=preparation)
        begin = time.monotonic()
        while not ports.exists():  # the server writes it when it is ready
            if self._process.poll() is not None or time.monotonic() - begin > START_SECONDS:
                self.kill()
                raise NotMeasured(f"the server did not start: {self.log()[-500:]}")
            time.sleep(0.002)
        values = dict(line.split("=") for line in ports.read_text(encoding="utf-8").split())
        self.port, self.http_port = int(values["grpc_port"] or 0), int(values["http_port"])
        unix = [flag.removeprefix("--address=") for flag in flags if flag.startswith("--address=unix:")]
        self.address = unix[0] if unix else f"127.0.0.1:{self.port}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self._scratch.cleanup()

    @property
    def pid(self) -> int:
        return self._process.pid

    def log(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def begin_stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def await_end(self) -> int:
        return self._process.wait(timeout=120)

    def answered(self) -> int:
        """The requests that it answered with OK, by its last line."""
        last = re.search(r"stopped after answering (\d+) requests", self.log())
        if not last:
            raise NotMeasured(f"the server did not say how many requests it answered: {self.log()[-500:]}")
        return int(last[1])

    def resident_bytes(self, name: str = "VmRSS") -> int:
        """VmRSS, or VmHWM, the most that it was since reset_peak."""
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8")
        found = re.search(rf"^{name}:\s+(\d+) kB", status, re.M)
        if not found:  # an ended process has no memory
            raise NotMeasured(f"the server has ended: {self.log()[-500:]}")
        return int(found[1]) * 1024

    def reset_peak(self) -> None:
        pathlib.Path(f"/proc/{self.pid}/clear_refs").write_text("5", encoding="utf-8")

    def scrape(self) -> str:
        url = f"{'https' if self._https else 'http'}://127.0.0.1:{self.http_port}/metrics"
        with urllib.request.urlopen(url, timeout=30, context=self._https) as answer:
            return answer.read().decode()

    def metric(self, name: str, **labels) -> float:
        return arithmetic.sum_of_series(self.scrape(), name, **labels)


def cores() -> tuple:
    """A core for the server and another one for its callers."""
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        raise NotMeasured("needs two cores, one for the server and one for its callers")
    return allowed[0], allowed[-1]


def pinned(core: int) -> tuple:
    return ("taskset", "-c", str(core))
