"""Runs the micro-benchmarks of the kernels."""
import json
import pathlib
import subprocess

SECONDS_IN = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def run_kernels(program: pathlib.Path, output: pathlib.Path, log: pathlib.Path, unwanted_dtypes: list) -> list:
    """Returns (name, best seconds, counters) of each, without those of the unwanted types."""
    # A filter that begins with a minus excludes.
    filters = [f"--benchmark_filter=-[/.]({'|'.join(unwanted_dtypes)})[/-]"] if unwanted_dtypes else []
    with open(log, "w", encoding="utf-8") as console:
        subprocess.run([str(program), *filters, f"--benchmark_out={output}", "--benchmark_out_format=json",
                        "--benchmark_min_time=0.1", "--benchmark_repetitions=3"],
                       stdout=console, stderr=console, check=True)
    best = {}
    for entry in json.loads(output.read_text(encoding="utf-8"))["benchmarks"]:
        if entry["run_type"] != "iteration":
            continue
        name = entry["run_name"].removesuffix("/real_time")
        seconds = entry["real_time"] * SECONDS_IN[entry["time_unit"]]
        counters = {key: entry[key] for key in ("flops", "bytes", "elements") if key in entry}
        if name not in best or seconds < best[name][0]:
            best[name] = (seconds, counters)
    return [(name, *value) for name, value in best.items()]
