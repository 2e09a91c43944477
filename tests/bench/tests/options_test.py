"""Tests of the driver's options, and of the files that it writes once."""
import argparse
import json
import pathlib
import re
import tempfile
import unittest
from unittest import mock

import numpy as np

import checkpoint_kinds
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
        with tempfile.TemporaryDirectory() as scratch, mock.patch.object(
                checkpoint_kinds.Bert, "vocabulary", 104), mock.patch.object(checkpoint_kinds, "POSITIONS", 4):
            folder = pathlib.Path(scratch) / "small"
            checkpoints.write(SMALL, folder)
            kept = folder / "converted"
            kept.mkdir()
            checkpoints.write(SMALL, folder)
            self.assertTrue(kept.exists())
            before = (folder / "model.safetensors").stat().st_size
            with mock.patch.object(checkpoint_kinds, "POSITIONS", 8):
                checkpoints.write(SMALL, folder)
            self.assertFalse(kept.exists())
            self.assertGreater((folder / "model.safetensors").stat().st_size, before)

    def test_each_kind_has_its_norms_and_the_values_of_its_seed(self):
        for kind, mean in (("xlm-roberta", 1), ("qwen3", 1), ("gemma3_text", 0)):
            model = Model("small", 1, 64, 2, 16, kind=kind, key_value_heads=1, head_width=32, gated=True)
            with tempfile.TemporaryDirectory() as scratch, mock.patch.object(
                    type(checkpoint_kinds.KINDS[kind]), "vocabulary", 104):
                first, second = (self.tensors(checkpoints.write(model, pathlib.Path(scratch) / name))
                                 for name in ("first", "second"))
            self.assertEqual({name: values.tobytes() for name, values in first.items()},
                             {name: values.tobytes() for name, values in second.items()})
            for name, values in first.items():
                is_norm = name.lower().endswith("norm.weight")
                self.assertAlmostEqual(float(values.mean()), mean if is_norm else 0, delta=0.02, msg=name)
                self.assertAlmostEqual(float(values.std()), 0.02, delta=0.01, msg=name)

    @staticmethod
    def tensors(folder: pathlib.Path) -> dict:
        content = (folder / "model.safetensors").read_bytes()
        begin = 8 + int.from_bytes(content[:8], "little")
        header = json.loads(content[8:begin])
        return {name: np.frombuffer(content, np.float32, (last - first) // 4, begin + first)
                for name, entry in header.items() if name != "__metadata__"
                for first, last in (entry["data_offsets"],)}


if __name__ == "__main__":
    unittest.main()
