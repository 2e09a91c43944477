#!/usr/bin/env python3
"""Measures the engine, its bound and its peers in one interleaved run, and writes the report; see `run`."""
import argparse
import fnmatch
import json
import pathlib
import subprocess
import sys
import time

import numpy as np

import cases
import checkpoints
import report_html
import report_text
from contenders import (can_cap_peers, form_contender, onednn_contender, own_contenders, peer_contenders,
                        reference_contender)
from ending import Ended, end_on_signals
from figures import json_of
from kernels import run_kernels
from machine import cpu_name, peer_versions
from results import Results
from serving import measure_cache_hits, measure_start
from session import Session, say

DTYPES = ("f32", "bf16x3", "bf16", "int8")
CASE_OF_PEERS_ALONE = "8x128"
COMPARED_SENTENCES, COMPARED_BATCH = 32, 8


class Benchmark:
    def __init__(self, options):
        self._options = options
        self._bench = options.build / "bench" / "bin"
        self._work = options.build / "benchmark"
        self._work.mkdir(parents=True, exist_ok=True)
        self._sentences = pathlib.Path(__file__).parents[1] / "families" / "sentences.jsonl"
        self._ids = cases.TokenIds(self._sentences)
        self._expected = {}  # model -> last hidden states in float64
        self.results = Results(seed=options.seed)

    def run(self) -> Results:
        """Measures everything, or what it can before it is Ended."""
        begin = time.monotonic()
        try:
            self._measure_all()
        except Ended as signal:
            self.results.ended_by = str(signal)
            self.results.note(f"ended early by {signal}: only what had been measured until then is here, and answers "
                              "that had not been compared count as they are")
        self.results.seconds = time.monotonic() - begin
        return self.results

    def _measure_all(self) -> None:
        seed = self._options.seed
        wanted = cases.full_cases(seed) if self._options.full else cases.default_cases(seed)
        wanted = [case for case in wanted if fnmatch.fnmatch(f"{case.model.name}.{case.name}", self._options.cases)]
        for model in dict.fromkeys(case.model for case in wanted):
            for dtype in self._options.dtypes:
                of_model = [case for case in wanted if case.model == model]
                chosen = of_model if self._options.full else cases.cases_in(dtype, of_model)
                if chosen:
                    self._measure_model(model, dtype, chosen)
        if self._options.cases == "*":
            self._measure_parts()

    def _measure_model(self, model, dtype: str, wanted: list) -> None:
        if self._options.peers and not model.embeds:
            self.results.note(f"{model.name}: engine and bound alone, without peers and accuracy: what the peers load "
                              "takes token ids")
        for case in wanted:
            if self._options.peers and model.embeds and not case.with_peers:
                more = "" if case.in_forms else "; --full has the peers too, which take long"
                self.results.note(f"{model.name}.{case.name}: only engine and bound{more}")
        source = self._source(model)
        with Session(model, dtype, self._ids, self._work) as session:
            self.results.models.append(session.result)
            threads = self.results.machine.get("threads", 0)  # 0: the CPU budget
            engine, *bounds = own_contenders(self._bench, source, dtype, threads, self._options.isa)
            if session.start(engine):
                facts = session.engine.facts()
                self._meet(facts)
                session.result.plans = facts["product_plans"]
                if session.result.chose_own:
                    session.start(onednn_contender(engine))
                form = form_contender(engine, dtype)
                if form and any(case.in_forms for case in wanted):
                    session.start(form)
                for bound in bounds:
                    session.start(bound)
            else:
                session.result.refused = session.result.failures.pop("attendant")
                wanted = self._for_peers_alone(dtype, wanted)
                if not wanted:
                    return
            if model.large:
                for case in wanted:
                    session.measure_alone(case)
                session.stop("onednn", *[bound.role for bound in bounds])
            if self._options.peers and model.embeds:
                self._start_peers(session, source)
            for case in wanted:
                session.measure(case)
            if self._options.cases == "*":
                self._look_closer(session)
            if self._options.peers and model.embeds:
                self._compare(session)

    def _start_peers(self, session: Session, source: str) -> None:
        options, found = self._options, session.result
        for peer in peer_contenders(options.peers, source, found.dtype, self.results.machine["threads"],
                                    large=found.model.large, full=options.full, isa=options.isa):
            session.start(peer)

    def _for_peers_alone(self, dtype: str, wanted: list) -> list:
        """The cases to measure where the CPU cannot run the engine in a type: peers run int8 even without units for
        it."""
        if not self._options.peers or not self.results.machine or dtype != "int8":
            return []
        return [case for case in wanted if case.name == CASE_OF_PEERS_ALONE and case.with_peers]

    def _source(self, model) -> str:
        """The source that all contenders load: the real MiniLM if the peers' environment has it, else seeded
        weights."""
        real = self._options.minilm
        if model.name == "minilm-l6" and real:
            return str(real)
        if model.name == "minilm-l6" and self._options.peers:
            self.results.note("minilm-l6: seeded weights, for the real checkpoint could not be had")
        return str(checkpoints.write(model, self._work / model.name)) if model.embeds else f"synthetic:{model.name}"

    def _meet(self, facts: dict) -> None:
        if not self.results.machine:
            self.results.machine = {"cpu": cpu_name(), "isa": facts["isa"], "threads": facts["threads"],
                                    "thread_plan": facts["threads_reason"], "onednn": facts["onednn"]}
            if self._options.peers and self._options.isa != "best":
                self.results.note(f"--isa {self._options.isa}: without OpenVINO, ONNX Runtime and llama.cpp, which "
                                  "cannot be capped")
            if self._options.peers:
                self.results.machine["peers"] = peer_versions(self._options.peers)

    def _look_closer(self, session: Session) -> None:
        if session.result.model.name == "bert-base":
            seed = self._options.seed
            session.fit([cases.uniform(32, seed), cases.log_normal(128, seed), cases.ms_marco(128, seed)])

    def _compare(self, session: Session) -> None:
        """Compares the answers of all contenders for real sentences with those of torch in float64."""
        lines = self._sentences.read_text(encoding="utf-8").splitlines()[:COMPARED_SENTENCES]
        sentences = [json.loads(line)["ids"] for line in lines]
        say(f"{session.result.name}: comparing answers")
        session.compare(sentences, COMPARED_BATCH, lambda: self._expect(session, sentences))

    def _expect(self, session: Session, sentences: list) -> np.ndarray | None:
        """The answers of torch in float64, which are computed once for all types."""
        model = session.result.model
        if model.name not in self._expected:
            reference = reference_contender(self._options.peers, self._source(model), self.results.machine["threads"])
            started = session.start(reference)
            self._expected[model.name] = (session.answers(reference.name, sentences, COMPARED_BATCH) if started else
                                          None)
        return self._expected[model.name]

    def _measure_parts(self) -> None:
        if self._options.isa != "best":
            self.results.note("kernels, start and cache: not measured with --isa")
            return
        say("kernels")
        try:
            self.results.kernels = run_kernels(self._bench / "kernels_bench", self._work / "kernels.json",
                                               self._work / "kernels.log",
                                               [dtype for dtype in DTYPES if dtype not in self._options.dtypes])
        except (OSError, subprocess.SubprocessError) as error:
            self.results.note(f"kernels: {error}")
        if "f32" not in self._options.dtypes:
            return
        say("start to ready")
        programs = self._options.build / "release" / "bin"
        for model in (cases.MODELS["bert-base"], cases.MODELS["minilm-l6"]):
            try:
                self.results.starts.append(measure_start(programs / "attendant-server", self._source(model), model.name,
                                                         self.results.weight_bytes(model.name, "f32")))
            except (OSError, RuntimeError) as error:
                self.results.note(f"start to ready, {model.name}: {error}")
        say("answers from the cache")
        model = cases.MODELS["minilm-l6"]
        try:
            self.results.cache_hits = measure_cache_hits(programs, self._source(model), model.name, self._sentences)
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            self.results.note(f"answers from the cache: {error}")


def types_in(names: str) -> tuple:
    """Returns the types in a list with commas, in the order of DTYPES."""
    wanted = names.split(",")
    if unknown := [name for name in wanted if name not in DTYPES]:
        raise argparse.ArgumentTypeError(f"no such type: {', '.join(unknown)}; there are {', '.join(DTYPES)}")
    return tuple(dtype for dtype in DTYPES if dtype in wanted)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True, help="where the presets build")
    parser.add_argument("--peers", type=pathlib.Path, help="the Python that has the peers")
    parser.add_argument("--minilm", type=pathlib.Path, help="the folder of the real MiniLM-L6")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--cases", default="*")
    parser.add_argument("--dtypes", type=types_in, default=DTYPES, help="a list with commas")
    parser.add_argument("--isa", default="best", help="a cap on the instruction set; with --peers, avx2")
    parser.add_argument("--seed", type=int, default=cases.DEFAULT_SEED, help="of the ragged sets")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--html", type=pathlib.Path)
    options = parser.parse_args()
    if options.peers and not can_cap_peers(options.isa):
        parser.error(f"--isa {options.isa}: cannot be combined with --peers, which can be capped only to avx2")

    end_on_signals()
    results = Benchmark(options).run()
    if not results.machine and results.ended_by:
        sys.exit(f"ended early by {results.ended_by}: nothing had been measured")
    if not results.machine:
        sys.exit("the engine did not start: " + "; ".join(report_text.not_measured(results)))
    print(report_text.render(results))
    if options.json:
        options.json.write_text(json.dumps(json_of(results), indent=2) + "\n", encoding="utf-8")
    if options.html:
        options.html.write_text(report_html.render(results), encoding="utf-8")
    if wrong := results.wrong_answers():
        sys.exit("the engine's answers are wrong: " + "; ".join(wrong))
    if results.ended_by:
        sys.exit(f"ended early by {results.ended_by}")


if __name__ == "__main__":
    main()
