"""Runs attendant-server for tests."""
import contextlib
import dataclasses
import os
import pathlib
import subprocess
import tempfile
import threading

# The server would read its settings from these.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("ATTENDANT_")}


@dataclasses.dataclass(frozen=True)
class Running:
    address: str
    port: int
    http_port: int
    process: subprocess.Popen


def _drain(pipe) -> None:
    for _ in pipe:
        pass


@contextlib.contextmanager
def run_server(programs: pathlib.Path, models: dict, *flags: object, address: str = "127.0.0.1", port: int = 0):
    """Runs the server on the models {name: source} until the block ends."""
    with tempfile.TemporaryDirectory() as scratch:
        ports = pathlib.Path(scratch) / "ports"
        sources = [word for name, source in models.items() for word in ("--model", f"{name}={source}")]
        process = subprocess.Popen(
            [str(programs / "attendant-server"), *sources, "--address", address, "--port", str(port), "--http-port", "0",
             "--port-file", str(ports), *map(str, flags)],
            stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
        try:
            log = []
            while not ports.exists():  # each iteration waits for a line of the log, which ends with the server
                log.append(process.stderr.readline())
                assert log[-1], "the server did not start:\n" + "".join(log)
            threading.Thread(target=_drain, args=(process.stderr,), daemon=True).start()
            values = dict(line.split("=") for line in ports.read_text().split())
            grpc_port = int(values.get("grpc_port", 0))
            yield Running(address if address.startswith("unix:") else f"{address}:{grpc_port}", grpc_port,
                          int(values["http_port"]), process)
        finally:
            process.terminate()
            try:
                process.wait(timeout=60)
            finally:
                process.kill()
