"""Tests of the rounds: who drops out of them, how many there are, and the ratios that they give."""
import unittest
from unittest import mock

import rounds
from rounds import Entrant, run_rounds
from timing import FEWEST_ROUNDS, Ratio, Timing, quickest
from worker_process import WorkerFailed


class FakeWorker:
    """Takes these seconds in turn, and then the last of them again and again; the first is for warming up."""

    def __init__(self, *seconds: float):
        self._seconds = list(seconds)

    def run(self, times: int) -> list:
        now = self._seconds.pop(0) if len(self._seconds) > 1 else self._seconds[0]
        if not now:
            raise WorkerFailed("ended")
        return [now] * times


def entrant(role: str, *seconds: float, name: str = "") -> Entrant:
    return Entrant(name or role, role, FakeWorker(*seconds), copies=1)


class Rounds(unittest.TestCase):
    def setUp(self):
        quick = mock.patch.multiple(rounds, SETTLE_SECONDS=0, TURN_SECONDS=0, CASE_SECONDS=0)
        quick.start()
        self.addCleanup(quick.stop)

    def counts(self, *entrants: Entrant, **options) -> list:
        run_rounds(list(entrants), **options)
        return [len(one.timing.rounds) for one in entrants]

    def test_there_are_at_least_five_however_long_they_take(self):
        self.assertGreaterEqual(FEWEST_ROUNDS, 5)
        self.assertEqual(self.counts(entrant("engine", 1.0), entrant("peer", 2.0)), [FEWEST_ROUNDS] * 2)

    def test_a_hopeless_peer_drops_out_after_the_first_and_a_beaten_one_later(self):
        self.assertEqual(self.counts(entrant("engine", 1.0), entrant("peer", 1.0), entrant("peer", 1.5),
                                     entrant("peer", 1.2), entrant("peer", 1.1)),
                         [FEWEST_ROUNDS, FEWEST_ROUNDS, 1, rounds.BEATEN_FROM_ROUND, FEWEST_ROUNDS])

    def test_roles_do_not_compete_with_each_other(self):
        self.assertEqual(self.counts(entrant("engine", 9.0), entrant("bound", 1.0), entrant("bound", 1.5),
                                     entrant("bound16", 5.0), entrant("peer", 9.0)),
                         [FEWEST_ROUNDS, FEWEST_ROUNDS, 1, FEWEST_ROUNDS, FEWEST_ROUNDS])

    def test_they_end_early_where_no_peer_keeps_up_with_another_arrangement(self):
        self.assertEqual(self.counts(entrant("engine", 1.0), entrant("peer", 2.0), peers_best=1.0), [1, 1])
        self.assertEqual(self.counts(entrant("engine", 1.0), entrant("peer", 1.1), peers_best=1.0), [FEWEST_ROUNDS] * 2)

    def test_the_engine_goes_on_where_every_peer_has_failed(self):
        peer = entrant("peer", 1.0, 1.0, 0.0)
        self.assertEqual(self.counts(entrant("engine", 1.0), peer), [FEWEST_ROUNDS, 1])
        self.assertEqual(peer.failure, "ended")


class Ratios(unittest.TestCase):
    def test_a_round_is_the_best_pass_of_each_and_the_ratio_their_median(self):
        ours = Timing([[2.0, 1.0], [1.0, 1.5], [4.0, 2.0], [1.0]])
        theirs = Timing([[1.2, 1.3], [3.0, 0.9], [3.0]])
        ratio = Ratio(ours, theirs)
        self.assertEqual(ratio.rounds, [1.2, 0.9, 1.5])
        self.assertEqual((ratio.median, ratio.lowest, ratio.highest), (1.2, 0.9, 1.5))
        self.assertEqual(ratio.spread(2), "0.90..1.50")

    def test_one_lucky_round_makes_nobody_the_quickest(self):
        lucky = Timing([[0.5], [2.0], [2.0], [2.0], [2.0]])
        steady = Timing([[1.0]] * 5)
        self.assertEqual(quickest({"lucky": lucky, "steady": steady}), "steady")

    def test_one_that_dropped_out_was_slower(self):
        self.assertEqual(quickest({"dropped": Timing([[0.9]]), "stayed": Timing([[1.0]] * 5)}), "stayed")
        self.assertEqual(quickest({"dropped": Timing([[0.9]])}), "dropped")
        self.assertIsNone(quickest({}))


if __name__ == "__main__":
    unittest.main()
