"""Callers that hold on to what a server has, from 127.0.0.2, and a good one from 127.0.0.1."""
import contextlib
import resource
import socket
import time
import urllib.request

import calls
import http2
from report import Measured
from small_server import MIB, observed, small_server

HOSTILE = "127.0.0.2"
SECONDS = 20


@contextlib.contextmanager
def _observed(setup, name: str, server, figures: dict):
    """Measures what the attack in its context costs."""
    with observed(setup, name, server) as cost:
        yield
    figures[f"{name}.rss_mib"] = Measured(cost.rss_mib, cost.calls)
    figures[f"{name}.good_caller_s"] = Measured(cost.worst_s, cost.calls)


def _pump_all(connections: list, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for connection in connections:
            connection.pump(0)
        time.sleep(0.01)


def _never_reads(setup, figures: dict) -> None:
    """Answers of 4 MiB, which get no window."""
    with small_server(setup, "--max-request-tokens=2048") as server, _observed(setup, "never_reads", server, figures):
        body = calls.attend_request(1, 512, probabilities=True)
        connections = [http2.Connection(server.port, HOSTILE, window=0) for _ in range(4)]
        for connection in connections:
            for _ in range(64):
                stream = connection.start_call(calls.ATTEND)
                connection.send(stream, http2.message(len(body), body), half_close=True)
                connection.pump(0)
        _pump_all(connections, SECONDS)


def _half_sent(setup, figures: dict) -> None:
    """Bodies of 2 MiB that stop half-way, of a method with tensors and of one without."""
    with small_server(setup) as server, _observed(setup, "half_sent", server, figures):
        connections = [http2.Connection(server.port, HOSTILE) for _ in range(4)]
        half = bytes(MIB)
        for number, connection in enumerate(connections):
            method = calls.ATTEND if number % 2 else "/attendant.v1.EncoderService/GetModel"
            for _ in range(32):
                stream = connection.start_call(method)
                connection.send(stream, http2.message(2 * MIB, half))
                connection.pump(0)
        _pump_all(connections, SECONDS)


def _http_hostile(setup, figures: dict) -> None:
    """A head without end, tricklers, and more idle connections than there are descriptors."""
    def few_descriptors():
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))

    with small_server(setup, preparation=few_descriptors) as server, _observed(setup, "http_hostile", server, figures):
        endless, tricklers, idle = [], [], []
        worst_probe, until = 0.0, time.monotonic() + SECONDS
        while time.monotonic() < until:
            endless = refill(endless, 1, server.http_port, b"GET /healthz HTTP/1.1\r\nx: ")
            tricklers = refill(tricklers, 8, server.http_port, b"GET /")
            idle = refill(idle, 600, server.http_port, b"")
            for one, more in [(one, b"x" * MIB) for one in endless] + [(one, b"h") for one in tricklers]:
                with contextlib.suppress(OSError):
                    one.send(more)
            worst_probe = max(worst_probe, _probe(server.http_port))
    setup.note(f"http_hostile: the slowest answer of /healthz took {worst_probe:.3f} s")


def refill(open_ones: list, count: int, port: int, first: bytes) -> list:
    """The connections that are still open, and new ones in the place of the others, which have sent `first`."""
    open_ones = [one for one in open_ones if not _is_closed(one)]
    with contextlib.suppress(OSError):
        while len(open_ones) < count:
            one = socket.create_connection(("127.0.0.1", port), timeout=1, source_address=(HOSTILE, 0))
            one.setblocking(False)
            open_ones.append(one)
            one.send(first)
    return open_ones


def _is_closed(one: socket.socket) -> bool:
    try:
        closed = one.recv(4096) == b""
    except BlockingIOError:
        return False
    except OSError:
        closed = True
    if closed:
        one.close()
    return closed


def _probe(port: int) -> float:
    """The seconds until /healthz answers, at most 5."""
    begin = time.monotonic()
    with contextlib.suppress(OSError):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5).read()
    return time.monotonic() - begin


def measure(setup) -> dict:
    figures = {}
    for name, attack in (("never_reads", _never_reads), ("half_sent", _half_sent), ("http_hostile", _http_hostile)):
        if any(figure.startswith(name) for figure in setup.wanted):
            attack(setup, figures)
    return figures
