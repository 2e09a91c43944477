"""Tests of how the figures of the fuzzer are taken over, with a script in its place."""
import pathlib
import tempfile
import types
import unittest

import fuzz
from report import Measured
from server_process import NotMeasured


class Figures(unittest.TestCase):
    def measure(self, script: str, long: bool) -> dict:
        with tempfile.TemporaryDirectory() as scratch:
            run = pathlib.Path(scratch) / "run"
            run.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
            run.chmod(0o755)
            return fuzz.measure(types.SimpleNamespace(long=long), run)

    def test_a_crash_is_a_figure(self):
        script = """while [ "$1" != --json ]; do [ "$1" = --long ] && requests=70; shift; done
            echo '{"fuzz.request_inputs": '${requests:-7}', "fuzz.weight_inputs": 5, "fuzz.crashes": 1}' >"$2"
            exit 1"""
        self.assertEqual(self.measure(script, long=False), {
            "fuzz.request_inputs": Measured(7, 12), "fuzz.weight_inputs": Measured(5, 12), "fuzz.crashes": Measured(1, 12)})
        self.assertEqual(self.measure(script, long=True)["fuzz.request_inputs"], Measured(70, 75))

    def test_without_figures_it_is_not_measured(self):
        with self.assertRaisesRegex(NotMeasured, "ended with 3 and without figures"):
            self.measure("exit 3", long=False)


if __name__ == "__main__":
    unittest.main()
