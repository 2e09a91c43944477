"""Floods of frames that cost a server more than they cost their sender, from 64 connections of each of two addresses, while
a good caller calls; over TCP with TLS and without, and over a Unix socket."""
import contextlib
import dataclasses
import json
import pathlib
import subprocess
import tempfile
import time

import calls
import certificates
from report import Measured
from small_server import MIB, observed, small_server

ATTACKS = ("continuation", "reset", "settings", "ping")
HOSTILE = ("127.0.0.2", "127.0.0.3")
CONNECTIONS = 64  # of each address; an address may have no more
SECONDS = 8
# A server that holds so much has failed; the flood ends before it takes the memory of the machine.
MOST_RESIDENT = 1024 * MIB


@dataclasses.dataclass(frozen=True)
class _Transport:
    name: str
    flags: tuple = ()  # of the server
    authority: pathlib.Path | None = None  # the certificate that signed the server's

    @property
    def has_addresses(self) -> bool:
        return self.name != "unix"


def _transports(folder: pathlib.Path) -> tuple:
    certificates.make(folder)
    return (_Transport("plain"),
            _Transport("tls", (f"--tls-cert={folder / '0.crt'}", f"--tls-key={folder / '0.key'}"), folder / "ca.crt"),
            _Transport("unix", (f"--address=unix:{folder / 'socket'}",)))


def _run_generator(setup, attack: str, transport: _Transport, server) -> dict:
    """Floods the server, and returns what the generator has sent; ends early if the server holds too much."""
    count, target = (CONNECTIONS, server.port) if transport.has_addresses else (len(HOSTILE) * CONNECTIONS, server.address)
    process = subprocess.Popen(
        [str(setup.program("flood_generator")), attack, str(SECONDS), str(count), str(target),
         *(("--tls",) if transport.authority else ()), *(HOSTILE if transport.has_addresses else ())],
        stdout=subprocess.PIPE, text=True)
    try:
        while process.poll() is None:
            if server.resident_bytes() > MOST_RESIDENT:
                process.terminate()
            time.sleep(0.02)
        if process.returncode != 0:
            raise subprocess.CalledProcessError(process.returncode, process.args)
        return json.loads(process.stdout.read())
    finally:
        process.kill()
        process.wait()


def _flood(setup, attack: str, transport: _Transport) -> tuple:
    """Returns what the flood cost and what was sent."""
    with small_server(setup, *transport.flags, authority=transport.authority) as server:
        with observed(setup, f"flood.{attack}, {transport.name}", server) as cost:
            sent = _run_generator(setup, attack, transport, server)
        return cost, sent


def _floods(setup, attack: str, transports: tuple) -> dict:
    """The figures of an attack, each the worst of all transports. The slowest flood is the worst: the others hold for it."""
    results = {transport.name: _flood(setup, attack, transport) for transport in transports}
    setup.note(f"flood.{attack}: " + "; ".join(
        f"{name} {cost.rss_mib:.1f} MiB, good caller {cost.worst_s:.3f} s, {sent['mib_per_s']:.1f} MiB/s for "
        f"{sent['seconds']:.1f} s by {sent['connections']} connections" for name, (cost, sent) in results.items()))
    attempted = sum(cost.calls for cost, _ in results.values())
    return {f"flood.{attack}.{figure}": Measured(value, attempted) for figure, value in (
        ("rss_mib", max(cost.rss_mib for cost, _ in results.values())),
        ("good_s", max(cost.worst_s for cost, _ in results.values())),
        ("sent_mib_s", min(sent["mib_per_s"] for _, sent in results.values())))}


def _half_sent_checks(setup, transport: _Transport) -> tuple:
    """Returns the longest wait of a health check and of a ListModels call, and the number of both, while two addresses
    keep 100 health checks in each connection whose message has not arrived whole."""
    with small_server(setup, *transport.flags, authority=transport.authority) as server:
        with calls.GoodCaller(server, calls.HEALTH_CHECK, b"") as probe, \
                calls.GoodCaller(server, calls.LIST_MODELS, b"") as lister:
            sent = _run_generator(setup, "health", transport, server)
    setup.note(f"health.under_attack_s: {transport.name} health check {probe.worst:.3f} s, ListModels {lister.worst:.3f} s, "
               f"{sent['mib_per_s']:.1f} MiB/s by {sent['connections']} connections")
    return max(probe.worst, lister.worst), probe.calls + lister.calls


def measure(setup) -> dict:
    figures = {}
    # A path of a Unix socket has to be short.
    with contextlib.ExitStack() as stack:
        transports = _transports(pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory())))
        for attack in ATTACKS:
            if any(figure.startswith(f"flood.{attack}.") for figure in setup.wanted):
                figures.update(_floods(setup, attack, transports))
        if "health.under_attack_s" in setup.wanted:
            waits, attempted = zip(*(_half_sent_checks(setup, transport) for transport in transports))
            figures["health.under_attack_s"] = Measured(max(waits), sum(attempted))
    return figures
