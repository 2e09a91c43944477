"""Runs test programs under qemu-user as CPUs that this machine is not, and prints a table."""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

QEMU = "qemu-x86_64"
# What the engine needs and not more, and a CPU that lacks one of the features.
SERVED = "Haswell"
REFUSED = "Haswell,-fma"
REFUSAL = re.compile(r"attendant-server: CPU: expected avx2, fma, bmi2 and f16c \(x86-64-v3\); got one without fma; .+")
REFUSED_EXIT_CODE = 2
SHARDS = 4  # of a program
# The engine's threads treat denormal numbers as zeros. CPUs widen denormal float16 numbers all the same (VCVTPH2PS ignores
# MXCSR.DAZ), but qemu 7.2 makes zeros of them.
EMULATED_WRONGLY = "Types/StoredWeightsTest.*/f16"


def emulate(cpu: str, *command, **variables) -> subprocess.CompletedProcess:
    """Runs the command on an emulated CPU. qemu says on stderr which features of the CPU it leaves out."""
    return subprocess.run([QEMU, "-cpu", cpu, *map(str, command)], capture_output=True, text=True, check=False,
                          env={**os.environ, "OMP_WAIT_POLICY": "passive", **variables})


def run_shard(program: pathlib.Path, shard: int) -> dict:
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        done = emulate(SERVED, program, "--gtest_brief=1", f"--gtest_filter=-{EMULATED_WRONGLY}",
                       f"--gtest_output=json:{report.name}",
                       GTEST_TOTAL_SHARDS=str(SHARDS), GTEST_SHARD_INDEX=str(shard))
        try:
            found = json.loads(pathlib.Path(report.name).read_text(encoding="utf-8"))
        except ValueError:  # it died
            found = {"tests": 0, "failures": 0}
    failed = found["failures"] or (done.returncode != 0)
    if failed:
        print(done.stdout, done.stderr, sep="\n", file=sys.stderr)
    return {"passed": found["tests"] - found["failures"], "failed": int(failed)}


def run_program(program: pathlib.Path) -> dict:
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        shards = list(pool.map(lambda shard: run_shard(program, shard), range(SHARDS)))
    return {"passed": sum(shard["passed"] for shard in shards), "failed": sum(shard["failed"] for shard in shards),
            "seconds": time.monotonic() - began}


def is_refused(server: pathlib.Path) -> bool:
    # With this variable set the server does not execute itself again, which the emulator would not see.
    done = emulate(REFUSED, server, "--port", "0", "--http-port", "0", GLIBC_TUNABLES="")
    lines = done.stderr.strip().splitlines()
    refused = done.returncode == REFUSED_EXIT_CODE and bool(lines) and bool(REFUSAL.fullmatch(lines[-1]))
    if not refused:
        print(done.returncode, done.stdout, done.stderr, sep="\n", file=sys.stderr)
    return refused


def machine() -> dict:
    return {"emulator": subprocess.run([QEMU, "--version"], capture_output=True, text=True,
                                       check=True).stdout.splitlines()[0], "isa": SERVED}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="has the programs")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("programs", nargs="+")
    options = parser.parse_args()
    print(f"{'CPU':14} {'program':26} {'passed':>7} {'failed':>7} {'seconds':>8}")
    refused = is_refused(options.bin / "attendant-server")
    print(f"{REFUSED:14} {'attendant-server':26} {'refused' if refused else 'NOT REFUSED'}", flush=True)
    passed, failed = int(refused), int(not refused)
    for name in options.programs:
        found = run_program(options.bin / name)
        passed, failed = passed + found["passed"], failed + found["failed"]
        print(f"{SERVED:14} {name:26} {found['passed']:7} {found['failed']:7} {found['seconds']:8.0f}", flush=True)
    if options.json:
        figures = {"cpus.passed": passed, "cpus.failed": failed}
        options.json.write_text(json.dumps({"machine": machine(), "figures": figures}, indent=2) + "\n", encoding="utf-8")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
