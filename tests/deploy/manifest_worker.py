"""manifest_worker.py TASK: renders and checks everything for manifests.py, by the Python that has the schemas."""

import copy
import functools
import json
import pathlib
import re
import subprocess
import sys
import tarfile

import yaml

from manifest_cases import CASES, CONTROLS, IMAGE, REFUSALS
from manifest_probes import probe_problems
from manifest_rules import release_problems
from manifest_schemas import Schemas, documents_of

# The oldest that the chart takes, and the newest that has schemas.
KUBERNETES = ["1.27", "1.37"]
# Flags that the chart sets by itself, or that make no sense for a pod.
OWN_FLAGS = set("--config --pull --describe --json --ranks --completion --help --version --model --model-repository --address --port "
                "--http-address --http-port --port-file --tls-cert --tls-key --tls-client-ca --token-file --lame-duck "
                "--drain-timeout".split())


class World:
    """What manifests are compared with: the server, and the alerts."""

    def __init__(self, root: pathlib.Path, server: str):
        self.server = server
        printed = subprocess.run([server, "--help"], capture_output=True, text=True, check=True).stdout
        self.help_flags = set(re.findall(r"^  (--[a-z-]+)", printed, re.M))
        alerts = (root / "docker/monitoring/alerts.yaml").read_text()
        self.alert_groups = yaml.safe_load(alerts)["groups"]
        # uid and gid of the image
        user = re.search(r"^USER (\d+):(\d+)$", (root / "docker/Dockerfile").read_text(), re.M)
        self.user = tuple(map(int, user.groups()))
        self.jobs = set(re.findall(r'job="([^"]+)"', alerts))

    def accepts(self, arguments: list) -> str:
        return self._accepts(tuple(argument.replace("{{.Name}}", "minilm") for argument in arguments
                                   if not argument.startswith("--model-repository")))

    @functools.cache
    def _accepts(self, arguments: tuple) -> str:
        """The server reads all settings before it describes a model; it ends with 2 if one is bad."""
        done = subprocess.run([self.server, "--describe", "worked-example", *arguments], capture_output=True, text=True,
                              env={})
        return done.stderr.strip() if done.returncode == 2 else ""


class Chart:
    def __init__(self, helm: str, folder: pathlib.Path, work: pathlib.Path):
        self._helm, self._folder, self._work = helm, folder, work

    def run(self, command: list, values: dict) -> subprocess.CompletedProcess:
        path = self._work / "values.json"
        path.write_text(json.dumps(values))
        return subprocess.run([self._helm, *map(str, command), "--values", str(path)], capture_output=True, text=True)

    def render(self, values: dict, chart=None, name: str = "release") -> subprocess.CompletedProcess:
        flags = ["--namespace", "inference", "--kube-version", KUBERNETES[0]]
        return self.run(["template", name, chart or self._folder, *flags], {"image": IMAGE} | values)

    def lint(self, values: dict) -> list:
        done = self.run(["lint", self._folder, "--strict", "--kube-version", KUBERNETES[0]], values)
        return [] if done.returncode == 0 else [done.stdout[-500:]]

    def package(self) -> pathlib.Path:
        subprocess.run([self._helm, "package", self._folder, "--destination", self._work], check=True, capture_output=True)
        return next(self._work.glob("attendant-*.tgz"))


class Checks:
    def __init__(self, task: dict):
        self.root, self.work = pathlib.Path(task["root"]), pathlib.Path(task["work"])
        self.chart = Chart(task["helm"], self.root / "docker/chart", self.work)
        self.schemas = Schemas(KUBERNETES, task["definitions"])
        self.world = World(self.root, task["server"])
        self.releases = {}
        self.rows = []

    def add(self, kind: str, case: str, manifest: str, problems: list) -> None:
        self.rows.append({"kind": kind, "case": case, "manifest": manifest, "problems": problems})

    def problems(self, manifest: dict, release: list, tags: bool = False) -> list:
        found = self.schemas.problems(manifest)
        try:
            return found + release_problems(manifest, release, self.world, tags)
        except (KeyError, TypeError, ValueError, AttributeError) as error:  # what the schema has found too
            return found or [f"the rules cannot read it: {error!r}"]

    def check_release(self, case: str, release: list, tags: bool) -> None:
        self.releases[case] = release
        for manifest in release:
            name = f"{manifest.get('kind')} {manifest.get('metadata', {}).get('name')}"
            self.add("manifest", case, name, self.problems(manifest, release, tags))

    def check_chart(self) -> None:
        for case, values in CASES.items():
            done = self.chart.render(values)
            if done.returncode != 0:
                self.add("manifest", case, "the chart", [done.stderr[-500:]])
                continue
            self.check_release(case, documents_of(done.stdout), tags="tag" in values.get("image", {}))

        done = self.chart.render({}, name="team.search")
        self.check_release("a release whose name has a dot", documents_of(done.stdout), tags=False)

    def check_kserve(self) -> None:
        release = [document for path in sorted((self.root / "docker/kserve").glob("*.yaml"))
                   for document in documents_of(path.read_text())]
        self.check_release("KServe", release, tags=False)

    def check_refusals(self) -> None:
        for case, (values, wanted) in REFUSALS.items():
            done = self.chart.render(values)
            if done.returncode == 0:
                self.add("refusal", case, "values", ["accepted"])
            else:
                found = re.search(wanted, done.stderr, re.S)
                self.add("refusal", case, "values", [] if found else [f"says {done.stderr[-500:]!r}"])

    def check_controls(self) -> None:
        for control, (case, kind, place, wrong, wanted) in CONTROLS.items():
            release = copy.deepcopy(self.releases[case])
            manifest = next(each for each in release if each["kind"] == kind)
            member = manifest
            for step in place[:-1]:
                member = member[step]
            if wrong is None:
                del member[place[-1]]
            else:
                member[place[-1]] = wrong
            found = self.problems(manifest, release)
            fine = any(re.search(wanted, problem) for problem in found)
            self.add("control", control, kind, [] if fine else [f"not found, but {found}"])

    def check_probes(self) -> None:
        """At a real server, with the arguments of the pods."""
        for case in ("default", "tokens", "TLS", "TLS for known clients", "KServe"):
            manifest = next(each for each in self.releases[case] if each["kind"] in ("Deployment", "ClusterServingRuntime"))
            pod = manifest["spec"].get("template", manifest)["spec"]
            found = list(probe_problems(pod["containers"][0], pathlib.Path(self.world.server).parent, self.work))
            self.add("probes", case, manifest["kind"], found)

    def check_package(self) -> None:
        """What Helm makes of the folder as a whole."""
        self.add("chart", "helm lint", "without values", self.chart.lint({}))
        self.add("chart", "helm lint", "everything", self.chart.lint({"image": IMAGE} | CASES["everything"]))
        package = self.chart.package()
        same = self.chart.render(CASES["everything"], package).stdout == self.chart.render(CASES["everything"]).stdout
        self.add("chart", "helm package", "everything", [] if same else ["it renders other manifests than the folder"])
        with tarfile.open(package) as archive:
            alerts = archive.extractfile("attendant/files/alerts.yaml").read()
        same = alerts == (self.root / "docker/monitoring/alerts.yaml").read_bytes()
        self.add("chart", "helm package", "alerts", [] if same else ["they are not docker/monitoring/alerts.yaml"])
        schema = json.loads((self.root / "docker/chart/values.schema.json").read_text())
        known = {f"--{name}" for name in schema["properties"]["settings"]["properties"]}
        wanted = self.world.help_flags - OWN_FLAGS
        differ = sorted(known ^ wanted)
        self.add("chart", "values.schema.json", "settings", [f"differ from --help: {differ}"] if differ else [])
        version = re.search(r"project\(attendant VERSION (\S+)", (self.root / "CMakeLists.txt").read_text()).group(1)
        described = yaml.safe_load((self.root / "docker/chart/Chart.yaml").read_text())
        self.add("chart", "Chart.yaml", "appVersion", [] if described["appVersion"] == version else [f"is not {version}"])


def main() -> None:
    checks = Checks(json.loads(sys.argv[1]))
    checks.check_chart()
    checks.check_kserve()
    checks.check_refusals()
    checks.check_controls()
    checks.check_probes()
    checks.check_package()
    json.dump(checks.rows, sys.stdout)


main()
