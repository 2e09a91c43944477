"""Runs the HTTP front for tests, and calls it."""
import contextlib
import dataclasses
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading

LISTENS = re.compile(r"Uvicorn running on https?://127\.0\.0\.1:(\d+)")


@dataclasses.dataclass(frozen=True)
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


@dataclasses.dataclass(frozen=True)
class Front:
    port: int
    process: subprocess.Popen
    log: list

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def call(self, method, path, body=None, **headers):
        """Sends a request, whose body is bytes or becomes JSON, and returns the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            sent = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(method, path, sent, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def post(self, path, body, **headers):
        return self.call("POST", path, body, **headers)

    def get(self, path, **headers):
        return self.call("GET", path, **headers)

    def send(self, path, body):
        """Sends a request and returns its socket, from which nobody has read."""
        sent = json.dumps(body).encode()
        made = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        made.sendall(f"POST {path} HTTP/1.1\r\nHost: test\r\nContent-Length: {len(sent)}\r\n\r\n".encode() + sent)
        return made

    def stop(self):
        self.process.send_signal(signal.SIGTERM)


def _drain(pipe, log) -> None:
    log.extend(pipe)


@contextlib.contextmanager
def run_front(server: str, *flags: object):
    """Runs the front of a server until the block ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", "attendant_client.http", "--server", server, "--port", "0", *map(str, flags)],
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env={**os.environ, "NO_COLOR": "1"})
    try:
        log, found = [], None
        while not found:  # each iteration waits for a line of the log, which ends with the process
            log.append(process.stderr.readline())
            assert log[-1], "the front did not start:\n" + "".join(log)
            found = LISTENS.search(log[-1])
        threading.Thread(target=_drain, args=(process.stderr, log), daemon=True).start()
        yield Front(int(found[1]), process, log)
    finally:
        process.terminate()
        try:
            process.wait(timeout=60)
        finally:
            process.kill()
