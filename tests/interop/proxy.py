"""A connection through HAProxy that is idle for a minute between two requests."""
import contextlib
import csv
import http.client
import io
import json
import pathlib
import re
import shutil
import socket
import subprocess
import time

import numpy as np
from server_process import NotMeasured

IDLE_SECONDS = 60  # as long as load balancers usually keep a connection
CONFIG = """
global
  stats socket {folder}/stats
defaults
  mode http
  timeout connect 5s
  timeout client 90s
  timeout http-keep-alive 90s
  timeout server 90s
listen texts
  bind fd@{listener}
  http-reuse always
  server one {server} pool-purge-delay 120s
"""


@contextlib.contextmanager
def haproxy(folder: pathlib.Path, server: str):
    """Runs one in front of a server, with a socket for its operator in the folder, and yields its port."""
    config = folder / "haproxy.cfg"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        config.write_text(CONFIG.format(folder=folder, server=server, listener=listener.fileno()), encoding="utf-8")
        process = subprocess.Popen([program(), "-q", "-db", "-f", config], pass_fds=[listener.fileno()])
    try:
        yield port
    finally:
        process.kill()
        process.wait()


def program() -> str:
    found = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
    if not found:
        raise NotMeasured("haproxy is not installed")
    return found


def version() -> str:
    return re.search(r"version ([\d.]+)", subprocess.run([program(), "-v"], capture_output=True, text=True, check=True).stdout)[1]


def connections(folder: pathlib.Path) -> tuple:
    """How many it has opened to the server, and how many requests have used an open one."""
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect(str(folder / "stats"))
        caller.sendall(b"show stat\n")
        table = b"".join(iter(lambda: caller.recv(65536), b"")).decode()
    row = next(row for row in csv.DictReader(io.StringIO(table.removeprefix("# "))) if row["svname"] == "one")
    return int(row["connect"]), int(row["reuse"])


def check(folder: pathlib.Path, server: str, text: str, vector: np.ndarray) -> dict:
    """Asks for a text's vector twice on one connection. Returns a row of the report."""
    with haproxy(folder, server) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.connect()
        first = connection.sock
        for idle in (0, IDLE_SECONDS):
            time.sleep(idle)
            connection.request("POST", "/v1/embeddings", json.dumps({"model": "minilm", "input": text}))
            answer = connection.getresponse()
            body = json.loads(answer.read())
            if answer.status != 200 or not np.allclose(body["data"][0]["embedding"], vector, rtol=0, atol=1e-7):
                raise ValueError(f"after {idle} s: status {answer.status}: {body}"[:400])
        if connection.sock is not first or connections(folder) != (1, 1):
            raise ValueError(f"the connection was not kept: opened and used again by HAProxy: {connections(folder)}")
        connection.close()
    return {"version": version(), "checked": [f"vector = native, again after {IDLE_SECONDS} s on the same connections"], "status": "passed"}
