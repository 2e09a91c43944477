"""Load by attendant-client load-test, which is quick enough to drive a server far beyond its capacity."""
import contextlib
import json
import socket
import subprocess
import time

from ports import free_port
from server_process import NotMeasured, pinned

LOAD_TEST_FAILED = 4  # its exit code when calls failed, which is what overload is about


class Load:
    """A load test under way."""

    def __init__(self, setup, address: str, *flags: str, core: int | None = None):
        launcher = pinned(core) if core is not None else ()
        self._process = subprocess.Popen(
            [*launcher, str(setup.program("attendant-client")), "load-test", "--json", "--address", address,
             *map(str, flags)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish(self) -> dict:
        """Waits for the end and returns what the report says of its one step."""
        out, err = self._process.communicate(timeout=900)
        if self._process.returncode not in (0, LOAD_TEST_FAILED):
            raise NotMeasured(f"load-test: {err.strip()[-300:] or out[-300:]}")
        return json.loads(out)["steps"][0]


def load_test(setup, address: str, *flags: str, core: int | None = None) -> dict:
    return Load(setup, address, *flags, core=core).finish()


def calls_of(report: dict) -> int:
    return report["ok"] + sum(report["errors"].values())


@contextlib.contextmanager
def from_address(source: str, port: int, core: int):
    """Yields the address of a forwarder whose connections to `port` come from the address `source`."""
    own = free_port()
    process = subprocess.Popen([*pinned(core), "socat", f"TCP-LISTEN:{own},fork,reuseaddr,bind=127.0.0.1",
                                f"TCP:127.0.0.1:{port},bind={source}"])
    try:
        _await_listener(own)
        yield f"127.0.0.1:{own}"
    finally:
        process.terminate()
        process.wait()


def _await_listener(port: int) -> None:
    for _ in range(500):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.01)
    raise NotMeasured("socat does not listen")
