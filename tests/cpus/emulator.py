"""Runs programs under qemu-user."""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

SHARDS = 4  # of a program


class Emulator:
    """The command of an emulator, and variables that programs get under it."""

    def __init__(self, command: list, **variables: str):
        self.command = [str(word) for word in command]
        self._variables = {"OMP_WAIT_POLICY": "passive", **variables}

    def environment(self, **variables: str) -> dict:
        return {**os.environ, **self._variables, **variables}

    def run(self, *command, **variables: str) -> subprocess.CompletedProcess:
        """Runs the command. qemu says on stderr which features of the CPU it leaves out."""
        return subprocess.run([*self.command, *map(str, command)], capture_output=True, text=True, check=False,
                              env=self.environment(**variables))

    def _run_shard(self, program: pathlib.Path, left_out: str, shard: int) -> dict:
        with tempfile.NamedTemporaryFile(suffix=".json") as report:
            done = self.run(program, "--gtest_brief=1", f"--gtest_filter=-{left_out}", f"--gtest_output=json:{report.name}",
                            GTEST_TOTAL_SHARDS=str(SHARDS), GTEST_SHARD_INDEX=str(shard))
            try:
                found = json.loads(pathlib.Path(report.name).read_text(encoding="utf-8"))
            except ValueError:  # it died
                found = {"tests": 0, "failures": 0}
        failed = found["failures"] or (done.returncode != 0)
        if failed:
            print(done.stdout, done.stderr, sep="\n", file=sys.stderr)
        return {"passed": found["tests"] - found["failures"], "failed": int(failed)}

    def run_tests(self, program: pathlib.Path, left_out: str = "") -> dict:
        """Runs a program of GoogleTest, except for the tests that match."""
        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            shards = list(pool.map(lambda shard: self._run_shard(program, left_out, shard), range(SHARDS)))
        return {"passed": sum(shard["passed"] for shard in shards), "failed": sum(shard["failed"] for shard in shards),
                "seconds": time.monotonic() - began}

    def version(self) -> str:
        return subprocess.run([self.command[0], "--version"], capture_output=True, text=True,
                              check=True).stdout.splitlines()[0]
