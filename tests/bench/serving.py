"""Starts the real server and waits until it is ready."""
import pathlib
import subprocess
import tempfile
import time

from results import Start

STARTS = 3
DEADLINE_SECONDS = 120


def _start_once(server: pathlib.Path, model: pathlib.Path) -> Start:
    with tempfile.TemporaryDirectory() as scratch:
        ports = pathlib.Path(scratch) / "ports"
        begin = time.monotonic()
        with open(pathlib.Path(scratch) / "log", "w", encoding="utf-8") as log:
            process = subprocess.Popen([str(server), "--model", f"m={model}", "--port", "0", "--http-port", "0",
                                        "--port-file", str(ports)], stderr=log)
        try:
            while not ports.exists():  # written when ready
                if process.poll() is not None or time.monotonic() - begin > DEADLINE_SECONDS:
                    raise RuntimeError("the server did not start")
                time.sleep(0.002)
            seconds = time.monotonic() - begin
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
            resident = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))
            return Start(seconds, resident * 1024)
        finally:
            process.terminate()
            process.wait(timeout=60)


def measure_start(server: pathlib.Path, model: pathlib.Path) -> Start:
    """The quickest of a few; the first warms the file cache."""
    _start_once(server, model)
    return min((_start_once(server, model) for _ in range(STARTS)), key=lambda start: start.seconds)
