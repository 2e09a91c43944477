"""Runs the parts of tests/deploy, and prints one table; see tests/deploy/run."""
import argparse
import functools
import json
import os
import pathlib
import sys

import bulk
import container
import deb
import load_tests
import manifests
import monitoring
import page
import rollout
import workflows

# gRPC's own messages about servers that are killed on purpose.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

PARTS = {"container": container.check, "deb": deb.check, "workflows": workflows.check,
         "manifests": lambda programs, work: manifests.check(work, programs), "monitoring": monitoring.check,
         "page": page.check, "rollout": rollout.check, "bulk": bulk.check, "load": load_tests.check}


def plain(row) -> tuple:
    """A row as (what, outcome, details); those of manifests are mappings."""
    if not isinstance(row, dict):
        return tuple(row)
    return (f"{row['kind']} {row['case']}: {row['manifest']}", "failed" if row["problems"] else "passed",
            "; ".join(map(str, row["problems"])))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--release", nargs="+", choices=deb.RELEASES, default=deb.RELEASES, help="Debian's, of deb")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    parts = PARTS | {"deb": functools.partial(deb.check, releases=tuple(arguments.release))}
    figures, rows = {}, []
    for part in arguments.only:
        print(f"==> {part}", file=sys.stderr, flush=True)
        try:
            found = parts[part](arguments.bin, arguments.work / part)
        except Exception as error:  # one part that cannot run leaves the others their rows
            found = {"figures": {}, "rows": [(part, "failed", f"{type(error).__name__}: {error}")]}
        figures |= found["figures"]
        for what, outcome, details in map(plain, found["rows"]):
            rows.append({"part": part, "what": what, "outcome": outcome, "details": str(details)})
            print(f"{part:11} {outcome:8} {what:50} {details}", flush=True)
    for name, figure in figures.items():
        print(f"{name:32} {figure}")
    if arguments.json:
        arguments.json.write_text(json.dumps({"figures": figures, "rows": rows}, indent=2) + "\n")
    failed = sum(row["outcome"] == "failed" for row in rows)
    print(f"{sum(row['outcome'] == 'passed' for row in rows)} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
