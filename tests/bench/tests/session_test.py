"""Tests of a session from its start to the comparison, with contenders that are processes."""
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

import numpy as np

import rounds
from cases import MODELS, Case, TokenIds
from contenders import Contender
from fake_peer import hidden_states
from session import Session

HERE = pathlib.Path(__file__).parent
SENTENCES = [[101, 7, 8, 102], [101, 102], [101, 9, 102]]
EXPECTED = np.concatenate([hidden_states(np.array(ids)) for ids in SENTENCES])


def contender(name: str, role: str, answers: str, streams: int = 1) -> Contender:
    return Contender(name, role, (sys.executable, str(HERE / "fake_peer.py"), answers), streams=streams)


class Sessions(unittest.TestCase):
    def setUp(self):
        quick = mock.patch.multiple(rounds, SETTLE_SECONDS=0, TURN_SECONDS=0, HOPELESS=1e9, BEATEN=1e9)
        quick.start()
        self.addCleanup(quick.stop)
        quiet = contextlib.redirect_stderr(io.StringIO())
        quiet.__enter__()
        self.addCleanup(quiet.__exit__, None, None, None)

    @contextlib.contextmanager
    def session(self, dtype: str, *contenders: Contender):
        with tempfile.TemporaryDirectory() as folder:
            ids = TokenIds(HERE.parents[1] / "families" / "sentences.jsonl")
            with Session(MODELS["minilm-l6"], dtype, ids, pathlib.Path(folder)) as session:
                for one in contenders:
                    session.start(one)
                yield session

    def case(self, name: str, *lengths: int) -> Case:
        return Case(MODELS["minilm-l6"], name, lengths, 2)

    def test_each_group_has_who_takes_part_in_it(self):
        with self.session("f32", contender("attendant", "engine", "right"),
                          contender("attendant-onednn", "onednn", "right"), contender("bound-team", "bound", "right"),
                          contender("bound16-team", "bound16", "right"),
                          contender("products-team", "products", "right"), contender("openvino", "peer", "right"),
                          contender("openvino-2-streams", "peer", "right", streams=2)) as session:
            session.measure(self.case("ragged-uniform", 60, 8, 16))
            session.measure(self.case("1x16", 16))
            ragged, short = session.result.cases
        self.assertEqual(session.result.memory.weight_bytes, 1000)
        self.assertLessEqual(session.result.memory.touched_bytes, 10)
        self.assertEqual({name: set(group) for name, group in ragged.groups.items()},
                         {"arrival": {"attendant", "attendant-onednn", "bound-team", "openvino", "openvino-2-streams"},
                          "sorted": {"attendant", "openvino", "openvino-2-streams"},
                          "single": {"attendant", "openvino", "openvino-2-streams"}})
        self.assertEqual(set(short.groups["arrival"]),
                         {"attendant", "attendant-onednn", "bound-team", "bound16-team", "openvino"})
        for timing in short.groups["arrival"].values():
            self.assertEqual(len(timing.rounds), rounds.MOST_ROUNDS)

    def test_products_alone_take_part_where_their_price_is_measured(self):
        with self.session("f32", contender("attendant", "engine", "right"),
                          contender("products-team", "products", "right")) as session:
            for length in (16, 64):
                session.measure(Case(MODELS["bert-base"], f"1x{length}", (length,), 1))
            priced, other = session.result.cases
        self.assertEqual(set(priced.groups["arrival"]), {"attendant", "products-team"})
        self.assertEqual(set(other.groups["arrival"]), {"attendant"})

    def test_before_the_peers_of_large_models_start_the_bound_ends(self):
        case = self.case("4x512", 16, 16)
        with self.session("f32", contender("attendant", "engine", "right"),
                          contender("bound-team", "bound", "right")) as session:
            session.measure_alone(case)
            session.stop("bound", "bound16")
            session.start(contender("openvino", "peer", "right"))
            session.measure(case)
            found = session.result
        self.assertEqual([(name, set(group)) for name, group in found.cases[0].groups.items()],
                         [("alone", {"attendant", "bound-team"}), ("arrival", {"attendant", "openvino"})])
        self.assertEqual(len(found.cases), 1)
        self.assertIsNotNone(found.cases[0].bound_share())
        self.assertIsNotNone(found.cases[0].peer_ratio("arrival"))
        self.assertEqual(found.failures, {})

    def test_without_peers_a_large_model_is_measured_once(self):
        case = self.case("4x512", 16, 16)
        with self.session("f32", contender("attendant", "engine", "right"),
                          contender("bound-team", "bound", "right")) as session:
            session.measure_alone(case)
            session.stop("bound")
            session.measure(case)
        self.assertEqual(list(session.result.cases[0].groups), ["alone"])

    def test_all_contenders_have_ended_before_float64_starts(self):
        with self.session("f32", contender("attendant", "engine", "right")) as session:
            process = session.engine
            session.measure(self.case("8x128", 16, 16))

            def expect():
                self.assertIsNone(session.engine)
                self.assertFalse(pathlib.Path(f"/proc/{process.pid}").exists())
                return EXPECTED

            session.compare(SENTENCES, 2, expect)
        self.assertTrue(session.result.accuracy["attendant"].agrees)

    def test_without_float64_no_answer_is_judged(self):
        with self.session("f32", contender("attendant", "engine", "wrong")) as session:
            session.measure(self.case("8x128", 16, 16))
            session.compare(SENTENCES, 2, lambda: None)
        self.assertEqual((session.result.accuracy, session.result.failures), ({}, {}))

    def test_the_engine_with_onednns_products_answers_for_itself(self):
        with self.session("bf16", contender("attendant", "engine", "right"),
                          contender("attendant-onednn", "onednn", "wrong")) as session:
            session.measure(self.case("8x128", 16, 16))
            session.compare(SENTENCES, 2, lambda: EXPECTED)
            found = session.result
        self.assertTrue(found.accuracy["attendant"].agrees)
        self.assertIn("attendant-onednn", found.failures)
        self.assertEqual(set(found.cases[0].groups["arrival"]), {"attendant"})

    def test_answers_are_compared_and_who_answers_something_else_is_excluded(self):
        with self.session("f32", contender("attendant", "engine", "right"), contender("openvino", "peer", "rounded"),
                          contender("onnxruntime", "peer", "wrong"), contender("torch", "peer", "nan"),
                          contender("nncf", "peer", "absent")) as session:
            session.measure(self.case("8x128", 16, 16))
            session.compare(SENTENCES, 2, lambda: EXPECTED)
            found = session.result
        self.assertEqual({name: accuracy.agrees for name, accuracy in found.accuracy.items()},
                         {"attendant": True, "openvino": False})
        self.assertAlmostEqual(found.accuracy["openvino"].max_abs_difference, 0.05, delta=0.001)
        self.assertEqual(found.failures, {
            "nncf": "Refused: not installed",
            "onnxruntime": "excluded: garbage: the lowest cosine of a token is -1.00",
            "torch": "excluded: answers of zeros, NaN or Inf"})
        self.assertEqual(set(found.cases[0].peers("arrival")), {"openvino"})

    def test_peers_run_without_an_engine_that_refuses(self):
        with self.session("int8", contender("attendant", "engine", "absent"),
                          contender("openvino", "peer", "right")) as session:
            found = session.result
            found.refused = found.failures.pop("attendant")
            session.measure(self.case("8x128", 16, 16))
            session.compare(SENTENCES, 2, lambda: EXPECTED)
        self.assertEqual(set(found.cases[0].groups["arrival"]), {"openvino"})
        self.assertTrue(found.accuracy["openvino"].agrees)
        self.assertIsNone(found.accuracy["openvino"].max_abs_difference)

    def test_a_program_that_is_not_there_is_a_failure_by_name(self):
        with self.session("f32", Contender("openvino", "peer", ("/nonexistent/python",))) as session:
            self.assertIn("/nonexistent/python", session.result.failures["openvino"])


if __name__ == "__main__":
    unittest.main()
