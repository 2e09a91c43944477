"""Tests that a run that is ended early writes what it has and ends its workers."""
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).parent
PATIENCE = 60
# The driver, whose rounds take no time, and which writes no checkpoints.
DRIVER = """
import checkpoints, rounds
rounds.SETTLE_SECONDS = rounds.TURN_SECONDS = 0
checkpoints.write = lambda model, folder: folder
import driver
driver.main()
"""
# The comparison of servers with two contenders, of which the first has been measured before, and a measurement in the
# working folder.
COMPARE = """
import json, pathlib, sys, types
import compare
from ending import end_on_signals

work = pathlib.Path.cwd()
compare.HERE = work
compare.CONTENDERS = {"first": None, "second": lambda place: types.SimpleNamespace(name="second", caller="")}
compare.Comparison._missing = lambda self, contender: ""
place = types.SimpleNamespace(python=lambda caller: sys.executable, threads=2)
compare.Place = lambda *_: place
(work / "measured").mkdir()
(work / "measured" / "first.5.20.json").write_text('{"capacity": 9}')
options = types.SimpleNamespace(only=["second"], seed=5, seconds=20, work=work, programs="", http_load="", checkpoint="")
end_on_signals()
comparison = compare.Comparison(options)
print(json.dumps([comparison.run(), comparison.ended_by]))
"""
MEASURE = """
import pathlib, signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit())
try:
    pathlib.Path("begun").write_text("")  # waits until somebody reads
    signal.pause()
finally:
    pathlib.Path("server_ended").touch()
"""


class ComparisonEndedEarly(unittest.TestCase):
    def test_what_was_measured_is_kept_and_the_measurement_ends_its_server(self):
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            (folder / "measure.py").write_text(MEASURE, encoding="utf-8")
            os.mkfifo(folder / "begun")
            path = ":".join(str(HERE.parents[i] / name) for i, name in ((0, "servers"), (0, ""), (1, "support")))
            with subprocess.Popen([sys.executable, "-c", COMPARE], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True, cwd=folder,
                                  env={**os.environ, "PYTHONPATH": path}) as comparing:
                self.addCleanup(comparing.kill)
                (folder / "begun").read_text(encoding="utf-8")
                comparing.send_signal(signal.SIGTERM)
                output, _ = comparing.communicate(timeout=PATIENCE)
            self.assertEqual(json.loads(output), [{"first": {"capacity": 9}}, "SIGTERM"])
            self.assertTrue((folder / "server_ended").exists())


class EndedEarly(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.build = pathlib.Path(scratch.name)
        self.output, self.workers = self.build / "out.json", self.build / "workers"
        (self.build / "bench" / "bin").mkdir(parents=True)

    def write_worker(self, name: str, command: str) -> None:
        program = self.build / "bench" / "bin" / name
        program.write_text(f"#!/bin/sh\necho $$ >> {self.workers}\nexec {command}\n", encoding="utf-8")
        program.chmod(0o755)

    def end_at(self, line: str, number: int) -> tuple:
        """Sends the signal to the driver when it says this line, and returns its output and errors when it and its
        workers have ended."""
        peer = f"{sys.executable} {HERE / 'fake_peer.py'}"
        if not (self.build / "bench" / "bin" / "engine_worker").exists():
            self.write_worker("engine_worker", f"{peer} hangs")
        self.write_worker("bound_worker", f"{peer} absent")
        with subprocess.Popen(
                [sys.executable, "-c", DRIVER, "--build", self.build, "--cases", "minilm-l6.*", "--dtypes", "f32",
                 "--json", self.output], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                env={**os.environ, "PYTHONPATH": str(HERE.parent)}) as driver:
            self.addCleanup(driver.kill)
            said = next((said for said in driver.stderr if said.strip() == line), None)
            self.assertIsNotNone(said)
            workers = [self.handle(pid) for pid in self.workers.read_text(encoding="utf-8").split()]
            driver.send_signal(number)
            output, errors = driver.communicate(timeout=PATIENCE)
        for worker in filter(None, workers):
            self.assertEqual(select.select([worker], [], [], PATIENCE)[0], [worker])
            os.close(worker)
        self.assertNotEqual(driver.returncode, 0)
        return output, errors

    @staticmethod
    def handle(pid: str) -> int | None:
        try:
            return os.pidfd_open(int(pid))
        except ProcessLookupError:
            return None

    def test_finished_cases_are_written(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            name = signal.Signals(number).name
            output, errors = self.end_at("minilm-l6 1x16 arrival f32", number)
            self.assertIn(f"ended early by {name}: only what had been measured", output)
            self.assertRegex(errors, rf"(?m)^ended early by {name}$")
            found = json.loads(self.output.read_text(encoding="utf-8"))
            self.assertIn("tokens_per_s.minilm-l6.8x128.f32", found["figures"])
            self.assertNotIn("tokens_per_s.minilm-l6.1x16.f32", found["figures"])
            self.output.unlink()

    def test_workers_that_are_still_starting_end_too(self):
        os.mkfifo(self.workers)  # reading it waits until the worker runs
        self.write_worker("engine_worker", "sleep 3600")
        output, errors = self.end_at("starting attendant.minilm-l6.f32", signal.SIGTERM)
        self.assertEqual(output, "")
        self.assertIn("ended early by SIGTERM: nothing had been measured", errors)
        self.assertFalse(self.output.exists())

    def test_workers_end_with_a_driver_that_is_killed(self):
        self.end_at("minilm-l6 1x16 arrival f32", signal.SIGKILL)


if __name__ == "__main__":
    unittest.main()
