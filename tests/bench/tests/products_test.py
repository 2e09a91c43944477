"""Tests of the figures of the AMX GEMM, of the reasons why they are missing, and of the price of equal
bits."""
import json
import unittest

import report_html
import report_text
from cases import MODELS
from figures import figures_of, json_of
from made_results import plan_of, result_of, results_of, timings
from results import Accuracy, ModelResult, Results

MIXED = [plan_of("tiles", 768, 2304, 1.48), plan_of("onednn", 3072, 768, 1.08)]


def names_of(figures: dict, *beginnings: str) -> list:
    return [name for name in figures if name.startswith(beginnings)]


class Own(unittest.TestCase):
    def setUp(self):
        self.results = results_of(
            "bf16", result_of("bert-base", "8x128", arrival=timings(
                attendant=(1.0,), attendant_onednn=(1.2,), bound_team=(0.9,), openvino=(1.5,), torch_eager=(1.4,))),
            result_of("bert-base", "ragged-uniform", arrival=timings(
                attendant=(1.0,), attendant_onednn=(1.1,), openvino=(2.5,))), isa="amx")
        self.results.models[0].plans = MIXED

    def test_it_is_compared_with_the_best_peer_and_with_onednns_products(self):
        figures = figures_of(self.results)
        self.assertEqual(figures["own.bert-base.8x128.bf16"], 1.4)
        self.assertEqual(figures["own_over_onednn.bert-base.8x128.bf16"], 1.2)
        self.assertEqual(figures["own_over_onednn.bert-base.ragged-uniform.bf16"], 1.1)
        self.assertEqual(names_of(figures, "own."), ["own.bert-base.8x128.bf16"])

    def test_other_figures_are_of_the_engine_as_users_get_it(self):
        figures = figures_of(self.results)
        self.assertEqual(figures["tokens_per_s.bert-base.8x128.bf16"], 1024)
        self.assertEqual(figures["peer.bert-base.8x128.bf16"], 1.4)
        self.assertEqual(figures["bound.bert-base.8x128.bf16"], 0.9)
        self.assertEqual(names_of(figures, "peer_tokens_per_s.attendant"), [])

    def test_text_and_page_tell_what_was_chosen(self):
        text = report_text.render(self.results)
        self.assertRegex(text, r"(?m)^bert-base.bf16 +768x2304 +768 +- +ours +- +1.48$")
        self.assertRegex(text, r"(?m)^bert-base.bf16 +3072x768 +768 +256 64 16 +oneDNN +brg:avx512_core +1.08$")
        self.assertRegex(text, r"(?m)^bert-base.8x128.bf16 +1024 +853 +1.200 +1.200..1.200$")
        self.assertRegex(text, r"(?m)^own.bert-base.8x128.bf16 +1.4 +1.400..1.400 +1 +>= 1.35 +reached +torch-eager$")
        page = report_html.render(self.results)
        for rendered in (text, page):
            self.assertEqual(rendered.count("attendant is the engine as users get it"), 1)
            self.assertEqual(rendered.count("Loading chooses"), 1)

    def test_json_tells_what_was_chosen(self):
        found = json.loads(json.dumps(json_of(self.results)))
        self.assertEqual(found["products"], {"bert-base.bf16": MIXED})

    def test_answers_with_onednns_products_must_be_right_too(self):
        self.results.models[0].accuracy["attendant-onednn"] = Accuracy(0.8, 0.5, 0.1, False)
        self.assertEqual(self.results.wrong_answers(),
                         ["bert-base.bf16, attendant-onednn: lowest cosine 0.8000000, largest error 5.0e-01"])


class BesideItself(unittest.TestCase):
    def test_weights_as_stored(self):
        results = results_of("f32", result_of("bert-base", "1x16", arrival=timings(
            attendant=(1.2,), attendant_bf16_file=(1.0,))), isa="avx512_bf16")
        self.assertEqual(figures_of(results)["stored.bert-base.1x16.bf16_file"], 1.2)
        self.assertRegex(report_text.render(results),
                         r"(?m)^stored.bert-base.1x16.bf16_file +1.2 +1.200..1.200 +1 +>= 1.35 +missed")

    def test_one_type_hides_nothing_of_another(self):
        results = results_of("f32", result_of("bert-base", "1x16", arrival=timings(
            attendant=(1.2,), attendant_bf16_file=(1.0,))), isa="avx512_bf16")
        results.models += results_of("int8", result_of("bert-base", "1x16", arrival=timings(
            attendant=(0.5,), attendant_f32=(1.0,)))).models
        figures = figures_of(results)
        self.assertEqual((figures["stored.bert-base.1x16.bf16_file"], figures["int8_over_f32.bert-base.1x16"]), (1.2, 2.0))

    def test_int8(self):
        results = results_of("int8", result_of("bert-base", "8x128", arrival=timings(
            attendant=(1.0,), attendant_f32=(1.7,))), isa="avx2")
        self.assertEqual(figures_of(results)["int8_over_f32.bert-base.8x128"], 1.7)
        self.assertRegex(report_text.render(results), r"(?m)^int8_over_f32.bert-base.8x128 +1.7 .*>= 1.7 +reached")

    def test_the_vector_gemm(self):
        results = results_of("f32", result_of("bert-base", "1x16", arrival=timings(
            attendant=(1.0,), attendant_onednn=(1.6,), openvino=(2.0,))), isa="avx2")
        results.models[0].plans = [plan_of("vector")]
        self.assertTrue(results.models[0].chose_own)
        self.assertFalse(results.models[0].chose_tiles)
        self.assertEqual(figures_of(results)["own_over_onednn.bert-base.1x16.f32"], 1.6)
        self.assertEqual(names_of(figures_of(results), "own."), [])
        self.assertRegex(report_text.render(results), r"(?m)^bert-base.f32 +768x768 +768 +- +ours")


class NotMeasured(unittest.TestCase):
    def results(self, isa: str, plans: list, **group) -> Results:
        results = results_of("bf16", result_of("bert-base", "8x128", arrival=timings(attendant=(1.0,), **group)),
                             isa=isa)
        results.models[0].plans = plans
        return results

    def lines(self, results: Results) -> list:
        self.assertEqual(names_of(figures_of(results), "own"), [])
        return report_text.not_measured(results)

    def test_without_amx(self):
        results = self.results("avx512_bf16", [plan_of("onednn")], openvino=(2.0,))
        results.models.append(ModelResult(MODELS["minilm-l6"], "bf16", refused="no units"))
        self.assertIn("own.bert-base.8x128.bf16, own.minilm-l6.8x128.bf16: this CPU has no AMX", self.lines(results))

    def test_where_onednns_were_chosen(self):
        plans = [plan_of("onednn", speedup=1.02), plan_of("onednn", 3072, 768, 1.1)]
        self.assertEqual(self.lines(self.results("amx", plans, openvino=(2.0,))),
                         ["own.bert-base.8x128.bf16: oneDNN's products were chosen, ours were at most 1.10 times as "
                          "fast"])
        self.assertEqual(self.lines(self.results("amx", [plan_of("onednn")], openvino=(2.0,))),
                         ["own.bert-base.8x128.bf16: oneDNN's products were chosen"])

    def test_without_peers(self):
        self.assertEqual(self.lines(self.results("amx", MIXED)), ["own.bert-base.8x128.bf16: no peer took part"])

    def test_without_a_run(self):
        results = Results(models=[ModelResult(MODELS["bert-base"], "bf16", refused="no such folder")])
        self.assertEqual(report_text.not_measured(results), ["bert-base.bf16, attendant: refused, no such folder"])


class Price(unittest.TestCase):
    def test_it_is_of_the_quicker_forms(self):
        results = results_of("f32", result_of("bert-base", "8x128", arrival=timings(
            attendant=(2.0,), bound_team=(1.0,), bound_rows=(1.2,), products_team=(1.25,), products_rows=(1.05,),
            openvino=(2.5,))))
        figures = figures_of(results)
        self.assertEqual(figures["price.bert-base.8x128.f32"], 1.05)
        self.assertEqual(names_of(figures, "peer_tokens_per_s.products"), [])
        self.assertEqual(figures["peer.bert-base.8x128.f32"], 1.25)
        text = report_text.render(results)
        self.assertRegex(text, r"(?m)^bert-base.8x128.f32 +1050.00 +1000.00 +1.050 +1.050..1.050$")
        self.assertIn("price of equal bits", report_html.render(results))

    def test_few_rows_are_rounded_up_alike(self):
        results = results_of("bf16", result_of("bert-base", "1x16", arrival=timings(
            attendant=(2.0,), bound_team=(4.0,), bound16_team=(1.0,), products_team=(1.5,))))
        self.assertEqual(figures_of(results)["price.bert-base.1x16.bf16"], 1.5)

    def test_there_is_none_without_the_products_alone(self):
        results = results_of("f32", result_of("bert-base", "8x512", arrival=timings(attendant=(2.0,),
                                                                                    bound_team=(1.0,))))
        self.assertEqual(names_of(figures_of(results), "price"), [])
        self.assertNotIn("price of equal bits", report_text.render(results))


if __name__ == "__main__":
    unittest.main()
