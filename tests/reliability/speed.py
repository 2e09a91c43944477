"""The server beside the engine alone, on one core and in turns; and the share of its time that goes into metrics."""
import json
import subprocess
import time

import arithmetic
from load import Load, calls_of, load_test
from report import Measured
from server_process import NotMeasured, cores, pinned
from worker_process import WorkerFailed, WorkerProcess

MODEL = "synthetic:bert-base"
TURN_SECONDS = 6
START_SECONDS = 300
SHORT, LONG = 5, 9  # rounds
# Encode has token ids in and hidden states out; Attend has hidden states in and out: 1.5 MiB each.
ENCODE = ("--token-ids", "--lengths", 128)
ATTEND = ("--method", "attend", "--lengths", 128, "--batch", 4)
METRICS = ("prometheus", "ServerMetrics")


class _Engine:
    """The engine alone on a core, with sequences of 128 tokens in one batch."""

    def __init__(self, setup, core: int, part: str, sequences: int):
        folder = setup.build / "reliability"
        folder.mkdir(parents=True, exist_ok=True)
        case = folder / "case.json"
        case.write_text(json.dumps({"batches": [[[101 + i for i in range(128)]] * sequences]}), encoding="utf-8")
        worker = setup.program("engine_worker", "bench")
        self._tokens = 128 * sequences
        self._worker = WorkerProcess([*pinned(core), str(worker), "--model", MODEL, "--threads", "1"],
                                     {"GOMP_SPINCOUNT": "1000", "ATTENDANT_PART": part}, folder / "engine.log",
                                     START_SECONDS)
        self._worker.prepare(case)
        self._passes = max(1, round(TURN_SECONDS / max(self._worker.run(2)[1], 1e-4)))

    def tokens_per_second(self) -> float:
        return self._tokens * self._passes / sum(self._worker.run(self._passes))

    def close(self) -> None:
        self._worker.close()


def _over_engine(setup, name: str, part: str, sequences: int, requests: tuple, unix: bool) -> Measured:
    server_core, core = cores()
    rounds = LONG if setup.long else SHORT
    pairs, attempted = [], 0
    path = setup.build / "reliability" / "socket"
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = (f"--address=unix:{path}",) if unix else ()
    engine = _Engine(setup, server_core, part, sequences)
    try:
        with setup.serve(f"--model=m={MODEL}", *flags, launcher=pinned(server_core)) as server:
            address = f"unix:{path}" if unix else server.address
            for _ in range(rounds):
                alone = engine.tokens_per_second()
                report = load_test(setup, address, *requests, "--concurrency", 3, "--warmup", "1s", "--duration",
                                   f"{TURN_SECONDS}s", core=core)
                if report["errors"]:
                    raise NotMeasured(f"{name}: {report['errors']}")
                # In a closed loop as many requests begin as end; the last ones end after the turn.
                pairs.append((report["tokens"] / TURN_SECONDS, alone))
                attempted += calls_of(report)
                setup.say(f"{name}: {pairs[-1][0]:.0f} of {alone:.0f} tokens/s")
    finally:
        engine.close()
    return Measured(arithmetic.median_ratio(pairs), attempted)


def _metrics_cost(setup) -> Measured:
    """The share of the server's samples that are in the metrics, under short requests to a small model, where they are
    most of all."""
    with setup.serve("--model=m=synthetic:minilm-l6") as server:
        load = Load(setup, server.address, "--token-ids", "--pooled", "--lengths", 16, "--duration", "12s")
        time.sleep(2)
        data = server.folder / "perf"
        subprocess.run(["perf", "record", "-q", "-F", "997", "-p", str(server.pid), "-o", str(data), "--", "sleep",
                        "8"], check=True, capture_output=True)
        listed = subprocess.run(["perf", "report", "-i", str(data), "--no-children", "--sort", "dso,symbol", "--stdio",
                                 "-q"], check=True, capture_output=True, text=True).stdout
        report = load.finish()
    rows = [(float(percent.strip().rstrip("%")), text) for percent, _, text in
            (line.strip().partition(" ") for line in listed.splitlines()) if percent.endswith("%")]
    if not rows:
        raise NotMeasured("perf has no samples")
    return Measured(arithmetic.cost_share(rows, METRICS), calls_of(report))


def measure(setup) -> dict:
    figures = {}
    try:
        for name, part, sequences, requests, unix in (
                ("server_over_engine.bert-base", "encode", 1, ENCODE, False),
                ("server_over_engine.attention.uds", "attend", 4, ATTEND, True)):
            if name in setup.wanted:
                figures[name] = _over_engine(setup, name, part, sequences, requests, unix)
    except WorkerFailed as error:
        raise NotMeasured(f"the engine alone: {error}") from error
    if "metrics_cost" in setup.wanted:
        figures["metrics_cost"] = _metrics_cost(setup)
    return figures
