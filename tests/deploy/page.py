#!/usr/bin/env python3
"""Drives the page of real servers with a headless Chromium: what it shows is what /metrics and /v2 say, it asks for nothing else,
and it can be used with the keyboard alone, on a narrow screen, in the dark, and with tokens.

    page.py --bin FOLDER [--work FOLDER] [--only CHECK…]

FOLDER of --bin has attendant-server and attendant-client. Debian's chromium, chromium-driver and python3-selenium have to be there.
Pictures of the page stay in the folder of --work. Ends with exit code 1 if anything fails."""
import argparse
import contextlib
import pathlib
import subprocess
import sys
import tempfile
import traceback

from selenium.common.exceptions import WebDriverException

import page_access as access
import page_browser
import page_load as load
import page_try as trial
from monitoring_files import Failed
from monitoring_live import Server, process

SOURCES = {"words": "synthetic:words", "worked-example": "worked-example", "mini": "synthetic:minilm-l6", "tiny": "synthetic:tiny"}
MODELS = [flag for name, source in SOURCES.items() for flag in ("--model", f"{name}={source}")]


class Place:
    """Where a check runs: a browser, the programs, a folder for files, and servers as they are asked for."""

    def __init__(self, browser, programs: pathlib.Path, work: pathlib.Path):
        self.browser, self.work = browser, work
        self.program, self.client = programs / "attendant-server", programs / "attendant-client"

    @contextlib.contextmanager
    def server(self, *flags, name: str = "server"):
        server = Server(self.work, name, [])
        with process(server.command(self.program, list(flags)), server.log) as running:
            server.await_ready(running)
            server.url = f"http://127.0.0.1:{server.http}/"
            yield server

    def open(self, server, **options) -> None:
        self.browser.open(server.url, **options)
        self.browser.wait(lambda: self.browser.shown("live") or self.browser.text("status"), "a first answer")

    def expect_no_complaints(self) -> None:
        if complaints := self.browser.complaints():
            raise Failed("; ".join(complaints))


CHECKS = {
    "asks for nothing but what is of this port": load.check_requests,
    "shows a server without calls": load.check_quiet,
    "reads metrics as Prometheus does": load.check_arithmetic,
    "live numbers are those of /metrics": load.check_live,
    "refusals are those of /metrics": load.check_refusals,
    "models are those of /metrics": load.check_models,
    "pauses, and follows a server that is started anew": load.check_restart,
        "a text": trial.check_text,
    "the worked example": trial.check_worked_example,
    "token ids with their texts": trial.check_sentence,
    "many tokens, and several layers": trial.check_long,
    "mistakes and refusals are explained": trial.check_mistakes,
    "text stays text": trial.check_hostile,
    "maps of inspect with labels": trial.check_inspect,
    "the keyboard reaches all of it": access.check_keyboard,
    "narrow screens": access.check_narrow,
    "names, roles and contrast": access.check_names_and_contrast,
    "without REST": access.check_without_rest,
    "with TLS and tokens": access.check_tokens,
    "without models": access.check_without_models,
    "switched off": access.check_off,
}


def check(bin_folder: pathlib.Path, work: pathlib.Path, only: tuple = ()) -> dict:
    """Returns {"figures": {name: number}, "rows": [(what, "passed" | "failed", details)]}. `work` is for pictures and logs."""
    work.mkdir(parents=True, exist_ok=True)
    rows = []
    with page_browser.browser() as browser:
        place = Place(browser, bin_folder, work)
        with place.server(*MODELS, name="shared") as shared:
            for what, action in CHECKS.items():
                if only and not any(part in what for part in only):
                    continue
                try:
                    rows.append((what, "passed", action(place, shared)))
                except (Failed, OSError, subprocess.SubprocessError, WebDriverException, AssertionError) as error:
                    where = traceback.extract_tb(error.__traceback__)[-1]
                    rows.append((what, "failed", f"{error or type(error).__name__} ({where.name}, line {where.lineno})"))
                    browser.picture(work / f"failed-{len(rows)}.png")
    failed = sum(outcome == "failed" for _, outcome, _ in rows)
    return {"figures": {"page.checks_passed": len(rows) - failed, "page.checks_failed": failed}, "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of attendant-server and attendant-client")
    parser.add_argument("--work", type=pathlib.Path, help="folder for pictures and logs; default: a temporary one")
    parser.add_argument("--only", nargs="+", default=[], help="words in the names of checks")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = check(options.bin.resolve(), (options.work or pathlib.Path(folder)).resolve(), tuple(options.only))
    for what, outcome, details in result["rows"]:
        print(f"{outcome:8} {what}: {details}")
    for name, figure in result["figures"].items():
        print(f"{name:24} {figure}")
    sys.exit(result["figures"]["page.checks_failed"] > 0)


if __name__ == "__main__":
    main()
