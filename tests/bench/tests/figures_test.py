"""Tests of the names and formulas of the figures."""
import json
import unittest

import report_html
import report_targets
import report_text
from figures import figures_of, json_of
from made_results import result_of, results_of, timings


class UniformCase(unittest.TestCase):
    def setUp(self):
        self.figures = figures_of(results_of("f32", result_of(
            "bert-base", "8x128",
            arrival=timings(attendant=(1.25, 1.0, 1.5, 1.25, 1.25), bound_team=(1.0, 0.9, 1.2, 1.1, 1.1),
                            bound_rows=(1.0, 0.9, 0.75, 1.0, 0.8), openvino=(1.5, 1.1, 1.5, 1.75, 1.625),
                            torch_eager=(1.4, 1.3, 1.5, 2.0, 2.0)))))

    def test_tokens_per_s_are_of_the_best_pass_and_of_the_median(self):
        self.assertEqual(self.figures["tokens_per_s.bert-base.8x128.f32"], 1024)
        self.assertAlmostEqual(self.figures["median_tokens_per_s.bert-base.8x128.f32"], 1024 / 1.25)

    def test_the_share_is_of_the_quicker_bound_by_the_median_round(self):
        self.assertAlmostEqual(self.figures["bound.bert-base.8x128.f32"], 0.8)  # of 0.8, 0.9, 0.5, 0.8 and 0.64
        self.assertAlmostEqual(self.figures["bound_tokens_per_s.bert-base.8x128.f32"], 1024 / 0.75)

    def test_the_ratio_is_to_the_quickest_peer_by_the_median_round(self):
        self.assertAlmostEqual(self.figures["peer.bert-base.8x128.f32"], 1.2)  # of 1.2, 1.1, 1.0, 1.4 and 1.3
        self.assertAlmostEqual(self.figures["peer_tokens_per_s.torch-eager.bert-base.8x128.f32"], 1024 / 1.3)

    def test_useful_flops_are_those_of_the_layers(self):
        products = 12 * (8 * 768**2 + 4 * 768 * 3072) * 1024
        attention = 12 * 4 * 768 * 8 * 128**2
        self.assertAlmostEqual(self.figures["gflops.bert-base.8x128.f32"], (products + attention) / 1e9)


class ShortCase(unittest.TestCase):
    def test_has_the_bound_of_64_rows_and_that_of_16_beside_it(self):
        results = results_of("f32", result_of("bert-base", "1x16", arrival=timings(
            attendant=(1.0,), bound_team=(4.0,), bound_rows=(3.9,), bound16_team=(0.95,), bound16_rows=(1.8,),
            openvino=(1.1,))))
        figures = figures_of(results)
        self.assertAlmostEqual(figures["bound.bert-base.1x16.f32"], 3.9)
        self.assertAlmostEqual(figures["bound16.bert-base.1x16.f32"], 0.95)
        self.assertAlmostEqual(figures["peer.bert-base.1x16.f32"], 1.1)
        self.assertFalse([name for name in figures if name.startswith("peer_tokens_per_s.bound")])
        rows = {row[0]: row[1:] for row in report_targets.target_rows(results)}
        self.assertEqual(rows["bound16.bert-base.1x16.f32"], ("0.95", "0.950..0.950", 1, ">= 0.95", "reached", ""))
        self.assertNotIn("bound.bert-base.1x16.f32", rows)


class RaggedCase(unittest.TestCase):
    def setUp(self):
        self.found = result_of(
            "bert-base", "ragged-uniform",
            arrival=timings(attendant=(2.0,), bound_team=(1.5,), openvino=(5.0,), torch_nested=(3.0,)),
            sorted=timings(attendant=(2.0,), openvino=(2.6,), torch_nested=(2.8,)),
            single=timings(attendant=(1.0,), openvino=(1.2,)))

    def test_ratios_are_of_rounds_that_both_ran_in(self):
        figures = figures_of(results_of("bf16", self.found))
        self.assertAlmostEqual(figures["peer.ragged-uniform.arrival.bf16"], 1.5)
        self.assertAlmostEqual(figures["peer.ragged-uniform.best.bf16"], 1.2)

    def test_the_bound_is_compared_with_the_engine_of_its_own_rounds(self):
        figures = figures_of(results_of("bf16", self.found))
        self.assertAlmostEqual(figures["bound.bert-base.ragged-uniform.bf16"], 0.75)
        self.assertAlmostEqual(figures["bound_tokens_per_s.bert-base.ragged-uniform.bf16"],
                               self.found.case.tokens / 1.5)

    def test_an_arrangement_whose_rounds_ended_early_is_not_the_best(self):
        found = result_of("bert-base", "ragged-uniform",
                          arrival=timings(attendant=(1.0,) * 5, openvino=(1.2,) * 5),
                          single=timings(attendant=(2.0,), openvino=(2.2,)))
        self.assertAlmostEqual(figures_of(results_of("f32", found))["peer.ragged-uniform.best.f32"], 1.2)

    def test_other_models_sets_have_their_models_name(self):
        found = result_of("minilm-l6", "ragged-uniform", arrival=timings(attendant=(1.0,), openvino=(2.0,)))
        self.assertEqual(figures_of(results_of("f32", found))["peer.minilm-l6.ragged-uniform.arrival.f32"], 2.0)


class Spread(unittest.TestCase):
    def test_json_has_the_spread_of_each_ratio_and_the_seed(self):
        results = results_of("f32", result_of("bert-base", "8x128", arrival=timings(
            attendant=(1.0,) * 3, attendant_onednn=(2.0,) * 3, bound_team=(0.7, 0.9, 0.8),
            products_team=(1.0, 1.0, 1.0), openvino=(2.0, 1.0, 3.0))))
        results.seed = 7
        found = json.loads(json.dumps(json_of(results)))
        self.assertEqual(found["seed"], 7)
        self.assertEqual(found["spreads"]["bound.bert-base.8x128.f32"], {"lowest": 0.7, "highest": 0.9, "rounds": 3})
        self.assertEqual(found["spreads"]["peer.bert-base.8x128.f32"], {"lowest": 1.0, "highest": 3.0, "rounds": 3})
        self.assertEqual(set(found["spreads"]), {f"{figure}.bert-base.8x128.f32"
                                                 for figure in ("bound", "price", "own_over_onednn", "peer")})

    def test_text_and_page(self):
        results = results_of("f32", result_of("bert-base", "8x128", arrival=timings(
            attendant=(1.0,) * 3, bound_team=(0.7, 0.9, 0.8), openvino=(2.0, 1.0, 3.0))))
        results.seed = 7
        text, page = report_text.render(results), report_html.render(results)
        self.assertRegex(text, r"(?m)^its spread +1.00..3.00$")
        for rendered in (text, page):
            for part in ("ragged sets of seed 7", "0.700..0.900", "1.000..3.000"):
                self.assertIn(part, rendered)


if __name__ == "__main__":
    unittest.main()
