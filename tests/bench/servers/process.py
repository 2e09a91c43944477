"""A contender's server as a process, and what a contender takes of the machine."""
import asyncio
import os
import pathlib
import re
import signal
import subprocess
import time

from contender import Contender
from ports import free_port

START_SECONDS, STOP_SECONDS = 180, 20
FIRST_TEXT = "ready"
# So that large buffers are not given back to the system after every call, as peers of tests/bench have it; nothing is fetched
# from a hub.
ENVIRONMENT = {
    "GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=4294967296:glibc.malloc.trim_threshold=17179869184",
    "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "CUDA_VISIBLE_DEVICES": "",
}
# What PyPI's torch brings for GPUs, and cannot be imported without.
FOR_GPUS = re.compile(r"/site-packages/(nvidia|triton|cuda)/|/libtorch_cuda|/libc10_cuda|/libtorch_nvshmem")


class NotRun(Exception):
    """The reason why a contender cannot be measured."""


def family(pid: int) -> list:
    """The process and all that it has started."""
    children = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        children.setdefault(int(after_name[1]), []).append(int(stat.parent.name))
    found = [pid]
    for member in found:
        found += children.get(member, [])
    return found


def memory_bytes(pid: int) -> int:
    """The proportional set size of a process and of all that it has started."""
    total = 0
    for member in family(pid):
        try:
            rollup = pathlib.Path(f"/proc/{member}/smaps_rollup").read_text(encoding="utf-8")
        except OSError:
            continue
        total += int(re.search(r"^Pss:\s+(\d+)", rollup, re.M)[1]) * 1024
    return total


def disk_bytes(paths: list) -> tuple:
    """The bytes of files and of all in folders: (with, without) what is only for GPUs."""
    sizes = {}
    for path in map(pathlib.Path, paths):
        for file in path.rglob("*") if path.is_dir() else [path]:
            if file.is_file() and "__pycache__" not in file.parts:
                real = file.resolve()
                sizes[str(real)] = real.stat().st_size
    return sum(sizes.values()), sum(size for name, size in sizes.items() if not FOR_GPUS.search(name))


class Running:
    """A contender that answers; `ready_seconds` is the time from its start to its first answer."""

    def __init__(self, contender: Contender):
        self.contender = contender
        self.ready_seconds = 0.0
        self.port = 0  # of the server
        self._process = None

    @property
    def pid(self) -> int:
        return self._process.pid if self._process else os.getpid()

    async def start(self) -> None:
        begin = time.perf_counter()
        if self.contender.serves:
            self.port = free_port()
            await self._start_server(self.port, begin + START_SECONDS)
        else:
            await self.contender.connect(0)
            await self.contender.embed(FIRST_TEXT)
        self.ready_seconds = time.perf_counter() - begin

    async def _start_server(self, port: int, deadline: float) -> None:
        contender = self.contender
        contender.folder.mkdir(parents=True, exist_ok=True)
        self._log = contender.folder / "server.log"
        plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        with open(self._log, "w", encoding="utf-8") as log:
            self._process = subprocess.Popen(list(map(str, contender.command(port))), stdout=log, stderr=log,
                                             cwd=contender.folder, process_group=0,
                                             env={**plain, **ENVIRONMENT, **contender.environment()})
        while not await self._listens(port):
            self._check(deadline, "did not listen")
            await asyncio.sleep(0.005)
        while True:
            await contender.connect(port)
            try:
                await asyncio.wait_for(contender.embed(FIRST_TEXT), START_SECONDS)
                return
            except Exception as error:  # whatever a client library raises while a server loads
                await contender.close()
                self._check(deadline, f"{type(error).__name__}: {error}")
            await asyncio.sleep(0.005)

    @staticmethod
    async def _listens(port: int) -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            return False
        writer.close()
        return True

    def _check(self, deadline: float, wrong: str) -> None:
        """Gives up on a server that has ended, or takes too long."""
        if self._process.poll() is None and time.perf_counter() < deadline:
            return
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        told = next((line for line in reversed(lines) if "Error" in line or "error" in line), lines[-1] if lines else "")
        raise NotRun(f"the server did not start ({wrong}): {told[-300:]}")

    async def stop(self) -> None:
        await self.contender.close()
        self.kill()

    def kill(self) -> None:
        """Ends the server and what it has started, which are one group."""
        if self._process is None:
            return
        for number, patience in ((signal.SIGTERM, STOP_SECONDS), (signal.SIGKILL, STOP_SECONDS)):
            try:
                os.killpg(self._process.pid, number)
                self._process.wait(patience)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue
        self._process = None
