"""Tests that the stages of a layer keep their names and order, in whatever order they were measured."""
import unittest

import report_text
from figures import figures_of
from made_results import result_of, results_of, timings
from results import STAGES


class Stages(unittest.TestCase):
    def setUp(self):
        self.results = results_of("f32", result_of("bert-base", "8x128", arrival=timings(attendant=(1.0,))))
        seconds = {stage: 0.001 * (1 + i) for i, stage in enumerate(STAGES)}
        self.results.kernels = [(f"stage/bert-base.8x128.f32/{stage}", seconds[stage], {}) for stage in sorted(STAGES)]
        self.results.kernels.append(("Rotary", 2e-6, {"elements": 4e9}))

    def test_a_layer_has_two_norms(self):
        figures = figures_of(self.results)
        self.assertAlmostEqual(figures["stage_ms.bert-base.8x128.f32.norm"], 8)
        self.assertAlmostEqual(figures["stage_ms.bert-base.8x128.f32.qkv"], 1)
        self.assertAlmostEqual(figures["stage_ms.bert-base.8x128.f32.ff2"], 7)

    def test_columns_are_under_their_heads(self):
        row = dict(zip(report_text.STAGE_HEAD, report_text.stage_rows(self.results)[0]))
        self.assertEqual(row, {"ms of a layer": "bert-base.8x128.f32", "QKV": "1.00 (3 %)", "attention": "2.00 (6 %)",
                               "output": "3.00 (9 %)", "2 norms": "8.00 (25 %)", "FF1": "5.00 (16 %)",
                               "activation": "6.00 (19 %)", "FF2": "7.00 (22 %)"})

    def test_a_case_that_lacks_a_stage_is_left_out(self):
        del self.results.kernels[0]
        self.assertEqual(report_text.stage_rows(self.results), [])

    def test_kernels_are_apart(self):
        self.assertEqual(report_text.kernel_rows(self.results), [("Rotary", "2.0", "0.250 ns/element")])


if __name__ == "__main__":
    unittest.main()
