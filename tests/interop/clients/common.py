"""What the clients' scripts share. Each runs in an environment of its own and prints one JSON line:
{"version": …, "checked": [what was found right], "status": "passed" or "failed", "detail": why not}.

Where they call stands in the variable INTEROP, since KServe's package parses the arguments of any program that imports it:
{"grpc": "HOST:PORT", "http": "HOST:PORT", "expected": FILE, "programs": FOLDER, "npm": FOLDER, "perf_analyzer": FILE,
"cuda": FOLDER}. The expected FILE is written by expected.py: what the server's own protocol answers to the same inputs.
"""
import importlib.metadata
import json
import os
import sys
import traceback
import types

import numpy as np


class Checks:
    """What has been found right so far; a check that fails raises."""

    def __init__(self):
        self.done = []

    def that(self, what: str, holds: bool, got: object = "") -> None:
        if not holds:
            raise AssertionError(f"{what}: {got}")
        self.note(what)

    def same(self, what: str, made: np.ndarray, expected: np.ndarray) -> None:
        """The same bits."""
        made = np.asarray(made)
        if made.shape != expected.shape:
            raise AssertionError(f"{what}: shape {made.shape}, expected {expected.shape}")
        if not np.array_equal(made, expected):
            raise AssertionError(f"{what}: differs by up to {np.abs(made - expected).max()}")
        self.note(what)

    def close(self, what: str, made: np.ndarray, expected: np.ndarray, atol: float) -> None:
        made = np.asarray(made, np.float64)
        if made.shape != expected.shape or not np.allclose(made, expected, rtol=0, atol=atol):
            raise AssertionError(f"{what}: shape {made.shape}, or off by more than {atol}")
        self.note(what)

    def refuses(self, what: str, call, kind: type, *words: str) -> None:
        """`call` raises `kind`, whose text has all these words."""
        try:
            call()
        except kind as error:
            self.that(what, all(word in str(error) for word in words), str(error))
            return
        raise AssertionError(f"{what}: was accepted")

    def note(self, what: str) -> None:
        if what not in self.done:
            self.done.append(what)


def options() -> types.SimpleNamespace:
    return types.SimpleNamespace(**json.loads(os.environ["INTEROP"]))


def report(version: str, checks: Checks, detail: str = "") -> None:
    print(json.dumps({"version": version, "checked": checks.done, "status": "failed" if detail else "passed",
                      "detail": detail}), flush=True)


def run(package, check) -> None:
    """Reports what check(checks, options, expected) finds about a package of this environment, or a program, of which
    `package` is a function that tells the version."""
    checks, version, detail = Checks(), "", ""
    try:
        version = package() if callable(package) else importlib.metadata.version(package)
        with np.load(options().expected) as file:
            expected = dict(file)
        check(checks, options(), expected)
    except BaseException as error:  # whatever a stock client raises is its result
        traceback.print_exc(file=sys.stderr)
        detail = f"{type(error).__name__}: {error}"[:400]
    report(version, checks, detail)
