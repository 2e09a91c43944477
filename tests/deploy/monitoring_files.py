"""Reads the files of docker/monitoring and checks those that need no server: rules, compose.yaml, the dashboard's fields."""
import json
import pathlib
import re
import subprocess
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPOSE = ROOT / "docker/compose.yaml"
FOLDER = ROOT / "docker/monitoring"
COMPOSE_GO = "github.com/compose-spec/compose-go/v2/cmd@v2.16.2"  # the loader of Docker Compose
GRAFANA_SDK = "grafana-foundation-sdk==1769699241"  # Grafana's schema of dashboards, as Python classes
# Options of Prometheus' annotations, which the schema of dashboards leaves to the data source.
UNKNOWN_FIELDS = {".annotations.list[].titleFormat", ".annotations.list[].textFormat"}
METRIC = re.compile(r"\b(?:attendant|process)_\w+")
ROUND_TRIP = """
import json, sys
from grafana_foundation_sdk.cog import encoder, plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
plugins.register_default_plugins()
print(encoder.JSONEncoder().encode(Dashboard.from_json(json.load(open(sys.argv[1])))))
"""


class Failed(Exception):
    """The reason why a check did not pass."""


def run(*command, **options) -> str:
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=300, **options)
    if done.returncode != 0:
        raise Failed(done.stdout.strip()[-2000:])
    return done.stdout


def read_rules() -> tuple:
    """Returns the alerts and the recording rules, each as {name: rule}."""
    rules = [rule for group in yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"] for rule in group["rules"]]
    return ({rule["alert"]: rule for rule in rules if "alert" in rule},
            {rule["record"]: rule for rule in rules if "record" in rule})


def check_prometheus_files() -> str:
    run("promtool", "check", "config", "prometheus.yaml", cwd=FOLDER)
    run("promtool", "check", "rules", "--lint-fatal", "alerts.yaml", cwd=FOLDER)
    alerts, _ = read_rules()
    for name, alert in alerts.items():
        missing = {"summary", "description", "runbook"} - set(alert["annotations"])
        if missing or alert["labels"]["severity"] not in ("warning", "critical"):
            raise Failed(f"{name} lacks {sorted(missing)} or a severity")
    return f"{len(alerts)} alerts, each with a runbook"


def test_alert(name: str, work: pathlib.Path) -> str:
    """Runs the tests of one alert, which have to show it firing and not firing."""
    tests = yaml.safe_load((FOLDER / "alerts_test.yaml").read_text())
    tests["rule_files"] = [str(FOLDER / "alerts.yaml")]
    tests["tests"] = [test for test in tests["tests"] if test["name"].startswith(name + ":")]
    cases = [case for test in tests["tests"] for case in test["promql_expr_test"] if f'alertname="{name}"' in case["expr"]]
    fires = sum(bool(case["exp_samples"]) for case in cases)
    if not 0 < fires < len(cases):
        raise Failed("its tests do not show both that it fires and that it does not")
    path = work / f"{name}.yaml"
    path.write_text(yaml.safe_dump(tests))
    run("promtool", "test", "rules", path)
    return f"fires in {fires} of {len(cases)} cases, as it should"


def check_compose(work: pathlib.Path) -> str:
    """Loads compose.yaml as Docker Compose does, and looks whether every service is confined."""
    # The module's command hands no variables to its interpolation, so that this one, without a default, is filled in here.
    text, filled = re.subn(r"\$\{GRAFANA_ADMIN_PASSWORD:\?[^}]*\}", "chosen", COMPOSE.read_text())
    if filled != 1:
        raise Failed("the password of Grafana is not demanded exactly once")
    copy = work / "compose.yaml"
    copy.write_text(text)
    loaded = run("go", "run", COMPOSE_GO, "-format", "json", "-no-path-resolution", copy, cwd=work)
    model = json.loads(loaded[loaded.index("{\n"):])
    for name, service in model["services"].items():
        faults = [fault for fault, true in (
            ("a root file system that can be written to", service.get("read_only") is not True),
            ("capabilities", service.get("cap_drop") != ["ALL"] or service.get("cap_add")),
            ("new privileges", "no-new-privileges:true" not in service.get("security_opt", [])),
            ("root", service.get("user", "0").split(":")[0] in ("0", "root")),
            ("no limit of memory", not service.get("mem_limit")),
            ("an image without a version", "build" not in service and not re.search(r":v?\d+\.\d+\.\d+$", service["image"])),
            ("ports for other machines", any(port.get("host_ip") != "127.0.0.1" for port in service.get("ports", []))),
        ) if true]
        if faults:
            raise Failed(f"{name} has {', '.join(faults)}")
        missing = set(service.get("networks", {})) - set(model["networks"])
        missing |= set(service.get("depends_on", {})) - set(model["services"])
        for volume in service.get("volumes", []):
            there = volume["source"] in model["volumes"] or (COMPOSE.parent / volume["source"]).exists()
            missing |= set() if there else {volume["source"]}
        if missing:
            raise Failed(f"{name} names {', '.join(sorted(missing))}, which do not exist")
    return f"{len(model['services'])} services: no root, no capabilities, read-only, pinned"


def read_dashboard() -> dict:
    return json.loads((FOLDER / "dashboard.json").read_text())


def lost_fields(before, after, path: str = "") -> list:
    """The paths in `before` whose values `after` does not have."""
    if isinstance(before, dict) and isinstance(after, dict):
        return [lost for key in before for lost in lost_fields(before[key], after.get(key), f"{path}.{key}")]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [lost for pair in zip(before, after) for lost in lost_fields(*pair, path + "[]")]
    return [] if before == after else [path]


def check_dashboard_fields(work: pathlib.Path) -> str:
    """Every field has to be in Grafana's schema: what its classes do not know they drop."""
    venv = work / "venv"
    run(sys.executable, "-m", "venv", venv)
    run(venv / "bin/pip", "install", "-q", "--disable-pip-version-check", GRAFANA_SDK)
    kept = json.loads(run(venv / "bin/python", "-c", ROUND_TRIP, FOLDER / "dashboard.json"))
    unknown = set(lost_fields(read_dashboard(), kept)) - UNKNOWN_FIELDS
    if unknown:
        raise Failed(f"Grafana's schema does not have {', '.join(sorted(unknown))}")
    ids = [panel["id"] for panel in read_dashboard()["panels"]]
    if len(set(ids)) != len(ids):
        raise Failed("two panels have the same id")
    return f"{len(ids)} panels and rows, all fields known to {GRAFANA_SDK.split('==')[0]}"


def dashboard_queries() -> list:
    """Returns (what asks it, expression) of all panels and of the annotations."""
    dashboard = read_dashboard()
    found = [(f"{panel['title']} {target['refId']}", target["expr"])
             for panel in dashboard["panels"] for target in panel.get("targets", [])]
    return found + [(f"annotation {item['name']}", item["expr"]) for item in dashboard["annotations"]["list"]]


def dashboard_variables() -> list:
    """Returns (name, selector, label) of the variables that label_values fills, in their order."""
    queries = [(item["name"], item["query"]["query"])
               for item in read_dashboard()["templating"]["list"] if item["type"] == "query"]
    return [(name, *re.fullmatch(r"label_values\((.*), (\w+)\)", query).groups()) for name, query in queries]


def check_names(scraped: str) -> str:
    """Every metric that rules and dashboard name has to be in `scraped`, the servers' /metrics, or a recording rule."""
    alerts, records = read_rules()
    expressions = [rule["expr"] for rule in (*alerts.values(), *records.values())]
    expressions += [expression for _, expression in dashboard_queries()] + [selector for _, selector, _ in dashboard_variables()]
    names = {name for expression in expressions for name in METRIC.findall(expression)}
    recorded = {name for expression in expressions for name in re.findall(r"\battendant:\w+(?::\w+)?", expression)}
    served = set(re.findall(r"^(\w+)[{ ]", scraped, re.M))
    if names - served or recorded - set(records):
        raise Failed(f"no such series: {', '.join(sorted(names - served | recorded - set(records)))}")
    drawn, shown = ({re.sub("_(bucket|sum|count)$", "", name) for name in some} for some in (names, served))
    undrawn = ", ".join(sorted(shown - drawn)) or "none"
    return f"{len(names)} series named, all of them served; served and not used: {undrawn}"
