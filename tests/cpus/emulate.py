"""Runs test programs under qemu-user as CPUs that this machine is not, and prints a table."""
import argparse
import json
import pathlib
import re
import sys

from emulator import Emulator

# What the engine needs and not more, and a CPU that lacks one of the features.
SERVED = "Haswell"
REFUSED = "Haswell,-fma"
REFUSAL = re.compile(r"attendant-server: CPU: expected avx2, fma, bmi2 and f16c \(x86-64-v3\); got a CPU without fma; .+")
REFUSED_EXIT_CODE = 2
# The engine's threads treat denormal numbers as zeros. CPUs widen denormal float16 numbers all the same (VCVTPH2PS ignores
# MXCSR.DAZ), but qemu 7.2 makes zeros of them.
EMULATED_WRONGLY = "Types/StoredWeightsTest.*/f16"


def emulator_of(cpu: str) -> Emulator:
    return Emulator(["qemu-x86_64", "-cpu", cpu])


def is_refused(server: pathlib.Path) -> bool:
    # With this variable set the server does not execute itself again, which the emulator would not see.
    done = emulator_of(REFUSED).run(server, "--port", "0", "--http-port", "0", GLIBC_TUNABLES="")
    lines = done.stderr.strip().splitlines()
    refused = done.returncode == REFUSED_EXIT_CODE and bool(lines) and bool(REFUSAL.fullmatch(lines[-1]))
    if not refused:
        print(done.returncode, done.stdout, done.stderr, sep="\n", file=sys.stderr)
    return refused


def machine() -> dict:
    return {"emulator": emulator_of(SERVED).version(), "isa": SERVED}


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
        found = emulator_of(SERVED).run_tests(options.bin / name, EMULATED_WRONGLY)
        passed, failed = passed + found["passed"], failed + found["failed"]
        print(f"{SERVED:14} {name:26} {found['passed']:7} {found['failed']:7} {found['seconds']:8.0f}", flush=True)
    if options.json:
        figures = {"cpus.passed": passed, "cpus.failed": failed}
        options.json.write_text(json.dumps({"machine": machine(), "figures": figures}, indent=2) + "\n", encoding="utf-8")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
