"""Tests that resident memory in addition to the weights, and the start, are compared with their targets."""
import os
import unittest

import report_targets
import report_text
from figures import figures_of
from made_results import result_of, results_of, timings
from results import CacheHits, Memory, Start
from targets import limits
from worker_process import resident_bytes

MIB = 1 << 20


def memory(loaded: int, resident: int, reserved: int) -> Memory:
    return Memory(loaded * MIB, resident * MIB, 20 * MIB, 100 * MIB, reserved * MIB)


class Activations(unittest.TestCase):
    def test_reserved_but_untouched_ones_excuse_nothing(self):
        self.assertEqual(memory(110, 118, 50).touched_bytes, 8 * MIB)
        self.assertAlmostEqual(memory(110, 118, 50).over_weights, 1.10)

    def test_what_came_beyond_them_counts(self):
        self.assertAlmostEqual(memory(110, 150, 30).over_weights, 1.20)

    def test_what_went_since_loading_is_no_activation(self):
        self.assertEqual(memory(110, 105, 30).touched_bytes, 0)


class Limits(unittest.TestCase):
    def setUp(self):
        self.results = results_of("f32", result_of("minilm-l6", "8x128", arrival=timings(attendant=(1.0,))))
        self.results.models[0].memory = memory(110, 150, 30)
        self.results.starts = [Start("bert-base", 1.5, 500 * MIB, 30 * MIB, 450 * MIB),
                               Start("minilm-l6", 0.25, 120 * MIB, 30 * MIB,
                                     self.results.weight_bytes("minilm-l6", "f32"))]

    def test_values(self):
        self.assertEqual(limits()["start_s.bert-base.f32"], 2.0)
        self.assertEqual(limits()["memory.bert-large.bf16.over_weights"], 1.15)

    def test_verdicts(self):
        rows = {row[0]: (row[1], *row[4:6]) for row in report_targets.target_rows(self.results)}
        self.assertEqual(rows["memory.minilm-l6.f32.over_weights"], ("1.2", "<= 1.15", "missed"))
        self.assertEqual(rows["start_over_weights.bert-base.f32"], ("1.111", "<= 1.15", "reached"))
        self.assertEqual(rows["start_over_weights.minilm-l6.f32"], ("1.2", "<= 1.15", "missed"))
        self.assertEqual(rows["start_s.bert-base.f32"], ("1.5", "<= 2", "reached"))

    def test_figures(self):
        figures = figures_of(self.results)
        self.assertEqual(figures["memory.minilm-l6.f32.loaded_bytes"], 110 * MIB)
        self.assertEqual(figures["memory.minilm-l6.f32.activation_bytes"], 30 * MIB)
        self.assertEqual(figures["start_s.minilm-l6.f32"], 0.25)
        self.assertIn("Start to ready, bert-base f32: 1.50 s.", report_text.render(self.results))

    def test_answers_from_the_cache(self):
        self.assertNotIn("cache.hit_us", figures_of(self.results))
        self.results.cache_hits = CacheHits("minilm-l6", 2048, 150e-6, 140e-6, 210e-6)
        self.assertAlmostEqual(figures_of(self.results)["cache.hit_us"], 150)
        rows = {row[0]: (row[1], *row[4:6]) for row in report_targets.target_rows(self.results)}
        self.assertEqual(rows["cache.hit_us"], ("150", "<= 200", "reached"))
        self.assertIn("minilm-l6, 2048 tokens: 150 us in the server (140 to 210).", report_text.render(self.results))


class OwnProcess(unittest.TestCase):
    def test_resident_bytes_are_those_of_memory_and_of_files(self):
        found = resident_bytes(os.getpid())
        self.assertEqual(found["VmRSS"], sum(found[name] for name in ("RssAnon", "RssFile", "RssShmem")))


if __name__ == "__main__":
    unittest.main()
