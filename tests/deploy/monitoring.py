#!/usr/bin/env python3
"""Proves docker/compose.yaml and docker/monitoring: with promtool that every alert fires when it should and else does not,
and with a real Prometheus and real servers under load that every query of the dashboard has data.

    monitoring.py --bin FOLDER [--work FOLDER]

FOLDER of --bin has attendant-server and attendant-client. Installs Debian's prometheus if it is missing; needs Go and PyPI for
Docker Compose's loader and Grafana's schema. Ends with exit code 1 if anything fails."""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import monitoring_files as files
import monitoring_live as live

NO_GRAFANA = "no package registry that the tests may use has its program; its schema and Prometheus stand in for it"


def install() -> None:
    """Installs Prometheus, without leaving running the service that Debian's package starts."""
    if shutil.which("prometheus") and shutil.which("promtool"):
        return
    subprocess.run(["bash", "-euc", f"source '{files.ROOT}/server/setup.sh'; install_packages deploy"], check=True)
    as_root = [] if os.geteuid() == 0 else ["sudo"]
    for command in (["service", "prometheus", "stop"], ["update-rc.d", "prometheus", "disable"]):
        subprocess.run([*as_root, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def check(bin_folder: pathlib.Path, work: pathlib.Path) -> dict:
    """Returns {"figures": {name: number}, "rows": [(what, "passed" | "failed" | "not run", details)]}. `work` is for files
    of the run, which stay there."""
    install()
    work.mkdir(parents=True, exist_ok=True)
    rows = []

    def row(what: str, action, *arguments) -> bool:
        try:
            rows.append((what, "passed", action(*arguments)))
            return True
        except (files.Failed, OSError, subprocess.SubprocessError) as error:
            rows.append((what, "failed", str(error)))
            return False

    row("prometheus.yaml and alerts.yaml", files.check_prometheus_files)
    alerts, _ = files.read_rules()
    passed = sum(row(name, files.test_alert, name, work) for name in alerts)
    row("compose.yaml", files.check_compose, work)
    row("fields of dashboard.json", files.check_dashboard_fields, work)
    answered = []

    def run_live() -> str:
        with live.loaded(bin_folder, work) as (prometheus, begin, end, scraped):
            row("names of series", files.check_names, scraped)
            row("alerts of the run", live.check_alerts, prometheus)
            answered.extend(live.ask_dashboard(prometheus, begin, end))
        return f"{live.LOAD_SECONDS} s"

    row("servers and Prometheus under load", run_live)
    for what, numbers, expression in answered:
        rows.append((f"dashboard: {what}", "passed" if numbers else "failed", f"{numbers} values" if numbers else expression))
    rows.append(("Grafana itself", "not run", NO_GRAFANA))
    figures = {"alert_rules.passed": passed, "alert_rules.failed": len(alerts) - passed, "dashboard.queries": len(answered),
               "dashboard.queries_with_data": sum(numbers > 0 for _, numbers, _ in answered)}
    return {"figures": figures, "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of attendant-server and attendant-client")
    parser.add_argument("--work", type=pathlib.Path, help="folder for the files of the run; default: a temporary one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = check(options.bin.resolve(), (options.work or pathlib.Path(folder)).resolve())
    for what, outcome, details in result["rows"]:
        print(f"{outcome:8} {what}: {details}")
    for name, figure in result["figures"].items():
        print(f"{name:28} {figure}")
    failed = sum(outcome == "failed" for _, outcome, _ in result["rows"])
    print(f"{len(result['rows']) - failed - 1} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
