"""README's table of the articles, row by row: whether every test that it names is there and passes."""
import json
import pathlib
import re
import subprocess
import tempfile

HEADING = "### The articles"


def rows(readme: str) -> list:
    """(what is shown, names of tests, paths of further ones) of each row between two titles."""
    section = readme.split(f"\n{HEADING}\n", 1)[1].split("\n#", 1)[0]
    found = []
    for line in section.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) != 3 or cells[0] == "Shown" or set(line) <= set("|- ") or cells[0].startswith("**"):
            continue
        paths = re.findall(r"`([^`]+)`", cells[2])
        found.append((cells[0], re.findall(r"\w+", re.sub(r"`[^`]+`", "", cells[2])), paths))
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
        passed[test["name"]] = passes and passed.get(test["name"], True)  # of several articles
    return passed


def missing_of(names: list, paths: list, passed: dict, root: pathlib.Path) -> list:
    """What keeps a row from passing; each names at least one test of an article."""
    missing = [f"{name} fails" if name in passed else f"no test {name}" for name in names if not passed.get(name)]
    missing += [f"no {path}" for path in paths if not (root / path).exists()]
    return missing if names else ["names no test", *missing]


def compare(program: str, root: pathlib.Path) -> dict:
    passed = run_tests(program)
    figures = {"articles.rows_passed": 0, "articles.rows_missing": 0}
    print(f"{'shown in the articles':70}{'tests':>7}  rows")
    for shown, names, paths in rows((root / "README.md").read_text()):
        missing = missing_of(names, paths, passed, root)
        figures["articles.rows_missing" if missing else "articles.rows_passed"] += 1
        print(f"{shown:70.70}{len(names):7}  {'; '.join(missing) or 'passes'}", flush=True)
    return figures
