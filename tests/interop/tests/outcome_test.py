"""Tests of what counts as passed, missed and broken."""
import json
import unittest

from outcome import FAILED, NOT_RUN, PASSED, SPEEDS, TARGETS, Outcome, Row

NAMES = """clients.passed clients.failed clients.not_run conformance.passed languages.passed malformed.grpc_growth_mib
    malformed.rest_growth_mib text.cosine text.differing_token_counts python.text_over_sentence_transformers python.overhead oip_over_native""".split()


def outcome(*statuses: tuple) -> Outcome:
    made = Outcome({"cpu": "a"}, [Row(name, "1", ["that it works"], status) for name, status in statuses])
    made.count_clients()
    return made


class Clients(unittest.TestCase):
    def test_a_client_needs_all_its_interfaces(self):
        made = outcome(("triton grpc", PASSED), ("triton http", FAILED), ("ghz", PASSED), ("curl REST", NOT_RUN))
        self.assertEqual(made.figures, {"clients.passed": 1, "clients.failed": 1, "clients.not_run": 1})

    def test_other_rows_do_not_count(self):
        made = outcome(("ghz", PASSED))
        made.rows.append(Row("a case", "1", [], FAILED, kind="case"))
        made.count_clients()
        self.assertEqual(made.figures["clients.failed"], 0)


class Figures(unittest.TestCase):
    def test_the_figures_of_the_project_are_there(self):
        self.assertLessEqual(set(NAMES), set(TARGETS))
        self.assertLessEqual(SPEEDS, set(TARGETS))

    def test_a_slow_machine_breaks_nothing(self):
        made = Outcome({}, figures={"python.overhead": 1.2, "text.cosine": 1.0})
        self.assertEqual(made.missed(), ["python.overhead"])
        self.assertFalse(made.broken())

    def test_wrong_vectors_failed_rows_and_unmeasured_groups_do(self):
        self.assertTrue(Outcome({}, figures={"text.cosine": 0.9999}).broken())
        self.assertTrue(Outcome({}, [Row("a case", "1", [], FAILED, kind="case")]).broken())
        self.assertTrue(Outcome({}, failures={"texts": "none"}).broken())

    def test_what_is_not_run_does_not(self):
        self.assertFalse(Outcome({}, [Row("ghz", "", [], NOT_RUN, "no module")]).broken())


class Shown(unittest.TestCase):
    def test_the_table_has_rows_reasons_and_figures(self):
        made = outcome(("ghz", FAILED), ("curl REST", PASSED))
        made.rows[0].detail = "no answer"
        for text in ("failed   ghz", "no answer", "that it works", "clients.failed", "MISSED"):
            self.assertIn(text, made.table())

    def test_json_has_the_same(self):
        made = json.loads(json.dumps(outcome(("ghz", FAILED)).to_json()))
        self.assertEqual(made["rows"][0]["status"], FAILED)
        self.assertIn("clients.failed", made["missed"])


if __name__ == "__main__":
    unittest.main()
