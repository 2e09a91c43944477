"""Goodput beyond capacity, and how soon refusals come. The server has one core, its callers the other."""
import json
import pathlib
import re
import subprocess
import sys

import arithmetic
from load import calls_of, load_test
from report import Measured
from server_process import cores, pinned

FLAGS = ("--model=m=synthetic:minilm-l6",)
LENGTH, WIDTH = 128, 384
REQUESTS = ("--lengths", LENGTH, "--deadline", "1s", "--connections", 4)
REFUSED_CALLER = pathlib.Path(__file__).with_name("refused_caller.py")
SHORT, LONG = (3, 10), (5, 20)  # rounds, and seconds of each part of one


def peak(setup, address: str, core: int, seconds: int) -> dict:
    """The report of a closed loop, which keeps the server just busy."""
    return load_test(setup, address, *REQUESTS, "--concurrency", 8, "--duration", f"{seconds}s", core=core)


def _overloaded(setup, server, core: int, rate: float, seconds: int) -> dict:
    """The report of an open loop at this rate."""
    return load_test(setup, server.address, *REQUESTS, "--rate", f"{rate:.1f}", "--arrival", "poisson", "--warmup",
                     "2s", "--duration", f"{seconds}s", core=core)


def _refused_caller(server, core: int, seconds: int) -> subprocess.Popen:
    return subprocess.Popen([*pinned(core), sys.executable, str(REFUSED_CALLER), str(server.port), str(seconds),
                             str(LENGTH), str(WIDTH)], stdout=subprocess.PIPE, text=True)


def _tell(setup, name: str, report: dict) -> None:
    errors = ", ".join(f"{count} {code}" for code, count in report["errors"].items())
    setup.say(f"{name}: {report['goodput']['in_time']} in time, {report['ok']} ok, {errors or 'no errors'}, "
              f"p50 {report['latency_ms']['p50']:.0f} ms, p99 {report['latency_ms']['p99']:.0f} ms")


def measure(setup) -> dict:
    server_core, core = cores()
    rounds, seconds = LONG if setup.long else SHORT
    pairs, counts = {3: [], 10: []}, {3: 0, 10: 0}
    with setup.serve(*FLAGS, launcher=pinned(server_core)) as server:
        for _ in range(rounds):
            most = peak(setup, server.address, core, seconds)
            _tell(setup, "peak", most)
            peak_rate = most["goodput"]["in_time"] / seconds
            for times, ratios in pairs.items():
                report = _overloaded(setup, server, core, times * peak_rate, seconds)
                _tell(setup, f"{times}x", report)
                # Not by the time until the last answer, which comes up to a deadline after the last request.
                ratios.append((report["goodput"]["in_time"] / seconds, peak_rate))
                counts[times] += calls_of(report)
        # Apart from the rounds, since what this caller gets is no goodput of theirs.
        raw = _refused_caller(server, core, seconds)
        _tell(setup, "10x", _overloaded(setup, server, core, 10 * peak_rate, seconds))
        refused = json.loads(raw.communicate(timeout=60)[0])
        reasons = re.findall(r'^attendant_refusals_total{.*reason="(\w+)"} (\d+)', server.scrape(), re.M)
    setup.note("overload, refused: " + ", ".join(f"{count} {reason}" for reason, count in reasons))
    ended = refused.pop("ended", [])
    waits = [wait for of_reason in refused.values() for wait in of_reason]
    for reason, of_reason in refused.items():
        setup.note(f"refused, {reason}: {len(of_reason)} calls, p50 {arithmetic.percentile(of_reason, 50):.2f} ms, "
                   f"p99 {arithmetic.percentile(of_reason, 99):.2f} ms")
    figures = {f"overload.{times}x.goodput": Measured(arithmetic.median_ratio(ratios), counts[times])
               for times, ratios in pairs.items()}
    if waits:
        figures["overload.refused_p99_ms"] = Measured(arithmetic.percentile(waits, 99), len(ended) + len(waits))
    else:
        setup.note(f"overload: none of {len(ended)} calls of the raw caller was refused with a reason")
    return figures
