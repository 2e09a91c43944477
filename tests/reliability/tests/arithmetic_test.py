"""Tests of the arithmetic of the figures."""
import unittest

import arithmetic

SCRAPE = """# HELP attendant_requests_total Requests.
# TYPE attendant_requests_total counter
attendant_requests_total{code="OK",method="Attend",model="m"} 12
attendant_requests_total{code="OK",method="Encode",model="m"} 30
attendant_requests_total{code="UNAVAILABLE",method="Encode",model=""} 3
attendant_requests_total_more{code="OK"} 1000
attendant_budget_bytes 4.1943e+07
"""


class Percentiles(unittest.TestCase):
    def test_is_a_value_that_occurred(self):
        values = list(range(100, 0, -1))
        self.assertEqual(arithmetic.percentile(values, 50), 50)
        self.assertEqual(arithmetic.percentile(values, 99), 99)
        self.assertEqual(arithmetic.percentile(values, 100), 100)
        self.assertEqual(arithmetic.percentile([7], 99), 7)

    def test_of_nothing_is_an_error(self):
        with self.assertRaisesRegex(ValueError, "no values"):
            arithmetic.percentile([], 50)


class Slopes(unittest.TestCase):
    def test_is_that_of_the_line(self):
        self.assertAlmostEqual(arithmetic.slope([0, 1000, 2000, 3000], [50, 2050, 4050, 6050]), 2)

    def test_a_wave_around_a_level_has_almost_none(self):
        self.assertAlmostEqual(arithmetic.slope(range(8), [1, -1, -1, 1, 1, -1, -1, 1]), 0)


class Ratios(unittest.TestCase):
    def test_is_the_median_of_the_rounds_and_not_of_the_sides(self):
        self.assertAlmostEqual(arithmetic.median_ratio([(90, 100), (10, 20), (45, 50)]), 0.9)

    def test_slices_waited_are_beyond_the_own_time(self):
        self.assertAlmostEqual(arithmetic.slices_waited(0.110, 0.010, 0.050), 2)
        self.assertEqual(arithmetic.slices_waited(0.005, 0.010, 0.050), 0)


class LostCalls(unittest.TestCase):
    def test_refused_calls_are_not_lost(self):
        ends = [{("OK", ""): 5, ("UNAVAILABLE", "draining"): 2}, {("OK", ""): 3, ("UNAVAILABLE", "Socket closed"): 1}]
        self.assertEqual(arithmetic.lost_calls(8, ends), 0)

    def test_answers_that_do_not_arrive_are(self):
        self.assertEqual(arithmetic.lost_calls(8, [{("OK", ""): 5}, {("OK", ""): 2, ("UNAVAILABLE", ""): 1}]), 1)

    def test_other_failures_are(self):
        ends = [{("OK", ""): 5, ("CANCELLED", ""): 1, ("WRONG_ANSWER", "0 bytes"): 1}]
        self.assertEqual(arithmetic.lost_calls(5, ends), 2)


class Series(unittest.TestCase):
    def test_adds_up_what_has_the_labels(self):
        self.assertEqual(arithmetic.sum_of_series(SCRAPE, "attendant_requests_total"), 45)
        self.assertEqual(arithmetic.sum_of_series(SCRAPE, "attendant_requests_total", code="OK"), 42)
        self.assertEqual(arithmetic.sum_of_series(SCRAPE, "attendant_requests_total", code="OK", method="Encode"), 30)
        self.assertEqual(arithmetic.sum_of_series(SCRAPE, "attendant_budget_bytes"), 41943000)

    def test_a_series_that_is_not_there_is_zero(self):
        self.assertEqual(arithmetic.sum_of_series(SCRAPE, "attendant_requests"), 0)


class Costs(unittest.TestCase):
    def test_is_a_share_of_all_samples(self):
        rows = [(1.0, "libprometheus-cpp-core.so  [.] prometheus::Counter::Increment"),
                (0.5, "attendant-server  [.] attendant::server::ServerMetrics::RecordBatch"),
                (48.5, "libdnnl.so  [.] kernel")]
        self.assertAlmostEqual(arithmetic.cost_share(rows, ("prometheus", "ServerMetrics")), 0.03)
        self.assertEqual(arithmetic.cost_share([], ("prometheus",)), 0)


if __name__ == "__main__":
    unittest.main()
