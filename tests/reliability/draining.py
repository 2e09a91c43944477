"""Rolling restarts of two servers under load."""
import collections
import subprocess
import threading
import time

import grpc

import arithmetic
import calls
from ports import free_port
from report import Measured
from server_process import NotMeasured

# 3 MiB, more than gRPC keeps for another try unless it is told to.
SEQUENCES, LENGTH = 384, 64
FLAGS = ("--model=m=synthetic:tiny", "--max-request-tokens=32768", "--max-queue-tokens=2000000")
BALANCED_CALLERS, PLAIN_CALLERS = 16, 8  # the plain ones at each server
CALL_SECONDS = 60
SHORT, LONG = (10, 1_000), (50, 20_000)  # restarts and calls


def service_config(setup) -> str:
    """The policy of balancing and retries that the client prints for its users."""
    printed = subprocess.run([str(setup.program("attendant-client")), "service-config"], capture_output=True, text=True)
    if printed.returncode != 0:
        raise NotMeasured(f"attendant-client service-config: {printed.stderr.strip()[-200:]}")
    return printed.stdout


def balanced_channel(ports: list, config: str) -> grpc.Channel:
    """A channel that balances over both servers, and tries again as clients are told to."""
    target = "ipv4:" + ",".join(f"127.0.0.1:{port}" for port in ports)
    return calls.open_channel(target, ("grpc.service_config", config),
                              ("grpc.per_rpc_retry_buffer_size", 16 << 20),
                              ("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 500))


class Callers:
    """Threads that call one after the other, and count how the calls end."""

    def __init__(self, channel: grpc.Channel, count: int):
        self._attend = calls.method(channel)
        self._request = calls.attend_request(SEQUENCES, LENGTH)
        self._stopping = threading.Event()
        self._mutex = threading.Lock()
        self.ends = collections.Counter()  # (code, reason or details) -> calls; ("OK", "") of the good ones
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    @property
    def good(self) -> int:
        return self.ends["OK", ""]

    def count(self) -> int:
        with self._mutex:
            return sum(self.ends.values())

    def failures(self) -> collections.Counter:
        return collections.Counter({end: times for end, times in self.ends.items() if end[0] != "OK"})

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            code, reason, details = "OK", None, ""
            try:
                answer = self._attend(self._request, timeout=CALL_SECONDS)
                if len(answer) < len(self._request) // 2:
                    code, details = "WRONG_ANSWER", f"{len(answer)} bytes"
            except grpc.RpcError as error:
                code, reason, details = error.code().name, calls.reason_of(error), error.details() or ""
            with self._mutex:
                self.ends[code, reason or details[:80]] += 1
            if code != "OK":
                time.sleep(0.02)


def _await_calls(callers: list, wanted: list) -> None:
    """Waits until each group has had that many good calls."""
    patience = time.monotonic() + 120
    while any(group.good < count for group, count in zip(callers, wanted)) and time.monotonic() < patience:
        time.sleep(0.01)


def measure(setup) -> dict:
    restarts, wanted_calls = LONG if setup.long else SHORT
    config, ports = service_config(setup), [free_port(), free_port()]
    servers = [setup.serve(*FLAGS, f"--port={port}") for port in ports]
    balanced = Callers(balanced_channel(ports, config), BALANCED_CALLERS)
    plain = [Callers(calls.open_channel(server.address, ("grpc.max_reconnect_backoff_ms", 200)), PLAIN_CALLERS)
             for server in servers]
    groups, bad_ends, answered = [balanced, *plain], 0, 0

    def stop(server) -> None:
        nonlocal bad_ends, answered
        server.begin_stop()
        bad_ends += server.await_end() != 0 or "drain timeout" in server.log()
        answered += server.answered()
        server.__exit__()

    try:
        for restart in range(restarts):
            _await_calls(groups, [group.good + 20 for group in groups])
            setup.say(f"restart {restart + 1} of {restarts}: {sum(g.count() for g in groups)} calls")
            one = restart % 2
            stop(servers[one])
            servers[one] = setup.serve(*FLAGS, f"--port={ports[one]}")
            share = wanted_calls * (restart + 1) // restarts
            _await_calls([balanced], [share - sum(group.count() for group in plain)])
        for group in groups:
            group.stop()
        for server in servers:
            stop(server)
    finally:
        for group in groups:
            group.stop()
        for server in servers:
            server.__exit__()
    lost = arithmetic.lost_calls(answered, [group.ends for group in groups])
    setup.note(f"drain: {restarts} restarts, {bad_ends} of them with an exit code other than 0 or a drain that did not end")
    for name, group in (("balanced", balanced), ("plain", plain[0]), ("plain", plain[1])):
        for (code, why), times in group.failures().most_common(4):
            setup.note(f"drain, {name} callers: {times} x {code} {why}")
    return {"drain.accepted_lost": Measured(lost + bad_ends, sum(group.count() for group in groups)),
            "drain.visible_failures": Measured(sum(balanced.failures().values()), balanced.count())}
