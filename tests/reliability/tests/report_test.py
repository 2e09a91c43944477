"""Tests of the names, targets and report of the figures."""
import pathlib
import unittest

import catalogue
from report import Measured, Report

NAMES = """drain.accepted_lost drain.visible_failures overload.3x.goodput overload.10x.goodput overload.refused_p99_ms
    mixed.small_p99_slices fair.quiet_peer_share bulk.refused dead_rows never_reads.rss_mib half_sent.rss_mib http_hostile.rss_mib
    flood.continuation.rss_mib flood.reset.good_s flood.settings.rss_mib flood.ping.sent_mib_s health.under_attack_s
    rss_slope_bytes_per_request emfile.recovery_s certificates.failed_handshakes swap.failures
    fuzz.request_inputs fuzz.weight_inputs fuzz.crashes
    server_over_engine.bert-base server_over_engine.attention.uds metrics_cost""".split()


class Targets(unittest.TestCase):
    def test_the_figures_of_the_project_are_there(self):
        self.assertLessEqual(set(NAMES), set(catalogue.targets()))

    def test_each_group_has_a_file(self):
        for group in catalogue.GROUPS:
            self.assertTrue((pathlib.Path(catalogue.__file__).parent / f"{group}.py").exists(), group)

    def test_a_bound_itself_is_met(self):
        self.assertTrue(catalogue.Target(at_most=5).met(5))
        self.assertFalse(catalogue.Target(at_most=5).met(5.01))
        self.assertTrue(catalogue.Target(at_least=0.95).met(0.95))
        self.assertFalse(catalogue.Target(at_least=0.95).met(0.94))
        self.assertTrue(catalogue.Target().met(1))


class Choices(unittest.TestCase):
    def test_nothing_means_all_but_the_fuzzer(self):
        self.assertEqual(set(catalogue.targets()) - catalogue.chosen([]), catalogue.chosen(["fuzz"]))
        self.assertIn("fuzz.crashes", catalogue.chosen(["fuzz"]))

    def test_figures_groups_and_globs(self):
        self.assertEqual(catalogue.chosen(["dead_rows"]), {"dead_rows"})
        self.assertEqual(catalogue.chosen(["draining"]), {"drain.accepted_lost", "drain.visible_failures"})
        self.assertEqual(catalogue.chosen(["*.goodput", "dead_rows"]),
                         {"overload.3x.goodput", "overload.10x.goodput", "dead_rows"})

    def test_an_unknown_name_is_an_error(self):
        with self.assertRaisesRegex(ValueError, "no figure is called lost"):
            catalogue.chosen(["dead_rows", "lost"])


class Reports(unittest.TestCase):
    def setUp(self):
        self.report = Report(machine={"cpu": "A CPU", "isa": "amx"},
                             figures={"overload.3x.goodput": Measured(0.97, 3000), "dead_rows": Measured(2, 10000)},
                             failures={"memory": "NotMeasured: no server"}, notes=["something odd"])

    def test_table_has_value_target_verdict_and_calls(self):
        rows = {line.split()[0]: line.split()[1:] for line in self.report.table().splitlines() if line}
        self.assertEqual(rows["overload.3x.goodput"], ["0.97", ">=", "0.95", "met", "3000"])
        self.assertEqual(rows["dead_rows"], ["2", "<=", "0", "MISSED", "10000"])
        self.assertIn("not measured: memory: NotMeasured: no server", self.report.table())
        self.assertIn("note: something odd", self.report.table())
        self.assertIn("cpu: A CPU, isa: amx", self.report.table())

    def test_a_figure_without_a_target_has_no_verdict(self):
        report = Report(figures={"flood.ping.sent_mib_s": Measured(170.5, 80)})
        self.assertEqual(report.table().splitlines()[-1].split(), ["flood.ping.sent_mib_s", "170.5", "80"])
        self.assertEqual(report.missed(), [])

    def test_json_has_a_number_for_each_figure(self):
        document = self.report.to_json()
        self.assertEqual(document["machine"]["isa"], "amx")
        self.assertEqual(document["figures"], {"overload.3x.goodput": 0.97, "dead_rows": 2})
        self.assertEqual(document["calls"], {"overload.3x.goodput": 3000, "dead_rows": 10000})
        self.assertEqual(document["missed"], ["dead_rows"])


if __name__ == "__main__":
    unittest.main()
