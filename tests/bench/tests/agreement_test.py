"""Tests that contenders whose answers disagree are marked, that those with answers of another model are excluded, and
that the engine must agree."""
import unittest

import numpy as np

import report_targets
import report_text
from agreement import NotAnAnswer, judge
from figures import figures_of
from made_results import result_of, results_of, timings
from results import Accuracy

EXPECTED = np.random.default_rng(7).standard_normal((40, 384))


def turned(cosine: float) -> np.ndarray:
    """EXPECTED, with its last token at this cosine to the original."""
    token = EXPECTED[-1]
    other = np.random.default_rng(8).standard_normal(token.size)
    other -= token * (other @ token) / (token @ token)
    other *= np.linalg.norm(token) / np.linalg.norm(other)
    answers = EXPECTED.copy()
    answers[-1] = cosine * token + np.sqrt(1 - cosine**2) * other
    return answers


class Judgement(unittest.TestCase):
    def test_the_lowest_token_and_the_largest_error_decide(self):
        accuracy = judge("bf16", turned(0.9997), EXPECTED, EXPECTED + 0.25)
        self.assertAlmostEqual(accuracy.lowest_token_cosine, 0.9997)
        self.assertEqual(accuracy.max_abs_error, np.abs(turned(0.9997) - EXPECTED).max())
        self.assertGreater(accuracy.max_abs_difference, 0.24)

    def test_bounds_of_each_type(self):
        self.assertTrue(judge("f32", EXPECTED + 4e-5, EXPECTED, None).agrees)
        self.assertFalse(judge("f32", EXPECTED + 6e-5, EXPECTED, None).agrees)
        for cosine, agrees in ((0.9996, True), (0.9990, False)):
            self.assertEqual(judge("bf16", turned(cosine), EXPECTED, None).agrees, agrees)
        for cosine, agrees in ((0.97, True), (0.95, True), (0.83, False), (0.54, False), (0.3, False)):
            self.assertEqual(judge("int8", turned(cosine), EXPECTED, None).agrees, agrees)

    def test_what_is_no_answer(self):
        with self.assertRaisesRegex(NotAnAnswer, "garbage: the lowest cosine of a token is 0.40"):
            judge("f32", turned(0.4), EXPECTED, None)
        for spoilt in (np.nan, np.inf):
            answers = EXPECTED.copy()
            answers[3, 5] = spoilt
            with self.assertRaisesRegex(NotAnAnswer, "NaN"):
                judge("int8", answers, EXPECTED, None)
        with self.assertRaisesRegex(NotAnAnswer, "zeros"):
            judge("int8", 0 * EXPECTED, EXPECTED, None)
        with self.assertRaisesRegex(NotAnAnswer, r"shape \(39, 384\), expected \(40, 384\)"):
            judge("f32", EXPECTED[1:], EXPECTED, None)


class Report(unittest.TestCase):
    def setUp(self):
        self.results = results_of("int8", result_of(
            "minilm-l6", "8x128", arrival=timings(attendant=(1.0,), torch_eager=(1.5,), openvino=(2.0,))))
        self.model = self.results.models[0]
        self.model.accuracy = {"attendant": Accuracy(0.993, 0.02, 0.0, True),
                               "torch-eager": Accuracy(0.54, 0.9, 0.8, False),
                               "openvino": Accuracy(0.95, 0.2, 0.1, True)}

    def test_the_best_peer_counts_but_never_without_its_mark(self):
        self.assertEqual(figures_of(self.results)["peer.minilm-l6.8x128.int8"], 1.5)
        row = next(row for row in report_targets.target_rows(self.results) if row[0].startswith("peer."))
        self.assertEqual(row[-1], "torch-eager, cosine >= 0.5400: does not agree")
        text = report_text.render(self.results)
        self.assertRegex(text, r"ratio to the best peer +1\.50\*")
        self.assertRegex(text, r"ratio to the best that agrees +2\.00")

    def test_agreement_and_differences_are_figures(self):
        figures = figures_of(self.results)
        self.assertEqual(figures["accuracy.torch-eager.minilm-l6.int8.agrees"], 0)
        self.assertEqual(figures["accuracy.openvino.minilm-l6.int8.agrees"], 1)
        self.assertEqual(figures["accuracy.openvino.minilm-l6.int8.max_abs_difference"], 0.1)

    def test_who_is_excluded_has_no_speed(self):
        self.model.exclude("torch-eager")
        self.assertEqual(figures_of(self.results)["peer.minilm-l6.8x128.int8"], 2.0)

    def test_the_engine_must_agree(self):
        self.assertEqual(self.results.wrong_answers(), [])
        self.model.accuracy["attendant"] = Accuracy(0.8, 0.5, 0.0, False)
        self.assertEqual(self.results.wrong_answers(),
                         ["minilm-l6.int8: lowest cosine 0.8000000, largest error 5.0e-01"])

    def test_the_engine_must_answer(self):
        self.model.failures["attendant"] = "ended"
        self.assertEqual(self.results.wrong_answers(), ["minilm-l6.int8: ended"])


if __name__ == "__main__":
    unittest.main()
