"""How many calls attendant-client load-test sends from one core, with a stub on the other one that answers at once: the rate up
to which its figures are about a server and not about itself."""
import contextlib
import statistics
import subprocess

from load import calls_of, load_test
from report import Measured
from server_process import cores, pinned

REQUESTS = ("--lengths", 16, "--warmup", "1s", "--connections", 2)  # of 16 x 384 floats, 24 KiB
SHORT, LONG = (3, 3), (5, 10)  # rounds, and seconds of each


@contextlib.contextmanager
def _stub(setup, core: int, answer_bytes: int):
    """Yields the address of a stub."""
    with subprocess.Popen([*pinned(core), str(setup.program("load_stub")), str(answer_bytes)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        yield f"127.0.0.1:{process.stdout.readline().strip()}"
        process.stdin.close()


def _rate(setup, name: str, answer_bytes: int, *flags: object) -> Measured:
    stub_core, core = cores()
    rounds, seconds = LONG if setup.long else SHORT
    with _stub(setup, stub_core, answer_bytes) as address:
        reports = [load_test(setup, address, *REQUESTS, *flags, "--duration", f"{seconds}s", core=core)
                   for _ in range(rounds)]
    rate = statistics.median(report["requests_per_s"] for report in reports)
    setup.note(f"generator, {name}: {rate:.0f} calls/s")
    return Measured(rate, sum(map(calls_of, reports)))


def measure(setup) -> dict:
    figures = {"generator.calls_per_s": _rate(setup, "short answers", 0, "--concurrency", 32)}
    _rate(setup, "answers as large as the requests", 16 * 384 * 4, "--concurrency", 32)
    return figures
