#!/usr/bin/env python3
"""Measures what the server promises under load, and prints a table; see `run`."""
import argparse
import importlib
import json
import pathlib
import re
import subprocess
import sys

import grpc

import catalogue
from machine import cpu_name
from report import Report
from server_process import NotMeasured
from setup import Setup


def machine(setup: Setup) -> dict:
    with setup.serve("--model=m=synthetic:tiny") as server:
        labels = dict(re.findall(r'(\w+)="([^"]*)"', next(line for line in server.scrape().splitlines()
                                                          if line.startswith("attendant_build_info{"))))
    return {"cpu": cpu_name(), "isa": labels["isa"], "onednn": labels["onednn"], "version": labels["version"]}


def measure(setup: Setup) -> Report:
    report = Report(machine=machine(setup), notes=setup.notes)
    for group, figures in catalogue.GROUPS.items():
        if not setup.wanted & set(figures):
            continue
        print(f"{group}:", file=sys.stderr, flush=True)
        try:
            measured = importlib.import_module(group).measure(setup)
            report.figures.update({name: figure for name, figure in measured.items() if name in setup.wanted})
            if missing := setup.wanted & set(figures) - set(measured):
                report.failures[group] = f"no value for {', '.join(sorted(missing))}"
        except (NotMeasured, grpc.RpcError, OSError, subprocess.SubprocessError, ValueError) as error:
            report.failures[group] = f"{type(error).__name__}: {error}"
    return report


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True, help="where the presets build")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    try:
        wanted = catalogue.chosen(options.only)
    except ValueError as error:
        sys.exit(f"error: {error}")
    report = measure(Setup(options.build, options.long, wanted))
    print(report.table())
    if options.json:
        options.json.write_text(json.dumps(report.to_json(), indent=2) + "\n", encoding="utf-8")
    sys.exit(1 if report.failures else 0)


if __name__ == "__main__":
    main()
