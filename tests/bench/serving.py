"""Starts the real server, and measures what only it shows."""
import contextlib
import json
import pathlib
import re
import statistics
import subprocess
import tempfile
import time
import urllib.request

from results import CacheHits, Start
from worker_process import resident_bytes

STARTS = 3
DEADLINE_SECONDS = 120
HIT_SEQUENCES, HIT_ROUNDS, HIT_CALLS = 64, 5, 200


@contextlib.contextmanager
def _running(server: pathlib.Path, source: str, *options: str):
    """Yields the process of a server that is ready, the seconds until it was, and its ports, of gRPC and HTTP."""
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
            yield process, seconds, [int(port) for port in re.findall(r"port=(\d+)", ports.read_text(encoding="utf-8"))]
        finally:
            process.terminate()
            process.wait(timeout=60)


def _start_once(server: pathlib.Path, source: str, *options: str) -> tuple:
    """Returns the seconds until the server is ready, and the resident bytes then, with the file pages among them."""
    with _running(server, source, *options) as (process, seconds, _):
        resident = resident_bytes(process.pid)
        return seconds, resident["VmRSS"], resident["RssFile"]


def measure_start(server: pathlib.Path, source: str, model: str, weight_bytes: int | None) -> Start:
    """The fastest of a few starts, the first of which warms the file cache, with the memory of one that touches no
    activations, as the others do when they time how threads divide the work."""
    _, resident, files = _start_once(server, source, "--row-plan", "team")
    seconds = min(_start_once(server, source)[0] for _ in range(STARTS))
    return Start(model, seconds, resident, files, weight_bytes)


def _metrics(http_port: int, pattern: str) -> float:
    """The sum of the series whose names and labels match."""
    with urllib.request.urlopen(f"http://127.0.0.1:{http_port}/metrics", timeout=60) as answer:
        return sum(float(line.rpartition(" ")[2]) for line in answer.read().decode().splitlines()
                   if re.match(pattern, line))


def measure_cache_hits(programs: pathlib.Path, source: str, model: str, sentences: pathlib.Path) -> CacheHits:
    """The server's mean time for a call of Encode whose vectors are all in the cache, from its headers to its answer; the
    median of some rounds. The client sends one request again and again, over one connection."""
    with tempfile.TemporaryDirectory() as scratch, \
            _running(programs / "attendant-server", source, "--cache-bytes", str(64 << 20)) as (_, _, ports):
        lines = sentences.read_text(encoding="utf-8").splitlines()[:HIT_SEQUENCES]
        sequences = [json.loads(line)["ids"] for line in lines]
        ids = pathlib.Path(scratch) / "ids.jsonl"
        ids.write_text("".join(f"{json.dumps(one)}\n" for one in sequences), encoding="utf-8")

        def call(times: int) -> tuple:
            """Returns the calls that were answered, their seconds, and the vectors that were found."""
            patterns = [rf"attendant_request_seconds_{part}{{.*\"Encode\"" for part in ("count", "sum")]
            patterns.append(r"attendant_cache_hits_total{kind=\"vectors\"")
            before = [_metrics(ports[1], pattern) for pattern in patterns]
            subprocess.run([str(programs / "attendant-client"), "load-test", "--address", f"127.0.0.1:{ports[0]}",
                            "--method", "encode", "--pooled", "--ids-file", str(ids), "--batch", str(HIT_SEQUENCES),
                            "--concurrency", "1", "--requests", str(times), "--warmup", "0s"],
                           check=True, capture_output=True, timeout=DEADLINE_SECONDS)
            return tuple(_metrics(ports[1], pattern) - old for pattern, old in zip(patterns, before))

        call(1)
        rounds = []
        for _ in range(HIT_ROUNDS):
            calls, seconds, hits = call(HIT_CALLS)
            if calls < HIT_CALLS or hits != calls * HIT_SEQUENCES:
                raise RuntimeError(f"{hits:g} vectors were found in {calls:g} calls")
            rounds.append(seconds / calls)
        return CacheHits(model, sum(map(len, sequences)), statistics.median(rounds), min(rounds), max(rounds))
