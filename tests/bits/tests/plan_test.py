"""Tests that each instruction set comes once, and that a process has as many models as fit."""
import unittest

import plan
from plan import Served


def served(model: str, mebibytes: int, kind: str = "f32") -> Served:
    return Served(model, f"synthetic:{model}", kind, mebibytes << 20)


class Plan(unittest.TestCase):
    def test_caps_above_the_cpu_are_left_out(self):
        isas = {"best": "avx512_vnni", "amx": "avx512_vnni", "avx512-bf16": "avx512_vnni", "avx512-vnni": "avx512_vnni",
                "avx512": "avx512", "avx2": "avx2"}
        self.assertEqual(plan.distinct(isas), {"best": "avx512_vnni", "avx512": "avx512", "avx2": "avx2"})

    def test_a_process_has_what_fits(self):
        models = [served("a", 1000), served("b", 1000), served("c", 1000), served("d", 5000), served("e", 10)]
        self.assertEqual([[one.model for one in group] for group in plan.groups(models)],
                         [["a", "b"], ["c"], ["d"], ["e"]])

    def test_weights_of_two_parts(self):
        models = [served("a", 1000, "bf16x3 emulated"), served("b", 1000, "bf16 emulated")]
        self.assertEqual([len(group) for group in plan.groups(models)], [1, 1])

    def test_small_models_have_every_row_plan(self):
        models = [served("small", 100, "bf16x3 emulated"), served("large", 200)]
        self.assertEqual(plan.with_row_plan(models, "team"), models)
        self.assertEqual(plan.with_row_plan(models, "rows"), models[:1])

    def test_names_are_those_a_server_takes(self):
        self.assertEqual(served("bert-base", 1, "bf16 emulated").name, "bert-base.bf16-emulated")


if __name__ == "__main__":
    unittest.main()
