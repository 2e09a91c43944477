"""Tests of the driver's options, and of the files that it writes once."""
import argparse
import pathlib
import re
import tempfile
import unittest
from unittest import mock

import checkpoints
import kernels
from cases import Model
from driver import DTYPES, types_in

SMALL = Model("small", 1, 8, 2, 16)


class Types(unittest.TestCase):
    def test_they_keep_their_order(self):
        self.assertEqual(types_in("int8,bf16"), ("bf16", "int8"))
        self.assertEqual(types_in(",".join(DTYPES)), DTYPES)

    def test_unknown_ones_are_refused(self):
        with self.assertRaisesRegex(argparse.ArgumentTypeError, "no such type: fp8; there are f32, bf16x3, bf16, int8"):
            types_in("fp8,int8")

    def test_micro_benchmarks_of_other_types_are_left_out(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch("subprocess.run") as run:
            output = pathlib.Path(folder) / "out.json"
            output.write_text('{"benchmarks": []}', encoding="utf-8")
            for unwanted in (["f32", "bf16x3"], []):
                kernels.run_kernels(pathlib.Path("bench"), output, pathlib.Path(folder) / "log", unwanted)
        (some, everything) = (call.args[0] for call in run.call_args_list)
        pattern = next(flag for flag in some if flag.startswith("--benchmark_filter=-")).partition("=-")[2]
        for name in ("Linear/f32/in:768", "stage/bert-base.8x128.bf16x3/qkv", "MakingOperands/bf16x3-emulated/width:8"):
            self.assertTrue(re.search(pattern, name), name)
        for name in ("Linear/bf16/in:768", "stage/bert-base.8x128.int8/qkv", "ResidualNorm/width:8", "roof/f32"):
            self.assertFalse(re.search(pattern, name), name)
        self.assertFalse([flag for flag in everything if "filter" in flag])


class Checkpoints(unittest.TestCase):
    def test_one_of_another_shape_is_written_anew(self):
        with tempfile.TemporaryDirectory() as scratch, mock.patch.multiple(checkpoints, VOCABULARY=104, POSITIONS=4):
            folder = pathlib.Path(scratch) / "small"
            checkpoints.write(SMALL, folder)
            kept = folder / "converted"
            kept.mkdir()
            checkpoints.write(SMALL, folder)
            self.assertTrue(kept.exists())
            before = (folder / "model.safetensors").stat().st_size
            with mock.patch.object(checkpoints, "POSITIONS", 8):
                checkpoints.write(SMALL, folder)
            self.assertFalse(kept.exists())
            self.assertGreater((folder / "model.safetensors").stat().st_size, before)


if __name__ == "__main__":
    unittest.main()
