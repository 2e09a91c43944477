"""Recovery after there were no descriptors, and certificates that change under load."""
import contextlib
import os
import pathlib
import resource
import socket
import ssl
import threading
import time

import calls
import certificates
from report import Measured

STORMS, STORM_SECONDS, STORM_CONNECTIONS = 5, 1, 300
SHORT, LONG = 20, 100  # changes of certificates
HANDSHAKERS, RELOAD_SECONDS = 4, 1.1  # the server looks at the files each second


def _seconds_until(succeeds) -> float:
    """The time until a call of this function returns True, at most 30 s."""
    begin = time.monotonic()
    while time.monotonic() < begin + 30 and not succeeds():
        time.sleep(0.01)
    return time.monotonic() - begin


def _serves(server) -> bool:
    """Whether both ports answer on new connections."""
    with contextlib.suppress(calls.grpc.RpcError, OSError), calls.open_channel(server.address) as channel:
        calls.method(channel)(calls.attend_request(1, 4), timeout=5)
        server.scrape()
        return True
    return False


def _recovery_seconds(server) -> float:
    """The time from the end of a storm of connections until new ones are served."""
    idle = []
    for _ in range(STORM_CONNECTIONS):
        with contextlib.suppress(OSError):
            idle.append(socket.create_connection(("127.0.0.1", server.port), timeout=1))
    time.sleep(STORM_SECONDS)
    for one in idle:
        one.close()
    return _seconds_until(lambda: _serves(server))


def _emfile(setup) -> Measured:
    with setup.serve("--model=m=synthetic:tiny", "--max-connections-per-address=100000") as server:
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (48, 48))
        worst = max(_recovery_seconds(server) for _ in range(STORMS))
        refused = server.metric("attendant_refused_connections_total", reason="descriptors")
        setup.note(f"emfile: {refused:.0f} connections closed for want of descriptors")
        return Measured(worst, STORMS * STORM_CONNECTIONS)


def _install(folder: pathlib.Path, name: str) -> None:
    """Puts a certificate in the place of the server's, the key after it, each at once."""
    for kind in ("crt", "key"):
        (folder / "new").write_bytes((folder / f"{name}.{kind}").read_bytes())
        os.replace(folder / "new", folder / f"server.{kind}")


class _Handshakers:
    """Threads that connect by TLS again and again, and check the certificate."""

    def __init__(self, port: int, authority: pathlib.Path):
        self._port = port
        self._context = ssl.create_default_context(cafile=str(authority))
        self._context.set_alpn_protocols(["h2"])
        self._stopping, self._mutex = threading.Event(), threading.Lock()
        self.attempts, self.failures, self.seen = 0, [], set()
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(HANDSHAKERS)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(0.005):
            failure = serial = None
            try:
                with (socket.create_connection(("127.0.0.1", self._port), timeout=10) as plain,
                      self._context.wrap_socket(plain, server_hostname="localhost") as encrypted):
                    serial = encrypted.getpeercert()["serialNumber"]
            except OSError as error:
                failure = str(error)
            with self._mutex:
                self.attempts += 1
                self.failures += [failure] if failure else []
                self.seen |= {serial} if serial else set()


def _certificates(setup, folder: pathlib.Path) -> Measured:
    reloads = LONG if setup.long else SHORT
    certificates.make(folder)
    _install(folder, "0")
    with setup.serve("--model=m=synthetic:tiny", f"--tls-cert={folder / 'server.crt'}",
                     f"--tls-key={folder / 'server.key'}", authority=folder / "ca.crt") as server:
        callers = _Handshakers(server.port, folder / "ca.crt")
        for number in range(reloads):
            time.sleep(RELOAD_SECONDS)
            _install(folder, "01"[(number + 1) % 2])
        time.sleep(RELOAD_SECONDS)
        callers.stop()
        taken = server.metric("attendant_reloads_total", what="certificates", result="ok")
    setup.note(f"certificates: {taken:.0f} of {reloads} changes taken, {len(callers.seen)} certificates seen"
               + (f"; first failure: {callers.failures[0]}" if callers.failures else ""))
    return Measured(len(callers.failures), callers.attempts)


def measure(setup) -> dict:
    figures = {}
    if "emfile.recovery_s" in setup.wanted:
        figures["emfile.recovery_s"] = _emfile(setup)
    if "certificates.failed_handshakes" in setup.wanted:
        folder = setup.build / "reliability" / "certificates"
        folder.mkdir(parents=True, exist_ok=True)
        figures["certificates.failed_handshakes"] = _certificates(setup, folder)
    return figures
