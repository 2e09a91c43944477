"""Starts the real server and waits until it is ready."""
import pathlib
import subprocess
import tempfile
import time

from results import Start
from worker_process import resident_bytes

STARTS = 3
DEADLINE_SECONDS = 120


def _start_once(server: pathlib.Path, source: str, *options: str) -> tuple:
    """Returns the seconds until the server is ready, and the resident bytes then, with the file pages among them."""
    with tempfile.TemporaryDirectory() as scratch:
        ports = pathlib.Path(scratch) / "ports"
        begin = time.monotonic()
        with open(pathlib.Path(scratch) / "log", "w", encoding="utf-8") as log:
            process = subprocess.Popen([str(server), "--model", f"m={source}", "--port", "0", "--http-port", "0",
                                        "--port-file", str(ports), *options], stderr=log)
        try:
            while not ports.exists():  # the server writes it when it is ready
                if process.poll() is not None or time.monotonic() - begin > DEADLINE_SECONDS:
                    raise RuntimeError("the server did not start")
                time.sleep(0.002)
            seconds = time.monotonic() - begin
            resident = resident_bytes(process.pid)
            return seconds, resident["VmRSS"], resident["RssFile"]
        finally:
            process.terminate()
            process.wait(timeout=60)


def measure_start(server: pathlib.Path, source: str, model: str, weight_bytes: int | None) -> Start:
    """The fastest of a few starts, the first of which warms the file cache, with the memory of one that touches no
    activations, as the others do when they time how threads divide the work."""
    _, resident, files = _start_once(server, source, "--row-plan", "team")
    seconds = min(_start_once(server, source)[0] for _ in range(STARTS))
    return Start(model, seconds, resident, files, weight_bytes)
