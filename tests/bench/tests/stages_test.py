"""Tests that the stages of a layer keep their names and order, in whatever order they were measured, and of their
bounds."""
import unittest

import charts
import report_html
import report_stages
import report_text
from figures import figures_of
from made_results import result_of, results_of, timings
from stages import STAGES, stages_of

CASE = "bert-base.8x128.f32"
IN_BYTES = ("norm", "activation")


def unit(stage: str) -> str:
    return "bytes" if stage in IN_BYTES else "flops"


class Stages(unittest.TestCase):
    def setUp(self):
        self.results = results_of("f32", result_of("bert-base", "8x128", arrival=timings(attendant=(1.0,))))
        seconds = {stage: 0.001 * (1 + i) for i, stage in enumerate(STAGES)}
        self.results.kernels = [(f"stage/{CASE}/{stage}", seconds[stage], {unit(stage): 80e9})
                                for stage in sorted(STAGES)]
        self.results.kernels += [(f"bound/{CASE}/{stage}", 1.0, {unit(stage): 100e9 + 1e9 * i})
                                 for i, stage in enumerate(STAGES) if stage != "attention"]
        self.results.kernels += [("roof/f32", 1.0, {"flops": 160e9}), ("roof/bf16", 1.0, {"flops": 320e9}),
                                 ("Rotary", 2e-6, {"elements": 4e9})]

    def test_a_layer_has_two_norms(self):
        figures = figures_of(self.results)
        self.assertAlmostEqual(figures[f"stage_ms.{CASE}.norm"], 8)
        self.assertAlmostEqual(figures[f"stage_ms.{CASE}.qkv"], 1)
        self.assertAlmostEqual(figures[f"stage_ms.{CASE}.ff2"], 7)

    def test_rates_and_shares_are_figures(self):
        figures = figures_of(self.results)
        self.assertEqual(figures[f"stage_gops.{CASE}.qkv"], 80)
        self.assertEqual(figures[f"stage_gbs.{CASE}.norm"], 80)
        self.assertAlmostEqual(figures[f"stage_share.{CASE}.qkv"], 0.8)
        self.assertEqual((figures["roof_gops.f32"], figures["roof_gops.bf16"]), (160, 320))
        self.assertFalse([name for name in figures if name.startswith("kernel_") and "Rotary" not in name])

    def test_attention_has_the_roof_of_the_type_of_its_operands(self):
        self.assertAlmostEqual(figures_of(self.results)[f"stage_share.{CASE}.attention"], 0.5)
        for dtype, least in (("int8", 320e9), ("bf16x3", 160e9)):
            kernels = [(name.replace(".f32/", f".{dtype}/"), *rest) for name, *rest in self.results.kernels]
            self.assertEqual(stages_of(kernels)[f"bert-base.8x128.{dtype}"]["attention"].roof, least)
            without = [kernel for kernel in kernels if kernel[0] != "roof/bf16"]
            self.assertEqual(stages_of(without)[f"bert-base.8x128.{dtype}"]["attention"].roof, 160e9)

    def test_columns_are_under_their_heads(self):
        (_, head, [row]), (_, share_head, [shares]), (_, rate_head, [rates]) = report_stages.stage_tables(self.results)
        self.assertEqual(dict(zip(head, row)), {
            "ms of a layer": CASE, "QKV": "1.00 (3 %)", "attention": "2.00 (6 %)", "output": "3.00 (9 %)",
            "2 norms": "8.00 (25 %)", "FF1": "5.00 (16 %)", "activation": "6.00 (19 %)", "FF2": "7.00 (22 %)",
            "all": "32.00"})
        self.assertEqual((dict(zip(share_head, shares))["output"], dict(zip(share_head, shares))["FF2"]),
                         ("0.78", "0.75"))
        self.assertEqual((dict(zip(rate_head, rates))["QKV"], dict(zip(rate_head, rates))["2 norms"]),
                         ("80/100", "80/103 B"))

    def test_text_and_page(self):
        self.assertRegex(report_text.render(self.results), rf"(?m)^{CASE} +0.80 +0.50 ")
        page = report_html.render(self.results)
        self.assertIn("Time of each stage of a layer, bert-base.8x128\"", page)
        self.assertIn("32 ms", page)

    def test_bars_of_all_types_have_one_scale(self):
        drawn = charts.stacked("", ["a"], [("f32", [(4.0, 0.5)]), ("bf16", [(2.0, 1.5)])], "ms")
        width = charts.WIDTH - charts.LABELS - 90
        for part, wide in (("s0 pale", width), ("s0", width / 2), ("s0 pale", width / 2), ("s0", width / 2)):
            self.assertRegex(drawn, rf'width="{wide:.1f}" height="18" class="{part}"')

    def test_a_case_that_lacks_a_stage_is_left_out(self):
        del self.results.kernels[0]
        self.assertEqual(report_stages.stage_rows(self.results), [])

    def test_a_stage_without_a_bound_has_no_share(self):
        self.results.kernels = [kernel for kernel in self.results.kernels if kernel[0].startswith("stage/")]
        _, (_, _, [shares]), (_, _, [rates]) = report_stages.stage_tables(self.results)
        self.assertEqual((shares[1], rates[1]), ("-", "80/-"))
        report_html.render(self.results)

    def test_kernels_are_apart(self):
        self.assertEqual(report_text.kernel_rows(self.results), [("Rotary", "2.0", "0.250 ns/element")])


if __name__ == "__main__":
    unittest.main()
