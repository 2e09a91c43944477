#!/usr/bin/env python3
"""Runs the examples in client/examples by the commands on their page, and compares what they print with expected.txt.

    languages.py --address HOST:PORT [--work FOLDER] [--only FOLDER…]

The server has to have the models worked-example (worked-example), tiny (synthetic:tiny) and minilm (the real one). Sources are copied to FOLDER/languages,
so that nothing is left in the tree. A language whose tools cannot be had is not run.
"""
import argparse
import dataclasses
import pathlib
import re
import shutil
import subprocess
import sys

import toolchains

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = pathlib.Path("client/examples")
BUILT = (".venv", "__pycache__", "*_pb2*.py", "*.pb.go", "target", "node_modules", "generated", "build")
PASSED, FAILED, NOT_RUN = "passed", "failed", "not run"
CALLS = ["Attend with a mask", "Encode packed", "texts", "an error and its field", "a deadline"]
SECONDS = 900  # for one language, from empty caches


@dataclasses.dataclass(frozen=True)
class Language:
    name: str  # as the page's heading has it
    folder: str
    file: str  # names the version of gRPC
    pattern: str  # of that


LANGUAGES = (
    Language("Python", "python", "requirements.txt", r"grpcio==(\S+)"),
    Language("Go", "go", "go.mod", r"google\.golang\.org/grpc v(\S+)"),
    Language("Java", "java", "pom.xml", r"<grpc\.version>([^<]+)"),
    Language("TypeScript", "typescript", "package.json", r'"@grpc/grpc-js": "([^"]+)'),
    Language("Rust", "rust", "Cargo.lock", r'name = "tonic"\nversion = "([^"]+)'),
    Language("C++", "cpp", "CMakeLists.txt", ""),
)


def copy_sources(work: pathlib.Path) -> pathlib.Path:
    """Copies the examples and the protocol. What earlier builds have made there stays. Returns the folder of the examples."""
    for folder in ("proto", EXAMPLES):
        shutil.copytree(ROOT / folder, work / "languages" / folder, ignore=shutil.ignore_patterns(*BUILT), dirs_exist_ok=True)
    return work / "languages" / EXAMPLES


def script(language: Language, address: str) -> str:
    """The commands that the page shows, of which the last one is the example's."""
    page = (ROOT / EXAMPLES / "README.md").read_text(encoding="utf-8")
    shown = re.search(rf"^## {re.escape(language.name)}\n.*?^```sh\n(.*?)^```$", page, re.M | re.S)
    if not shown or "localhost:8001" not in shown[1].splitlines()[-1]:
        raise ValueError(f"{EXAMPLES}/README.md does not show how {language.name} is run")
    *builds, start = shown[1].splitlines()
    # A proxy that nobody runs: the examples leave it out.
    start = "grpc_proxy=http://localhost:1 " + start.replace("localhost:8001", address)
    return "\n".join(["set -e", "{", *builds, "} >&2", start])


def version(language: Language) -> str:
    if language.folder == "cpp":  # Debian's
        return toolchains.run(["pkg-config", "--modversion", "grpc++"]).strip()
    text = (ROOT / EXAMPLES / language.folder / language.file).read_text(encoding="utf-8")
    return re.search(language.pattern, text)[1]


def compare(printed: str) -> str:
    """Returns the first line that differs from the expected one; empty: none does."""
    # Maven puts codes for a terminal around what it runs.
    got = re.sub(r"\x1b\[[0-9;]*m", "", printed).splitlines()
    expected = (ROOT / EXAMPLES / "expected.txt").read_text(encoding="utf-8").splitlines()
    for number in range(max(len(got), len(expected))):
        wanted, found = (text[number] if number < len(text) else "nothing" for text in (expected, got))
        if wanted != found:
            return f"line {number + 1}: expected {wanted!r}; got {found!r}"
    return ""


def call(language: Language, examples: pathlib.Path, address: str, work: pathlib.Path) -> dict:
    """Returns a row of the suite's table."""
    row = {"client": language.name, "version": "", "checked": [], "status": NOT_RUN, "detail": ""}
    try:
        env = getattr(toolchains, language.folder)(work)
        row["version"] = version(language)
    except toolchains.Missing as error:
        return row | {"detail": str(error)}
    try:
        done = subprocess.run(["bash", "-c", script(language, address)], cwd=examples, env=env, timeout=SECONDS, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    except subprocess.TimeoutExpired as error:
        return row | {"status": FAILED, "detail": f"not done after {error.timeout} seconds"}
    if done.returncode != 0:
        return row | {"status": FAILED, "detail": f"exit code {done.returncode}: {(done.stderr + done.stdout).strip()[-400:]}"}
    if difference := compare(done.stdout):
        return row | {"status": FAILED, "detail": difference}
    return row | {"status": PASSED, "checked": CALLS}


def run(address: str, work: pathlib.Path, only: tuple = ()) -> list:
    """Builds and runs the examples against a server, and returns a row for each language."""
    work = work.resolve()
    examples = copy_sources(work)
    rows = []
    for language in LANGUAGES:
        if not only or language.folder in only:
            rows.append(call(language, examples, address, work))
            print(f"  {language.name}: {rows[-1]['status']}", file=sys.stderr, flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", required=True, help="the server's address, HOST:PORT")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build" / "interop", help="where the examples are built")
    parser.add_argument("--only", nargs="+", choices=[language.folder for language in LANGUAGES], default=())
    options = parser.parse_args()
    rows = run(options.address, options.work, tuple(options.only))
    for row in rows:
        print(f"{row['status']:8} {row['client']:10} {row['version']:8} {'; '.join(row['checked']) or row['detail']}")
    sys.exit(0 if all(row["status"] == PASSED for row in rows) else 1)


if __name__ == "__main__":
    main()
