"""Runs `python -m attendant_client.http`, the process that takes texts over HTTP."""
import contextlib
import os
import pathlib
import re
import subprocess
import threading

from server_process import NotMeasured

LISTENS = re.compile(r"Uvicorn running on (http://127\.0\.0\.1:\d+)")


@contextlib.contextmanager
def run(python: pathlib.Path, server: str):
    """Yields its URL."""
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    process = subprocess.Popen([python, "-m", "attendant_client.http", "--server", server, "--port", "0"], stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True, env={**plain, "NO_COLOR": "1"})
    try:
        log, found = [], None
        while not found:  # each iteration waits for a line of the log, which ends with the process
            log.append(process.stderr.readline())
            if not log[-1]:
                raise NotMeasured("the HTTP front did not start: " + "".join(log)[-300:])
            found = LISTENS.search(log[-1])
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield found[1]
    finally:
        process.terminate()
        try:
            process.wait(timeout=60)
        finally:
            process.kill()
