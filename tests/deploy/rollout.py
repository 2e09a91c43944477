"""Restarts and kills servers under load, behind HAProxy and where the client balances: no call may fail.

Three servers take calls at a constant rate, however fast they answer (an open loop), from a client with the service config that
attendant-client prints."""
import collections
import contextlib
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request

import grpc

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests" / "reliability"), str(ROOT / "tests" / "support")]

import calls  # noqa: E402
from ports import free_port  # noqa: E402
from server_process import Server  # noqa: E402

SERVERS, RATE, CALL_SECONDS, PATIENCE = 3, 200, 30, 60
ROUNDS = 2  # of restarts, and of kills, of every server
FLAGS = ("--model=m=synthetic:tiny", "--lame-duck=1500ms")


class Failed(Exception):
    """Says what was expected, and what was found."""


class Fleet:
    """Servers that can be ended, and started again at the same ports."""

    def __init__(self, bin_folder: pathlib.Path):
        self._program = bin_folder / "attendant-server"
        self.ports = [(free_port(), free_port()) for _ in range(SERVERS)]
        self._servers = [self._start(number) for number in range(SERVERS)]

    def _start(self, number: int) -> Server:
        port, http_port = self.ports[number]
        # The last of two equal flags counts.
        return Server(self._program, *FLAGS, f"--port={port}", f"--http-port={http_port}")

    def restart(self, number: int) -> None:
        self._servers[number].begin_stop()
        code = self._servers[number].await_end()
        if code != 0:
            raise Failed(f"exit code {code} after SIGTERM: {self._servers[number].log()[-300:]}")
        self._servers[number] = self._start(number)

    def kill(self, number: int) -> None:
        self._servers[number].kill()
        self._servers[number] = self._start(number)

    def requests(self, number: int) -> int:
        """The calls that this server has ended."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[number][1]}/metrics", timeout=30) as answer:
            found = re.findall(r'^attendant_requests_total\{[^}]*method="Attend"[^}]*\} (\S+)', answer.read().decode(), re.M)
        return int(sum(map(float, found)))

    def close(self) -> None:
        for server in self._servers:
            server.__exit__()


class OpenLoop:
    """Calls that are sent when they are due, from a thread of its own."""

    def __init__(self, channel: grpc.Channel):
        self._attend = calls.method(channel)
        self._request = calls.attend_request(1, 16)
        self._stopping = threading.Event()
        self._mutex = threading.Condition()
        self._under_way = 0
        self.ends = collections.Counter()  # code and details -> calls
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stopping.wait(max(0.0, due - time.monotonic())):
            due += 1 / RATE
            with self._mutex:
                self._under_way += 1
            self._attend.future(self._request, timeout=CALL_SECONDS).add_done_callback(self._ended)

    def _ended(self, call: grpc.Future) -> None:
        code = call.code()
        with self._mutex:
            self._under_way -= 1
            self.ends[code.name, "" if code == grpc.StatusCode.OK else (call.details() or "")[:100]] += 1
            self._mutex.notify_all()

    def good(self) -> int:
        with self._mutex:
            return self.ends["OK", ""]

    def failures(self) -> dict:
        return {end: times for end, times in self.ends.items() if end[0] != "OK"}

    def await_good(self, more: int) -> None:
        """Waits until so many further calls have been answered."""
        with self._mutex:
            wanted = self.ends["OK", ""] + more
            if not self._mutex.wait_for(lambda: self.ends["OK", ""] >= wanted, PATIENCE):
                raise Failed(f"no {more} good calls in {PATIENCE} s: {dict(self.ends)}")

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        with self._mutex:
            if not self._mutex.wait_for(lambda: self._under_way == 0, PATIENCE):
                raise Failed(f"{self._under_way} calls did not end")


@contextlib.contextmanager
def haproxy(fleet: Fleet, work: pathlib.Path):
    """Runs the shipped configuration, with the ports of these servers, and yields its address."""
    port = free_port()
    shipped = (ROOT / "docker" / "haproxy" / "haproxy.cfg").read_text()
    servers = "".join(f"    server s{number} 127.0.0.1:{grpc_port} check-proto h1 check port {http_port}\n"
                      for number, (grpc_port, http_port) in enumerate(fleet.ports))
    text = re.sub(r"(    server \w+ 10\..*\n)+", servers, shipped).replace("bind :8001", f"bind 127.0.0.1:{port}")
    if text.count("    server s") != SERVERS:
        raise Failed("the shipped configuration has no lines to replace")
    path = work / "haproxy.cfg"
    path.write_text(text)
    subprocess.run(["haproxy", "-c", "-q", "-f", str(ROOT / "docker" / "haproxy" / "haproxy.cfg")], check=True)
    with (work / "haproxy.log").open("w") as log:
        process = subprocess.Popen(["haproxy", "-db", "-f", str(path)], stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 30
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            if process.poll() is not None or time.monotonic() > deadline:
                raise Failed(f"HAProxy did not start: {(work / 'haproxy.log').read_text()[-300:]}")
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def open_channel(target: str, bin_folder: pathlib.Path, *flags: str) -> grpc.Channel:
    config = subprocess.run([str(bin_folder / "attendant-client"), "service-config", *flags], check=True,
                            stdout=subprocess.PIPE, text=True).stdout
    return calls.open_channel(target, ("grpc.service_config", config), ("grpc.initial_reconnect_backoff_ms", 100),
                              ("grpc.max_reconnect_backoff_ms", 500))


def await_all_serve(fleet: Fleet, load: OpenLoop) -> None:
    """Waits until each server gets calls, as whoever rolls out waits before the next one."""
    before = [fleet.requests(number) for number in range(SERVERS)]
    deadline = time.monotonic() + PATIENCE
    while any(fleet.requests(number) <= seen for number, seen in enumerate(before)):
        if time.monotonic() > deadline:
            raise Failed(f"a server gets no calls: {before}, then {[fleet.requests(number) for number in range(SERVERS)]}")
        load.await_good(RATE // 10)


def measure(fleet: Fleet, channel: grpc.Channel, action) -> tuple:
    """Ends each server in turn by `action`, under load. Returns calls, and the failed ones by code and details."""
    load = OpenLoop(channel)
    try:
        await_all_serve(fleet, load)
        for number in list(range(SERVERS)) * ROUNDS:
            action(number)
            await_all_serve(fleet, load)
    finally:
        load.stop()
    return sum(load.ends.values()), load.failures()


def check(bin_folder: pathlib.Path, work: pathlib.Path) -> dict:
    """Returns {"figures": {name: number}, "rows": [(what, "passed" | "failed" | "not run", details)]}. `work` is for files
    of the run, which stay there."""
    work.mkdir(parents=True, exist_ok=True)
    rows, figures = [], {"rolling_restart.failed": 0, "kill.failed": 0}
    fleet = Fleet(bin_folder)

    def row(figure: str, what: str, channel: grpc.Channel, action) -> None:
        try:
            total, failures = measure(fleet, channel, action)
        except Failed as error:
            rows.append((what, "failed", str(error)))
            figures[figure] = figures[figure] + 1
            return
        figures[figure] += sum(failures.values())
        rows.append((what, "failed" if failures else "passed", f"{total} calls" + "".join(
            f"; {times} x {code} {details}" for (code, details), times in failures.items())))

    try:
        balanced = "ipv4:" + ",".join(f"127.0.0.1:{port}" for port, _ in fleet.ports)
        row("rolling_restart.failed", "rolling restart, round_robin", open_channel(balanced, bin_folder), fleet.restart)
        row("kill.failed", "kill -9, round_robin", open_channel(balanced, bin_folder), fleet.kill)
        if shutil.which("haproxy") is None:
            rows.append(("HAProxy", "not run", "haproxy: not installed"))
        else:
            with haproxy(fleet, work) as address:
                for figure, what, action in (("rolling_restart.failed", "rolling restart, HAProxy", fleet.restart),
                                             ("kill.failed", "kill -9, HAProxy", fleet.kill)):
                    row(figure, what, open_channel(address, bin_folder, "--behind-proxy"), action)
    finally:
        fleet.close()
    return {"figures": figures, "rows": rows}
