#!/usr/bin/env python3
"""Sends the same requests to two builds of attendant-server and compares the bits of their answers; see `run`."""
import argparse
import fnmatch
import json
import pathlib
import sys
import time

import grpc

import plan
import serving
from attendant.v1 import encoder_service_pb2 as pb
from differences import Difference, differences, tensors_of
from questions import questions
from tally import Tally


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class Comparison:
    def __init__(self, base: pathlib.Path, current: pathlib.Path, models: str):
        self._base, self._current = base, current
        self._models = models
        self.tally = Tally()
        self.machine = {}

    def run(self) -> None:
        sources = self._sources()
        sizes = {model: serving.weight_bytes(self._current, source) for model, source in sources.items()}
        for cap, isa in plan.distinct(self._isas()).items():
            types = self._types(cap, isa)
            served = [plan.Served(model, source + plan.TYPES[name], name, sizes[model])
                      for model, source in sources.items() for name in types]
            for row_plan in plan.ROW_PLANS:
                begin = time.monotonic()
                for group in plan.groups(plan.with_row_plan(served, row_plan)):
                    self._compare_group(group, cap, isa, row_plan)
                say(f"{isa}, {row_plan}: {time.monotonic() - begin:.0f} s")

    def _sources(self) -> dict:
        """Name -> source, for the models that both builds have."""
        base, current = (serving.synthetic_models(program) for program in (self._base, self._current))
        for model in sorted(set(base) ^ set(current)):
            self.tally.note(f"{model}, which only the {'base' if model in base else 'tree'} has")
        sources = {"worked-example": "worked-example"}
        sources.update({model: f"synthetic:{model}" for model in current if model in base})
        return {model: source for model, source in sources.items() if fnmatch.fnmatch(model, self._models)}

    def _isas(self) -> dict:
        """Cap -> instruction set, as the builds report."""
        isas = {}
        for cap in plan.CAPS:
            base, current = (serving.thread_plan(program, cap) for program in (self._base, self._current))
            if not base or not current:
                self.tally.note(f"--isa {cap}, which the {'tree' if base else 'base'} does not start with")
                continue
            isas[cap] = current.isa if base.isa == current.isa else f"{base.isa} to {current.isa}"
            if not self.machine:
                self.machine = {"isa": current.isa, "threads": current.threads_per_instance * current.instances,
                                "onednn": current.onednn_version}
        return isas

    def _types(self, cap: str, isa: str) -> list:
        """The types that both builds serve with this instruction set."""
        types = []
        for name, keys in plan.TYPES.items():
            base, current = (serving.takes(program, "worked-example" + keys, cap)
                             for program in (self._base, self._current))
            if base and current:
                types.append(name)
            elif base or current:
                self.tally.note(f"{name} with {isa}, which only the {'base' if base else 'tree'} computes in")
        return types

    def _compare_group(self, group: list, cap: str, isa: str, row_plan: str) -> None:
        sources = {served.name: served.source for served in group}
        flags = ("--isa", cap, "--row-plan", row_plan)
        with (serving.Server(self._base, sources, *flags) as base,
              serving.Server(self._current, sources, *flags) as current):
            base.connect()
            current.connect()
            for served in group:
                for question in questions(base.ask("GetModel", pb.GetModelRequest(model=served.name))):
                    answers, found = compare_answers(base, current, question)
                    self.tally.add((isa, row_plan, served.type), served.model, question.stage, answers, found)


def compare_answers(base: serving.Server, current: serving.Server, question) -> tuple:
    """The number of answers, and their differences. The requests are all valid, so a refusal by either build is a
    difference."""
    try:
        theirs = base.ask(question.method, question.request)
    except grpc.RpcError as error:
        return 1, [Difference("base", f"{error.code().name}: {error.details()}")]
    try:
        ours = current.ask(question.method, question.request)
    except grpc.RpcError as error:
        return 1, [Difference("tree", f"{error.code().name}: {error.details()}")]
    return len(tensors_of(theirs) | tensors_of(ours)), differences(theirs, ours)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--base", type=pathlib.Path, required=True, help="attendant-server of the older build")
    parser.add_argument("--current", type=pathlib.Path, required=True, help="that of the tree")
    parser.add_argument("--models", default="*", help="a pattern of their names")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()

    comparison = Comparison(options.base, options.current, options.models)
    try:
        comparison.run()
    except RuntimeError as error:
        sys.exit(str(error))
    tally = comparison.tally
    print(tally.text())
    if options.json:
        document = {"machine": comparison.machine, "figures": tally.figures()}
        options.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    if tally.differing or not tally.compared:
        sys.exit(f"{tally.differing} of {tally.compared} answers differ" if tally.compared else "nothing was compared")


if __name__ == "__main__":
    main()
