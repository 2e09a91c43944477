"""Tests of check_wording.py: each rule finds its phrase in each kind of text, and lets good English pass."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import check_wording

SCRIPT = pathlib.Path(__file__).parent / "check_wording.py"
BREACHES = {
    "what": "What is left has one head.",
    "that of": "The width is that of the model.",
    "is no": "the body is no JSON",
    "nobody": "The lock that nobody holds.",
    "as": "expected CONTEXT, as the model has no output projection",
    "beside": "sent beside the ids",
    "but for": "Thread-safe, but for the destructor.",
    "answer": "Also answer the probabilities.",
    "comes": "Memory of responses that have left.",
    "got": "ids: expected 3, got 4",
    "got it": "model: expected a name; got it",
    "expected not": "pooling: expected another one",
    "takes no": "the model takes no texts",
    "at start": "Measured at start, for each model.",
    "in all": "at most 3 tokens in all; got more",
    "own": "A longer sequence gets a batch of its own.",
    "in vain": "with integers in place of types",
    "folder": "expected a folder",
    "british": "The colour of a cell.",
    "coined": "The exit norm comes last.",
}
GOOD = ("There is no release yet. A model that is no longer served fails with NOT_FOUND: expected MEAN; got \\\"max\\\". "
        "Like torch, as a mean over the heads. Tokens attend to keys of their own sequence, at the start of a layer, in all layers. "
        "A health check takes no slot. Otherwise, exercise it. State what the unit is; name the fields it contains.")


class WordingTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def found(self):
        return [(rule, message.split(" ", 1)[0]) for rule, _, message in check_wording.find(self.root)]

    def test_each_rule_has_an_example(self):
        self.assertEqual(sorted(BREACHES), sorted(check_wording.RULES))

    def test_finds_each_phrase_in_each_kind_of_text(self):
        for rule, phrase in BREACHES.items():
            for name, text in (("client/a.cc", f'f("{phrase}");\n'), ("client/a.h", f"\n// {phrase}\nint a;\n"),
                               ("proto/attendant/a.proto", f"int a;  // {phrase}\n"), ("server/README.md", f"# A\n\n{phrase}\n"),
                               ("client/python/attendant_client/a.py", f'"""{phrase}"""\n')):
                with self.subTest(rule=rule, name=name):
                    self.write(name, text)
                    self.assertEqual([rule], [rule for rule, where in self.found() if where.startswith(name)])
                    (self.root / name).unlink()

    def test_finds_a_phrase_that_is_divided(self):
        self.write("engine/a.cc", 'f(\n  "ids: expected 3, "\n  "got 4");\n')
        self.write("client/b.h", "// The width is that\n// of the model.\n")
        self.write("server/c.md", "# C\n\nThe width is that\nof the model.\n")
        self.assertEqual(sorted(self.found()), [("got", "engine/a.cc:2:"), ("that of", "client/b.h:1:"), ("that of", "server/c.md:3:")])

    def test_lets_good_english_and_code_pass(self):
        self.write("client/a.cc", f'// the width is that of the model\n#include "that of.h"\nf("{GOOD}", \'"\', "a" /* that of */);\n')
        self.write("server/a.h", "// The width is that of the model.\n")  # not a header of HEADERS
        self.write("server/README.md", "# A\n\n`that of` and [b](that of.md)\n\n```sh\necho that of\n```\n")
        self.assertEqual(self.found(), [])

    def test_finds_long_pages(self):
        self.write("README.md", "a\n" * 131)
        self.write("server/settings.md", "word " * 1201)
        self.write("server/text/README.md", "word " * 1800)
        self.write("client/README.md", "word " * 1801)
        self.assertEqual(sorted(breach.split(":")[0] for breach in check_wording.check_lengths(self.root)),
                         ["README.md", "client/README.md", "server/settings.md"])

    def test_lists_messages_of_several_words(self):
        self.write("client/a.cc", 'F("ids");\nif (n) {\n  return Error("ids: expected ", n,\n               "; got ", "more");\n}\nLog("a b"); G("c d");\n')
        done = subprocess.run([sys.executable, SCRIPT, "--list", self.root], stdout=subprocess.PIPE, text=True, check=True)
        self.assertEqual(done.stdout, "client/a.cc:3: ids: expected …; got …more\nclient/a.cc:6: a b\nclient/a.cc:6: c d\n")

    def test_fails_with_every_breach_beyond_the_allowed_ones(self):
        self.write("client/a.cc", 'f("ids: expected 3, got 4");\n')
        done = subprocess.run([sys.executable, SCRIPT, self.root], stdout=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn('client/a.cc:1: ", got" (got): use the separator "; got"', done.stdout)
        (self.root / "client/a.cc").unlink()
        subprocess.run([sys.executable, SCRIPT, self.root], stdout=subprocess.DEVNULL, check=True)


if __name__ == "__main__":
    unittest.main()
