"""The load generator by which servers are sized: how many calls it sends from one core, and whether its search for the highest
rate finds the same one twice."""
import json
import pathlib
import subprocess

import generator
from server_process import NotMeasured, Server, cores, pinned
from setup import Setup

LEAST_CALLS = 20000  # a second
MOST_DIFFERENCE = 0.1  # of the higher rate
OBJECTIVE = "p99<50ms"
SEARCH = ("--lengths", "32", "--connections", "4", "--arrival", "poisson", "--duration", "10s")
SEARCH_SECONDS = 400


class Programs(Setup):
    """Programs that are in one folder."""

    def program(self, name: str, preset: str = "") -> pathlib.Path:
        return self.build / name


def find_rate(client: pathlib.Path, server: Server, core: int) -> float:
    done = subprocess.run([*pinned(core), client, "load-test", "--address", server.address, "--find-rate", OBJECTIVE, "--json",
                           *SEARCH], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=SEARCH_SECONDS, check=False)
    if done.returncode != 0:
        raise NotMeasured(f"exit code {done.returncode}: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout)["search"]["rate"]


def check_generator(programs: pathlib.Path) -> tuple:
    if not (programs / "load_stub").exists():
        return {}, ("calls from one core", "not run", f"no load_stub in {programs}")
    setup = Programs(programs, long=False, wanted=set())
    rate = generator.measure(setup)["generator.calls_per_s"].value
    return {"generator.calls_per_s": rate}, ("calls from one core", "passed" if rate >= LEAST_CALLS else "failed",
                                             "; ".join(setup.notes))


def check_search(programs: pathlib.Path) -> tuple:
    server_core, core = cores()
    with Server(programs / "attendant-server", "--model", "m=synthetic:minilm-l6", launcher=pinned(server_core)) as server:
        rates = [find_rate(programs / "attendant-client", server, core) for _ in range(2)]
    difference = abs(rates[0] - rates[1]) / max(rates)
    return {"find_rate.repeatability": difference}, (
        f"--find-rate '{OBJECTIVE}' twice", "passed" if difference <= MOST_DIFFERENCE else "failed",
        f"{rates[0]:.1f} and {rates[1]:.1f} requests/s")


def check(bin_folder: pathlib.Path, _: pathlib.Path) -> dict:
    """Returns {"figures": {name: number}, "rows": [(what, "passed" | "failed" | "not run", details)]}."""
    figures, rows = {}, []
    for measure in (check_generator, check_search):
        try:
            found, row = measure(bin_folder)
        except (NotMeasured, subprocess.SubprocessError, ValueError) as error:
            found, row = {}, (measure.__name__.replace("_", " "), "failed", f"{type(error).__name__}: {error}")
        figures |= found
        rows.append(row)
    return {"figures": figures, "rows": rows}
