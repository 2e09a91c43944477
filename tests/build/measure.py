"""Builds commits from nothing by both commands of README and prints what that took."""
import argparse
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import time

from machine import cpu_name  # of tests/bench

HERE = pathlib.Path(__file__).resolve().parent
SHOWN_FILES = 20
COMMANDS = {"run": ["server/run", "--once"], "tests": ["tests/run", "--show-only"]}  # the latter only lists the tests


def run(command: list, tree: pathlib.Path, times: pathlib.Path) -> dict:
    """Runs the command and returns the seconds that it and its children took."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    environment = {**os.environ, "PATH": f"{HERE / 'timing'}:{os.environ['PATH']}", "COMPILE_TIMES": str(times)}
    log = times.with_suffix(".log")
    with log.open("w", encoding="utf-8") as output:
        done = subprocess.run([tree / command[0], *command[1:]], env=environment, stdout=output, stderr=subprocess.STDOUT,
                              check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed in {tree}: see {log}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, "wall_s": time.monotonic() - began}


def read_files(times: pathlib.Path) -> list:
    """Returns (CPU seconds, file) of each compiler command, the longest first."""
    rows = []
    for line in times.read_text(encoding="utf-8").splitlines():
        user, kernel, _, made = line.split(" ", 3)
        rows.append((float(user) + float(kernel), re.sub(r"(.*/)?CMakeFiles/([^/]+)\.dir/", r"\2: ", made)))
    return sorted(rows, reverse=True)


def measure(commit: str, options: argparse.Namespace) -> dict:
    """Returns the figures of the commit, and prints its files."""
    tree, times = options.work / "tree", options.work / "times"
    shutil.rmtree(options.work, ignore_errors=True)
    tree.mkdir(parents=True)
    archive = subprocess.run(["git", "-C", options.tree, "archive", commit], capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", tree], input=archive, check=True)
    found = {name: run(command, tree, times) for name, command in COMMANDS.items()}
    # The second command has what the first one made.
    for key in found["run"]:
        found["tests"][key] += found["run"][key]
    files = read_files(times)
    figures = {f"build.{name}.{key}": value for name, values in found.items() for key, value in values.items()}
    figures["build.slowest_file_s"] = files[0][0]
    print(f"\n{commit}: the longest of {len(files)} compiler commands, in seconds of a CPU")
    for seconds, name in files[:SHOWN_FILES]:
        print(f"{seconds:9.1f}  {name}", flush=True)
    return figures


def machine(programs: pathlib.Path) -> dict:
    told = subprocess.run([programs / "attendant-server", "--version"], capture_output=True, text=True, check=True).stdout
    facts = dict(line.rsplit(" ", 1) for line in told.splitlines())
    return {"cpu": cpu_name(), "cpus": len(os.sched_getaffinity(0)), "isa": facts["instruction set"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tree", type=pathlib.Path, required=True, help="the repository")
    parser.add_argument("--work", type=pathlib.Path, required=True, help="a folder for the builds")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("commits", nargs="+", help="the last one is the one to judge")
    options = parser.parse_args()
    found = {commit: measure(commit, options) for commit in options.commits}
    print("\n" + f"{'':24}" + "".join(f"{commit[:12]:>14}" for commit in found))
    for name in found[options.commits[-1]]:
        print(f"{name:24}" + "".join(f"{figures[name]:14.1f}" for figures in found.values()))
    if options.json:
        document = {"machine": machine(options.work / "tree/build/release/bin"), "figures": found[options.commits[-1]],
                    "base": found[options.commits[0]] if len(found) > 1 else None}
        options.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
