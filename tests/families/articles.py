"""The table of tests/articles/README.md, row by row: whether every test that it names is there and passes, and whether
every feature of the articles is in some row."""
import json
import pathlib
import re
import subprocess
import tempfile
import typing

HEADING = "## The features"
FEATURES = [f"F{number}" for number in range(1, 52)]


class Row(typing.NamedTuple):
    shown: str
    features: list
    names: list  # names of tests
    paths: list  # paths of further test files


def rows(page: str) -> list:
    """The rows between two titles. A row without four cells names no test."""
    section = page.split(f"\n{HEADING}\n", 1)[1].split("\n#", 1)[0]
    found = []
    for line in section.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not cells or cells[0] == "Shown" or set(line) <= set("|- ") or cells[0].startswith("**"):
            continue
        features, tests = (cells[1], cells[3]) if len(cells) == 4 else ("", "")
        found.append(Row(cells[0], re.findall(r"\bF\d+\b", features),
                         re.findall(r"\w+", re.sub(r"`[^`]+`", "", tests)), re.findall(r"`([^`]+)`", tests)))
    return found


def run_tests(program: str) -> dict:
    """Name -> whether it ran and passed."""
    with tempfile.TemporaryDirectory() as scratch:
        answers = pathlib.Path(scratch) / "answers.json"
        subprocess.run([program, f"--gtest_output=json:{answers}"], stdout=subprocess.DEVNULL, check=False)
        suites = json.loads(answers.read_text())["testsuites"] if answers.exists() else []
    passed = {}
    for test in (test for suite in suites for test in suite["testsuite"]):
        passes = test["result"] == "COMPLETED" and not test.get("failures")
        passed[test["name"]] = passes and passed.get(test["name"], True)  # the name may occur in several articles
    return passed


def missing_of(row: Row, passed: dict, root: pathlib.Path) -> list:
    """The reasons why a row does not pass; each row must name at least one feature and one test of an article."""
    missing = [f"{name} fails" if name in passed else f"no test {name}" for name in row.names if not passed.get(name)]
    missing += [f"no {path}" for path in row.paths if not (root / path).exists()]
    missing += [f"unknown {feature}" for feature in row.features if feature not in FEATURES]
    if not row.features:
        missing.insert(0, "names no feature")
    return missing if row.names else ["names no test", *missing]


def judge(table: list, passed: dict, root: pathlib.Path) -> list:
    """(what is shown, number of tests, what is missing) of each row, and of each feature that no row names."""
    verdicts = [(row.shown, len(row.names), missing_of(row, passed, root)) for row in table]
    named = {feature for row in table for feature in row.features}
    return verdicts + [(feature, 0, ["is in no row"]) for feature in FEATURES if feature not in named]


def compare(program: str, root: pathlib.Path) -> dict:
    figures = {"articles.rows_passed": 0, "articles.rows_missing": 0}
    print(f"{'shown in the articles':70}{'tests':>7}  rows")
    for shown, tests, missing in judge(rows((root / "tests/articles/README.md").read_text()), run_tests(program), root):
        figures["articles.rows_missing" if missing else "articles.rows_passed"] += 1
        print(f"{shown:70.70}{tests:7}  {'; '.join(missing) or 'passes'}", flush=True)
    return figures
