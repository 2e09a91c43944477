"""Runs what was built for arm64 under qemu-user, on CPUs with and without the newer units, and prints a table."""
import argparse
import json
import pathlib
import sys
import time

from smoke import Emulator, run_smoke

# With dot products, bf16 and i8mm, and with none of them, and their types smaller than float32.
CPUS = {"max": ("bf16", "int8"), "cortex-a72": ("int8",)}
NEWEST = "max"
# Kernels for arm64 have pages of 4, 16 or 64 KiB.
PAGES = (16 << 10, 64 << 10)
TESTS_OF_PAGES = "engine_base_test"


def emulator_of(cpu: str, options: argparse.Namespace, *flags: str) -> Emulator:
    preloaded = ["-E", f"LD_PRELOAD={options.preloaded}"]
    command = ["/usr/bin/qemu-aarch64", "-cpu", cpu, "-L", str(options.sysroot), *flags, *preloaded]
    return Emulator(command, EMULATOR_COMMAND="\n".join(command))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="has the programs")
    parser.add_argument("--sysroot", type=pathlib.Path, required=True)
    parser.add_argument("--preloaded", type=pathlib.Path, required=True, help="the library of exec_emulated.cc")
    parser.add_argument("--minilm", type=pathlib.Path, help="the directory of a real MiniLM, for the smoke tests")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("programs", nargs="*")
    options = parser.parse_args()
    totals = {"passed": 0, "failed": 0}

    def report(cpu: str, name: str, found: dict) -> None:
        for key in totals:
            totals[key] += found[key]
        print(f"{cpu:18} {name:26} {found['passed']:7} {found['failed']:7} {found['seconds']:8.0f}", flush=True)

    print(f"{'CPU':18} {'program':26} {'passed':>7} {'failed':>7} {'seconds':>8}", flush=True)
    for cpu, dtypes in CPUS.items():
        emulator = emulator_of(cpu, options)
        for name in options.programs:
            report(cpu, name, emulator.run_tests(options.bin / name))
        if options.minilm:
            began = time.monotonic()
            report(cpu, "server and client", run_smoke(emulator, options.bin, options.minilm, dtypes) |
                   {"seconds": time.monotonic() - began})
    if TESTS_OF_PAGES in options.programs:
        for page in PAGES:
            emulator = emulator_of(NEWEST, options, "-p", str(page))
            report(f"{NEWEST}, {page >> 10} KiB", TESTS_OF_PAGES, emulator.run_tests(options.bin / TESTS_OF_PAGES))
    if options.json:
        figures = {f"arm64.tests_{key}": count for key, count in totals.items()}
        machine = {"emulator": emulator_of(NEWEST, options).version(), "isa": ", ".join(CPUS)}
        options.json.write_text(json.dumps({"machine": machine, "figures": figures}, indent=2) + "\n", encoding="utf-8")
    sys.exit(1 if totals["failed"] else 0)


if __name__ == "__main__":
    main()
