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
    def test_answers_and_refusals_are_not_lost(self):
        self.assertFalse(arithmetic.is_lost("OK", "", None))
        self.assertFalse(arithmetic.is_lost("UNAVAILABLE", "the server stops", "draining"))

    def test_calls_that_found_no_server_are_not_lost(self):
        details = "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Connection refused"
        self.assertFalse(arithmetic.is_lost("UNAVAILABLE", details, None))
        self.assertFalse(arithmetic.is_lost("UNAVAILABLE", "GOAWAY received", None))

    def test_all_other_failures_are(self):
        self.assertTrue(arithmetic.is_lost("UNAVAILABLE", "Socket closed", None))
        self.assertTrue(arithmetic.is_lost("CANCELLED", "", None))
        self.assertTrue(arithmetic.is_lost("WRONG_ANSWER", "0 bytes", None))
        self.assertTrue(arithmetic.is_lost("RESOURCE_EXHAUSTED", "", "slots"))


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
