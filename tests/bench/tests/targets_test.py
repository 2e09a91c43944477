"""Tests that the targets are those of the project, and that each has a figure of its name."""
import unittest

from figures import figures_of
from made_results import plan_of, result_of, results_of, timings
from targets import targets

SHARES = {  # f32, bf16, int8, bf16 with AMX, int8 with AMX
    "bert-base.8x128": (0.93, 0.90, 0.80, 0.94, 0.72),
    "bert-base.8x512": (0.87, 0.82, 0.70, 0.82, 0.60),
    "minilm-l6.8x128": (0.87, 0.80, 0.66, 0.74, 0.50),
    "bert-base.1x16": (0.93, 0.90, 0.80, 0.93, 0.80),
    "bert-base.ragged-uniform": (0.88, 0.84, 0.72, 0.90, 0.65),
}
RATIOS = {  # f32, bf16, int8
    "bert-base.8x128": (1.0, 1.1, 1.2), "bert-base.8x512": (1.0, 1.1, 1.2),
    "minilm-l6.8x128": (1.15, 1.5, 1.8), "bert-base.1x16": (1.05, 1.15, 1.3),
    "ragged-uniform.arrival": (1.4, 2.2, 2.4), "ragged-lognormal.arrival": (1.4, 2.2, 2.4),
    "ragged-uniform.best": (1.05, 1.35, 1.5), "ragged-lognormal.best": (1.05, 1.35, 1.5),
}
DTYPES = ("f32", "bf16", "int8")


class Targets(unittest.TestCase):
    def test_shares_of_the_bound(self):
        for name, shares in SHARES.items():
            for isa, values in (("avx512_vnni", shares[:3]), ("amx", (shares[0], *shares[3:]))):
                for dtype, value in zip(DTYPES, values):
                    self.assertEqual(targets(isa)[f"bound.{name}.{dtype}"], value, (name, isa, dtype))

    def test_ratios_to_the_best_peer(self):
        for name, values in RATIOS.items():
            for dtype, value in zip(DTYPES, values):
                self.assertEqual(targets("amx")[f"peer.{name}.{dtype}"], value, (name, dtype))

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
        group = timings(attendant=(1.0,), bound_team=(0.9,), openvino=(1.5,))
        names = set()
        for dtype in DTYPES:
            for model, name in (("bert-base", "8x128"), ("bert-base", "8x512"), ("bert-base", "1x16"),
                                ("bert-base", "ragged-uniform"), ("bert-base", "ragged-lognormal"),
                                ("minilm-l6", "8x128")):
                names |= set(figures_of(results_of(dtype, result_of(model, name, arrival=group))))
        for name in targets("amx"):
            if name.startswith(("bound.", "peer.")) and name.endswith(DTYPES):
                self.assertIn(name, names)


if __name__ == "__main__":
    unittest.main()
