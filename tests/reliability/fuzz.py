"""Inputs that the fuzzer tried, and targets that crashed; tests/fuzz/run measures them."""
import json
import pathlib
import subprocess
import sys
import tempfile

from report import Measured
from server_process import NotMeasured

RUN = pathlib.Path(__file__).resolve().parents[1] / "fuzz" / "run"


def measure(setup, run: pathlib.Path = RUN) -> dict:
    with tempfile.TemporaryDirectory() as scratch:
        file = pathlib.Path(scratch) / "figures.json"
        # It ends with an error if a target crashed, and has written its figures then too.
        ended = subprocess.run([run, *["--long"] * setup.long, "--json", file], stdout=sys.stderr, check=False)
        if not file.exists():
            raise NotMeasured(f"tests/fuzz/run ended with {ended.returncode} and without figures")
        figures = json.loads(file.read_text(encoding="utf-8"))
    inputs = figures["fuzz.request_inputs"] + figures["fuzz.weight_inputs"]
    return {name: Measured(value, inputs) for name, value in figures.items()}
