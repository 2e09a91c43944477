"""The lengths of the sets, and how they are put into batches."""
import statistics
import unittest

from cases import (MODELS, PACKED_TOKENS, Case, arrangements, default_cases, engine_batches, log_normal, ms_marco,
                   uniform)


class Lengths(unittest.TestCase):
    def test_uniform_is_5_to_512_each_as_often(self):
        lengths = sorted(uniform(508))
        self.assertEqual((lengths[0], lengths[-1]), (5, 512))
        self.assertEqual(len(set(lengths)), 508)

    def test_log_normal_has_median_24_and_a_long_tail(self):
        lengths = log_normal(1000)
        self.assertEqual(round(statistics.median(lengths)), 24)
        self.assertGreater(max(lengths), 150)
        self.assertGreater(statistics.mean(lengths), 24)

    def test_ms_marco_is_half_short_queries_and_half_passages(self):
        lengths = sorted(ms_marco(1000))
        self.assertAlmostEqual(statistics.median(lengths[:500]), 9, delta=1)
        self.assertAlmostEqual(statistics.median(lengths[500:]), 78, delta=2)

    def test_the_same_every_time_and_in_no_order(self):
        self.assertEqual(uniform(24), uniform(24))
        self.assertNotEqual(list(uniform(24)), sorted(uniform(24)))


class Batches(unittest.TestCase):
    def setUp(self):
        self.case = Case(MODELS["bert-base"], "ragged-uniform", uniform(64), 8)

    def test_each_arrangement_has_every_sequence_once(self):
        for batches in [*arrangements(self.case).values(), engine_batches(self.case)]:
            self.assertEqual(sorted(index for batch in batches for index in batch), list(range(64)))

    def test_peers_get_batches_of_their_size_in_arrival_order_by_length_and_alone(self):
        by_name = arrangements(self.case)
        self.assertEqual(by_name["arrival"], [list(range(i, i + 8)) for i in range(0, 64, 8)])
        lengths = [self.case.lengths[index] for batch in by_name["sorted"] for index in batch]
        self.assertEqual(lengths, sorted(lengths))
        self.assertEqual(by_name["single"], [[i] for i in range(64)])

    def test_the_engine_packs_about_1024_tokens_in_arrival_order(self):
        batches = engine_batches(self.case)
        self.assertEqual([index for batch in batches for index in batch], list(range(64)))
        for batch, following in zip(batches, batches[1:]):
            tokens = sum(self.case.lengths[i] for i in batch)
            self.assertLessEqual(tokens, PACKED_TOKENS)
            self.assertGreater(tokens + self.case.lengths[following[0]], PACKED_TOKENS)

    def test_the_default_run_has_the_cases_that_have_targets(self):
        names = {f"{case.model.name}.{case.name}" for case in default_cases()}
        self.assertLessEqual({"bert-base.8x128", "bert-base.8x512", "bert-base.1x16", "bert-base.ragged-uniform",
                              "bert-base.ragged-lognormal", "minilm-l6.8x128"}, names)


if __name__ == "__main__":
    unittest.main()
