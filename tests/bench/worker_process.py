"""WorkerProcess, a contender in a process of its own; worker.h describes the protocol."""
import ctypes
import json
import os
import pathlib
import select
import signal
import subprocess


class WorkerFailed(Exception):
    """The reason why a contender drops out."""


def resident_bytes(pid: int) -> dict:
    """VmRSS, and its parts RssAnon, RssFile and RssShmem."""
    lines = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return {name: int(value.split()[0]) * 1024 for name, _, value in (line.partition(":") for line in lines)
            if name == "VmRSS" or name.startswith("Rss")}


_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1  # of <sys/prctl.h>


def _end_with_parent() -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class WorkerProcess:
    """Leads a session of its own, so that a terminal's signals reach its parent alone, and what it has started ends with
    it."""

    def __init__(self, command: list, environment: dict, log: pathlib.Path, start_timeout: float):
        self._log = log
        with open(log, "w", encoding="utf-8") as errors:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                                             start_new_session=True, preexec_fn=_end_with_parent,
                                             env={**os.environ, **environment})
        self._unread = b""
        try:
            first = self._read(start_timeout)
        except BaseException:
            self.close()
            raise
        if first != "ready":
            self.close()
            raise WorkerFailed(first.removeprefix("refused ") if first.startswith("refused ") else
                               f"said '{first}' for 'ready'")

    @property
    def pid(self) -> int:
        return self._process.pid

    def prepare(self, file: pathlib.Path) -> None:
        self._ask(f"prepare {file}", 600)

    def run(self, times: int, timeout: float = 900) -> list:
        return [float(value) for value in self._ask(f"run {times}", timeout).split()]

    def save(self, file: pathlib.Path) -> None:
        self._ask(f"save {file}", 900)

    def facts(self) -> dict:
        return json.loads(self._ask("facts", 60))

    def close(self) -> None:
        if self._process.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()

    def _ask(self, line: str, timeout: float) -> str:
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise WorkerFailed(self._last_words()) from error
        answer = self._read(timeout)
        if answer != "ok" and not answer.startswith("ok "):
            raise WorkerFailed(answer.removeprefix("error "))
        return answer[3:]

    def _read(self, timeout: float) -> str:
        """Reads a line of the protocol. Libraries may print other lines, which do not begin like one."""
        while True:
            while b"\n" in self._unread:
                line, _, self._unread = self._unread.partition(b"\n")
                text = line.decode(errors="replace").strip()
                if text.split(" ")[0] in ("ready", "refused", "ok", "error"):
                    return text
            ready, _, _ = select.select([self._process.stdout], [], [], timeout)
            if not ready:
                self.close()
                raise WorkerFailed(f"no answer in {timeout:.0f} s")
            chunk = os.read(self._process.stdout.fileno(), 1 << 16)
            if not chunk:
                self.close()
                raise WorkerFailed(self._last_words())
            self._unread += chunk

    def _last_words(self) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return f"ended: {lines[-1][:200] if lines else 'without a word'} (see {self._log})"
