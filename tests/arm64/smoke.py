"""Smoke tests of the server and the client for arm64, both emulated."""
import contextlib
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.request

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "cpus"))
from emulator import Emulator  # noqa: E402

TEXTS = ["hello world", "good morning"]
# The beginnings of rows of client/examples/expected.txt, which comes from x86.
ATTENDED = [[1.8808, 7.2848, 0.3576], [2, 8, 0], [0, 0, 0]]
EMBEDDED = [[-0.0345, 0.0310, 0.0067], [-0.0334, 0.0495, 0.0472]]
PRINTED = 1e-4  # their last digit
SMALL_COSINE = 0.99
ANSWER_SECONDS = 300
# Not the number of requests, which the client's request for the model is one of.
UNDER_WAY = re.compile(r"^attendant_request_bytes [1-9]", re.MULTILINE)


class Smoke:
    """A server with the worked example and the real MiniLM, and the client."""

    def __init__(self, emulator: Emulator, programs: pathlib.Path, minilm: pathlib.Path, dtypes: tuple):
        self._emulator = emulator
        self._programs = programs
        small = {dtype: f"{minilm},dtype={dtype}" for dtype in dtypes}
        self._models = {"worked-example": "worked-example", "minilm": minilm, "stored": f"{minilm},weights=bf16", **small}
        self.small = ("stored", *dtypes)

    @contextlib.contextmanager
    def serve(self):
        """Yields the server's process and the lines of its port file."""
        models = [word for name, source in self._models.items() for word in ("--model", f"{name}={source}")]
        with tempfile.TemporaryDirectory() as scratch:
            ports = pathlib.Path(scratch) / "ports"
            server = subprocess.Popen(
                [*self._emulator.command, self._programs / "attendant-server", *models, "--address", "127.0.0.1", "--port", "0",
                 "--http-port", "0", "--port-file", ports, "--drain-timeout", f"{ANSWER_SECONDS}s"],
                stderr=subprocess.PIPE, text=True, env=self._emulator.environment())
            try:
                log = ""
                while not ports.exists():  # each iteration waits for a line of the log, which ends with the server
                    line = server.stderr.readline()
                    log += line
                    assert line, f"the server did not start:\n{log}"
                yield server, dict(line.split("=") for line in ports.read_text().split())
            finally:
                server.kill()
                server.communicate()

    def _client(self, ports: dict, name: str, *arguments) -> list:
        return [*self._emulator.command, str(self._programs / "attendant-client"), name, "--address",
                f"127.0.0.1:{ports['grpc_port']}", "--deadline", f"{ANSWER_SECONDS}s", *map(str, arguments)]

    def call(self, ports: dict, name: str, *arguments) -> np.ndarray:
        with tempfile.TemporaryDirectory() as scratch:
            output = pathlib.Path(scratch) / "answer.npy"
            done = subprocess.run(self._client(ports, name, *arguments, "--output", output), capture_output=True, text=True,
                                  check=False, env=self._emulator.environment())
            assert done.returncode == 0, f"{name} {arguments}: {done.stdout}{done.stderr}"
            return np.load(output)

    def begin(self, ports: dict, name: str, *arguments) -> subprocess.Popen:
        return subprocess.Popen(self._client(ports, name, *arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=self._emulator.environment())


def attends(smoke: Smoke, ports: dict) -> None:
    found = smoke.call(ports, "attend", "--model", "worked-example", "--values", "1,0,1,0;0,2,0,2;1,1,1,1", "--mask", "1,1,0")
    assert np.allclose(found.reshape(3, -1)[:, :3], ATTENDED, rtol=0, atol=PRINTED), found


def embeds(smoke: Smoke, ports: dict) -> None:
    found = smoke.call(ports, "embed", "--model", "minilm", *TEXTS)
    assert np.allclose(found[:, :3], EMBEDDED, rtol=0, atol=PRINTED), found
    for row, text in enumerate(TEXTS):
        alone = smoke.call(ports, "embed", "--model", "minilm", text)
        assert alone.tobytes() == found[row:row + 1].tobytes(), f"{text}: other bits alone than in a batch"
    for name in smoke.small:
        other = smoke.call(ports, "embed", "--model", name, *TEXTS)
        cosines = np.sum(other * found, axis=1) / np.linalg.norm(other, axis=1) / np.linalg.norm(found, axis=1)
        assert cosines.min() >= SMALL_COSINE, f"{name}: {cosines}"


def drains(smoke: Smoke, server: subprocess.Popen, ports: dict) -> None:
    """Stops the server with a call under way, which gets its answer."""
    texts = [f"{text} {i}" + " and so on" * 10 for i in range(4) for text in TEXTS]
    call = smoke.begin(ports, "embed", "--model", "minilm", *texts)
    url = f"http://127.0.0.1:{ports['http_port']}/metrics"
    while not UNDER_WAY.search(urllib.request.urlopen(url, timeout=ANSWER_SECONDS).read().decode()):
        assert call.poll() is None, f"ended before it was seen: {call.communicate()}"
    server.terminate()
    output, errors = call.communicate(timeout=ANSWER_SECONDS)
    assert call.returncode == 0, f"{output[-300:]}{errors}"
    log = server.communicate(timeout=ANSWER_SECONDS)[1]
    assert server.returncode == 0, log


def run_smoke(emulator: Emulator, programs: pathlib.Path, minilm: pathlib.Path, dtypes: tuple) -> dict:
    """Returns how many of these tests passed and failed."""
    smoke = Smoke(emulator, programs, minilm, dtypes)
    failed = 0
    with smoke.serve() as (server, ports):
        tests = {"worked example": lambda: attends(smoke, ports), "real MiniLM": lambda: embeds(smoke, ports),
                 "drain": lambda: drains(smoke, server, ports)}
        for name, test in tests.items():
            try:
                test()
            except AssertionError as error:
                failed += 1
                print(f"{name}: {error}", file=sys.stderr)
    return {"passed": len(tests) - failed, "failed": failed}
