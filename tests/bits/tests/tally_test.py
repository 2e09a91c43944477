"""Tests that tables and figures count every answer, and that every difference has a line."""
import unittest

from differences import Difference
from tally import Tally

KEY = ("avx2", "team", "int8 emulated")


class Tallies(unittest.TestCase):
    def test_all_same(self):
        tally = Tally()
        tally.add(KEY, "tiny", "Encode last layer", 3, [])
        tally.add(KEY, "bert-base", "Encode last layer", 3, [])
        self.assertEqual(tally.figures(), {"bits.compared": 6, "bits.differing": 0})
        self.assertEqual(tally.text().splitlines()[1].split(), ["avx2", "team", "int8", "emulated", "2", "6", "0"])

    def test_differences_are_named(self):
        tally = Tally()
        tally.add(KEY, "tiny", "Encode last layer", 3, [Difference("pooled", "1 of 8 elements differ, by up to 2")])
        tally.add(("avx512", "rows", "f32"), "tiny", "Attend packed", 1, [])
        self.assertEqual(tally.figures(), {"bits.compared": 4, "bits.differing": 1})
        *_, total, difference = tally.text().splitlines()
        self.assertEqual(total.split(), ["all", "4", "1"])
        self.assertEqual(difference, "tiny int8 emulated (avx2, team), Encode last layer: pooled: "
                                     "1 of 8 elements differ, by up to 2")

    def test_what_is_left_out_is_told_once(self):
        tally = Tally()
        for _ in range(2):
            tally.note("huge, which only the tree has")
        self.assertEqual(tally.text().splitlines()[0], "not compared: huge, which only the tree has")
        self.assertEqual(tally.text().count("huge"), 1)


if __name__ == "__main__":
    unittest.main()
