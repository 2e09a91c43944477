"""Measures all servers, one after the other, and writes the report; see tests/bench/run --servers."""
import argparse
import json
import os
import pathlib
import subprocess
import sys

import report
from contender import Contender, Place
from contenders import CONTENDERS
from ending import Ended, end_on_signals  # of tests/bench
from machine import cpu_name  # of tests/bench
from own import Attendant
from process import ENVIRONMENT
from texts import DEFAULT_SEED

HERE = pathlib.Path(__file__).parent
SUPPORT = HERE.parents[1] / "support"
MOST_SECONDS = 900  # for one contender
HIGH_SHARE = 0.8  # of the best other server's capacity: a rate at which Attendant is measured too


class Comparison:
    def __init__(self, options):
        self._options = options
        self._place = Place(options.programs, options.http_load, options.work, options.checkpoint, len(os.sched_getaffinity(0)))
        self._kept = options.work / "measured"
        self._kept.mkdir(parents=True, exist_ok=True)
        self.found = {}  # contender -> what measure.py printed, or {"not_run": reason}
        self.ended_by = ""  # the signal that ended the run early

    def run(self) -> dict:
        """Measures all, or what it can before it is Ended."""
        try:
            self._measure_all()
        except Ended as signal:
            self.ended_by = str(signal)
        return self.found

    def _measure_all(self) -> None:
        for name, kind in CONTENDERS.items():
            if name in self._options.only:
                print(f"==> {name}", file=sys.stderr, flush=True)
                self.found[name] = self._measure(kind(self._place))
                self._file(name).write_text(json.dumps(self.found[name]), encoding="utf-8")
            elif self._file(name).exists():  # from a run before
                self.found[name] = json.loads(self._file(name).read_text(encoding="utf-8"))

    def _file(self, name: str) -> pathlib.Path:
        return self._kept / f"{name}.{self._options.seed}.{self._options.seconds:g}.json"

    def _missing(self, contender: Contender) -> str:
        """Why something that it needs could not be installed; empty: all is there."""
        for name in (contender.caller, *contender.needs, *(("floor", "export") if contender.exported else ())):
            log = self._options.work / "errors" / f"{name}.log"
            if log.exists():
                lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or ["no reason was given"]
                return f"{name}: {lines[-1][:400]}"
        return ""

    def _measure(self, contender: Contender) -> dict:
        if why := self._missing(contender):
            return {"not_run": why}
        options, rates = self._options, []
        if isinstance(contender, Attendant) and (best := report.best_server(self.found)):
            rates = [HIGH_SHARE * self.found[best]["capacity"]]
        command = [self._place.python(contender.caller), HERE / "measure.py", "--contender", contender.name,
                   "--programs", options.programs, "--http-load", options.http_load, "--work", options.work,
                   "--checkpoint", options.checkpoint, "--threads", self._place.threads, "--answers", options.work / f"answers-{options.seed}.npy",
                   "--seconds", options.seconds, "--seed", options.seed, "--rates", *rates]
        # In a session of its own, so that a terminal's signals reach this process alone.
        with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              start_new_session=True,
                              env={**os.environ, **ENVIRONMENT, "PYTHONPATH": f"{HERE}:{SUPPORT}"}) as measuring:
            try:
                told, errors = measuring.communicate(timeout=MOST_SECONDS)
            except subprocess.TimeoutExpired:
                return {"not_run": f"did not end in {MOST_SECONDS} s"}
            finally:
                measuring.terminate()  # unless it has ended: it ends its server
        if measuring.returncode != 0:
            return {"not_run": (errors.strip().splitlines() or ["without a word"])[-1][:400]}
        return json.loads(told.strip().splitlines()[-1])


def machine(programs: pathlib.Path) -> dict:
    told = subprocess.run([programs / "attendant-server", "--version"], capture_output=True, text=True, check=True).stdout
    facts = dict(line.rsplit(" ", 1) for line in told.splitlines())
    return {"cpu": cpu_name(), "cpus": len(os.sched_getaffinity(0)), "isa": facts["instruction set"], "onednn": facts["oneDNN"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="has attendant-server and attendant-client")
    parser.add_argument("--http-load", type=pathlib.Path, required=True, help="the program")
    parser.add_argument("--work", type=pathlib.Path, required=True, help="where set_up.sh has installed what is needed")
    parser.add_argument("--checkpoint", type=pathlib.Path, required=True)
    parser.add_argument("--only", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--seconds", type=float, default=20, help="of each loop")
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--svg", type=pathlib.Path)
    options = parser.parse_args()
    end_on_signals()
    comparison = Comparison(options)
    found = comparison.run()
    measured_on = machine(options.programs)
    print(report.table(found, measured_on))
    if options.json:
        document = {"machine": measured_on, "seed": options.seed, "seconds": options.seconds, "figures": report.figures(found),
                    "contenders": found}
        options.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    (options.svg or options.work / "servers.svg").write_text(report.plot(found), encoding="utf-8")
    if comparison.ended_by:
        sys.exit(f"ended early by {comparison.ended_by}")
    if why := found.get(Attendant.name, {}).get("not_run"):
        sys.exit(f"Attendant was not measured: {why}")


if __name__ == "__main__":
    main()
