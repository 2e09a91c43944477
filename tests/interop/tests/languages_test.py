"""The page of the examples, their versions, and what becomes of a language that prints something else or cannot be built."""
import pathlib
import subprocess
import tempfile
import unittest
from unittest import mock

import languages
import toolchains

EXPECTED = (languages.ROOT / languages.EXAMPLES / "expected.txt").read_text(encoding="utf-8")


class Page(unittest.TestCase):
    def test_shows_commands_for_every_language(self):
        for language in languages.LANGUAGES:
            script = languages.script(language, "127.0.0.1:7")
            self.assertIn("127.0.0.1:7", script.splitlines()[-1], language.name)
            self.assertEqual(subprocess.run(["bash", "-n", "-c", script], check=False).returncode, 0, script)

    def test_a_language_that_it_does_not_show_is_an_error(self):
        with self.assertRaisesRegex(ValueError, "does not show how COBOL is run"):
            languages.script(languages.Language("COBOL", "cobol", "", ""), "127.0.0.1:7")

    def test_every_file_has_a_version(self):
        for language in languages.LANGUAGES:
            if language.pattern:
                self.assertRegex(languages.version(language), r"^\d+\.\d+\.\d+$", language.name)


class Compare(unittest.TestCase):
    def test_the_same_lines(self):
        self.assertEqual(languages.compare(EXPECTED), "")
        self.assertEqual(languages.compare(f"\x1b[0m\x1b[0m{EXPECTED}\x1b[0m\x1b[0m"), "")

    def test_names_the_first_other_line(self):
        self.assertEqual(languages.compare(EXPECTED.replace("Encode", "Decode")), "line 5: expected 'Encode'; got 'Decode'")

    def test_fewer_and_more_lines(self):
        self.assertIn("line 1: expected 'Attend'; got 'nothing'", languages.compare(""))
        self.assertIn("expected 'nothing'; got 'more'", languages.compare(EXPECTED + "more\n"))


class Call(unittest.TestCase):
    def call(self, script):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(toolchains, "rust", return_value=None), \
                mock.patch.object(languages, "script", return_value=script):
            place = pathlib.Path(folder)
            return languages.call(languages.LANGUAGES[4], place, "127.0.0.1:7", place)

    def test_passes_by_its_lines(self):
        row = self.call(f"cat <<'END'\n{EXPECTED}END")
        self.assertEqual((row["status"], row["checked"], row["detail"]), ("passed", languages.CALLS, ""))

    def test_fails_by_its_lines_or_its_exit_code(self):
        self.assertEqual(self.call("echo Attend")["status"], "failed")
        row = self.call("echo 'no such crate' >&2; exit 101")
        self.assertEqual((row["status"], row["detail"]), ("failed", "exit code 101: no such crate"))

    def test_is_not_run_without_its_tools(self):
        with mock.patch.object(toolchains, "rust", side_effect=toolchains.Missing("cargo is missing")):
            row = languages.call(languages.LANGUAGES[4], pathlib.Path(), "127.0.0.1:7", pathlib.Path())
        self.assertEqual((row["status"], row["detail"]), ("not run", "cargo is missing"))


class Ensure(unittest.TestCase):
    def test_installs_only_what_is_missing_or_too_old(self):
        with mock.patch.object(toolchains, "install") as install:
            toolchains.ensure("bash", (3,), ("--version",), "bash")
            install.assert_not_called()
            with self.assertRaisesRegex(toolchains.Missing, r"bash is \d+\.\d+.*, and 1000 is needed"):
                toolchains.ensure("bash", (1000,), ("--version",), "bash")
            install.assert_called_once_with("bash")

    def test_says_why_a_command_failed(self):
        with self.assertRaisesRegex(toolchains.Missing, "exit code 3: reason"):
            toolchains.run(["bash", "-c", "echo reason >&2; exit 3"])


if __name__ == "__main__":
    unittest.main()
