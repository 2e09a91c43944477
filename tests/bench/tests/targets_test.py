"""Tests that the targets are those of the project, and that each has a figure of its name."""
import unittest

import report_targets
from figures import figures_of
from made_results import plan_of, result_of, results_of, timings
from targets import reached, targets

TABLES = {  # f32, bf16 with AVX-512, int8 with AVX-512, bf16 with AMX, int8 with AMX
    "bound.bert-base.8x128": (0.95, 0.95, 0.90, 0.94, 0.72),
    "bound.bert-base.8x512": (0.88, 0.87, 0.76, 0.84, 0.62),
    "bound.bert-base.ragged-uniform": (0.90, 0.90, 0.82, 0.90, 0.66),
    "bound.bert-base.ragged-lognormal": (0.90, 0.93, 0.86, 0.90, 0.68),
    "bound.minilm-l6.8x128": (0.90, 0.88, 0.78, 0.76, 0.54),
    "bound16.bert-base.1x16": (0.95, 0.97, 0.90, 0.95, 0.85),
    "bound16.minilm-l6.1x16": (0.80, 0.70, 0.65, 0.60, 0.50),
    "peer.bert-base.8x128": (1.0, 1.05, 1.10, 1.35, 1.4), "peer.bert-base.8x512": (1.0, 1.05, 1.05, 1.35, 1.4),
    "peer.bert-base.1x16": (1.08, 1.15, 1.45, 1.3, 1.5),
    "peer.minilm-l6.8x128": (1.12, 1.10, 1.12, 1.8, 1.9), "peer.minilm-l6.1x16": (1.1, 1.25, 1.4, 1.5, 1.8),
    "peer.ragged-uniform.arrival": (1.35, 1.5, 2.0, 2.2, 2.4),
    "peer.ragged-uniform.best": (1.08, 1.2, 1.1, 1.35, 1.5),
    "peer.ragged-lognormal.arrival": (1.4, 1.85, 1.95, 2.2, 2.4),
    "peer.ragged-lognormal.best": (1.2, 1.33, 1.7, 1.35, 1.5),
}
LARGE = {"bound.qwen3-0.6b.4x512.f32": 0.86, "peer.qwen3-0.6b.4x512.f32": 1.05, "peer.qwen3-0.6b.1x32.f32": 1.1,
         "peer.embeddinggemma.8x128.f32": 1.05, "peer.bge-m3.8x128.f32": 1.05}
DTYPES = ("f32", "bf16", "int8")


def timed(isa: str, *dtypes: str) -> dict:
    """The targets of shares and of ratios to peers in these types."""
    return {name: value for name, value in targets(isa).items()
            if name.startswith(("bound", "peer.")) and name.endswith(dtypes)}


class Targets(unittest.TestCase):
    def test_shares_and_ratios_with_avx512(self):
        self.assertEqual(timed("avx512_bf16", *DTYPES), {
            f"{name}.{dtype}": values[column]
            for name, values in TABLES.items() for column, dtype in enumerate(DTYPES)} | LARGE)

    def test_shares_and_ratios_with_amx(self):
        self.assertEqual(timed("amx", *DTYPES), {
            f"{name}.{dtype}": values[column] for name, values in TABLES.items()
            for dtype, column in (("f32", 0), ("bf16", 3), ("int8", 4))} | LARGE)

    def test_types_have_targets_where_the_cpu_has_units_for_them(self):
        for isa in ("avx2", "avx2_vnni", "avx512", "avx512_vnni", "avx512_bf16", "amx"):
            self.assertEqual(timed(isa, "f32"),
                             {f"{name}.f32": values[0] for name, values in TABLES.items()} | LARGE)
        self.assertEqual(timed("avx512", "bf16", "int8"), {})
        for isa in ("avx2", "avx2_vnni"):
            self.assertEqual(timed(isa, "bf16"), {})
            self.assertEqual(timed(isa, "int8"), {
                "peer.bert-base.8x128.int8": 1.05, "peer.bert-base.8x512.int8": 1.0, "peer.bert-base.1x16.int8": 1.3,
                "peer.minilm-l6.8x128.int8": 1.05, "peer.minilm-l6.1x16.int8": 1.3})
        self.assertEqual(timed("avx512_vnni", "bf16"), {})
        self.assertEqual(timed("avx512_vnni", "int8"), timed("avx512_bf16", "int8"))

    def test_bf16x3_has_two_targets(self):
        self.assertEqual({name: value for name, value in targets("amx").items() if name.endswith(".bf16x3")},
                         {"peer.bert-base.8x128.bf16x3": 1.7, "own.bert-base.8x128.bf16x3": 2.0})
        group = timings(attendant=(1.0,), openvino=(1.5,))
        self.assertIn("peer.bert-base.8x128.bf16x3",
                      figures_of(results_of("bf16x3", result_of("bert-base", "8x128", arrival=group))))

    def test_products_of_our_own_have_targets_where_they_can_be(self):
        own = {"own.bert-base.8x128.bf16": 1.35, "own.bert-base.1x16.bf16": 1.3, "own.minilm-l6.8x128.bf16": 1.8,
               "own.bert-base.8x128.bf16x3": 2.0}
        self.assertEqual({name: value for name, value in targets("amx").items() if name.startswith("own.")}, own)
        self.assertEqual([name for name in targets("avx512_vnni") if name.startswith("own.")], [])
        for name in own:
            _, model, case, dtype = name.split(".")
            results = results_of(dtype, result_of(model, case, arrival=timings(attendant=(1.0,), openvino=(1.5,))))
            results.models[0].plans = [plan_of("tiles")]
            self.assertIn(name, figures_of(results))

    def test_a_whole_run_has_a_figure_for_each(self):
        group = timings(attendant=(1.0,), bound_team=(0.9,), bound16_team=(0.9,), openvino=(1.5,))
        names = set()
        for dtype in DTYPES:
            for model, name in (("bert-base", "8x128"), ("bert-base", "8x512"), ("bert-base", "1x16"),
                                ("bert-base", "ragged-uniform"), ("bert-base", "ragged-lognormal"),
                                ("minilm-l6", "8x128"), ("minilm-l6", "1x16")):
                names |= set(figures_of(results_of(dtype, result_of(model, name, arrival=group))))
        for model, name in (("qwen3-0.6b", "4x512"), ("qwen3-0.6b", "1x32"), ("embeddinggemma", "8x128"),
                            ("bge-m3", "8x128")):
            names |= set(figures_of(results_of("f32", result_of(model, name, arrival=group))))
        self.assertLessEqual(set(timed("amx", *DTYPES)), names)


class Verdicts(unittest.TestCase):
    def test_shares_and_ratios_may_miss_by_two_hundredths(self):
        for name in ("bound.bert-base.8x128.f32", "bound16.bert-base.1x16.f32", "peer.bert-base.1x16.f32",
                     "own.bert-base.1x16.bf16"):
            for value, is_reached in ((1.2, True), (0.95, True), (0.93, True), (0.9299, False)):
                self.assertEqual(reached(name, value, 0.95), is_reached, (name, value))

    def test_accuracy_may_not(self):
        name = "accuracy.attendant.minilm-l6.bf16.lowest_token_cosine"
        self.assertTrue(reached(name, 0.9997, 0.9997))
        self.assertFalse(reached(name, 0.9996, 0.9997))

    def test_rows_have_the_spread_of_the_rounds(self):
        results = results_of("f32", result_of("bert-base", "8x128", arrival=timings(
            attendant=(1.0,) * 5, bound_team=(0.9, 0.93, 0.94, 0.95, 1.0), openvino=(1.1, 0.9, 0.95, 0.97, 1.2))))
        rows = {row[0]: row[1:] for row in report_targets.target_rows(results)}
        self.assertEqual(rows["bound.bert-base.8x128.f32"],
                         ("0.94", "0.900..1.000", 5, ">= 0.95", "reached", ""))
        self.assertEqual(rows["peer.bert-base.8x128.f32"],
                         ("0.97", "0.900..1.200", 5, ">= 1", "missed", "openvino"))


if __name__ == "__main__":
    unittest.main()
