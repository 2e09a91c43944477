"""Judges the workflows of .github: actionlint finds nothing, actions are pinned by commit, permissions are the least, each step
that runs a command calls a script of the tree, and these scripts do what they say.

Needs Go, Debian's python3-yaml, gh and python3-venv, and PyPI."""
import os
import pathlib
import re
import shlex
import subprocess

import yaml

import release_scripts
from deb_system import Failed
from manifests import go_environment, run

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".github/workflows"
ACTIONLINT = ("github.com/rhysd/actionlint", "v1.7.12")
MATRIX = re.compile(r"\$\{\{ matrix\.\w+ \}\}")
PINNED = re.compile(r"^[\w.-]+/[\w.-]+@[0-9a-f]{40}$")
# Each script that a step calls, and the suite that runs it too, so that no command is first run by a release.
RUN_BY = {
    "server/run": "tests/debian/run", "tests/run": "tests/debian/run", "docker/make_deb.sh": "tests/deploy/deb.py",
    "docker/make_image.sh": "tests/deploy/container.py", "docker/push_image.sh": "tests/deploy/container_push.py",
} | {f".github/scripts/{name}.sh": "tests/deploy/release_scripts.py" for name in
     ("check_version", "build_wheel", "publish_release", "publish_wheel")}
# What each job may do beyond reading the contents.
MORE_THAN_READING = {
    ("release.yml", "image"): {"packages": "write", "id-token": "write", "attestations": "write"},
    ("release.yml", "image-arm64"): {"packages": "write"},
    ("release.yml", "release"): {"contents": "write"},
    ("release.yml", "pypi"): {"id-token": "write"},
}


def problems_of(name: str, text: str) -> list:
    """What is wrong with a workflow, for what actionlint does not judge."""
    workflow, problems = yaml.safe_load(text), []
    if workflow.get("permissions") != {}:
        problems.append("expected `permissions: {}` for the jobs to widen")
    for secret in re.findall(r"\bsecrets\.\w+", text):
        problems.append(f"expected no secret but github.token; got {secret}")
    comments = dict(re.findall(r"uses: (\S+)(.*)", text))
    for job, content in workflow["jobs"].items():
        allowed = {"contents": "read"} | MORE_THAN_READING.get((name, job), {})
        if content.get("permissions") != allowed:
            problems.append(f"{job}: expected the permissions {allowed}; got {content.get('permissions')}")
        for step in content["steps"]:
            if "uses" in step:
                problems += check_action(job, step["uses"], comments.get(step["uses"], ""))
            else:
                problems += check_command(job, step["run"])
    return problems


def check_action(job: str, action: str, comment: str) -> list:
    if PINNED.match(action) and re.match(r" # v\d+\.\d+\.\d+$", comment):
        return []
    return [f"{job}: expected OWNER/NAME@COMMIT # vX.Y.Z; got {action}{comment}"]


def check_command(job: str, command: str) -> list:
    """A command is one call of an executable script of the tree, with plain arguments, that a suite runs too."""
    plain = MATRIX.sub("matrix", command)
    script = shlex.split(plain)[0]
    if not re.fullmatch(r"[\w./ -]+", plain):
        return [f"{job}: expected a call of a script with plain arguments; got {command!r}"]
    if not os.access(ROOT / script, os.X_OK) or not (ROOT / script).is_file():
        return [f"{job}: expected an executable script of the tree; got {script}"]
    suite = RUN_BY.get(script)
    if suite is None or script.rpartition("/")[2] not in (ROOT / suite).read_text():
        return [f"{job}: expected a script that a suite runs; got {script}, of {suite or 'none'}"]
    return []


def check_steps() -> str:
    steps = 0
    for path in sorted(FOLDER.iterdir()):
        text = path.read_text()
        if problems := problems_of(path.name, text):
            raise Failed(f"{path.name}: {'; '.join(problems)}")
        steps += len(re.findall(r"- (run|uses|name|id):", text))
    return f"{steps} steps"


def check_refusals() -> str:
    """Each rule is broken once, and has to be noticed."""
    name, text = "ci.yml", (FOLDER / "ci.yml").read_text()
    broken = {
        "permissions: {}": ("permissions: {}", "permissions: write-all"), "the permissions": ("contents: read", "contents: write"),
        "plain arguments": ("server/run --once", "server/run --once && true"), "plain arguments; got": ("server/run --once", "|\n          make"),
        "script of the tree": ("server/run --once", "make"), "that a suite runs": ("server/run --once", "tests/bits/run"),
        "OWNER/NAME@COMMIT": ("actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1", "actions/checkout@v7"),
        "no secret": ("CCACHE_MAXSIZE: 1G", "TOKEN: ${{ secrets.TOKEN }}")}
    for expected, (before, after) in broken.items():
        found = problems_of(name, text.replace(before, after, 1))
        if before not in text or not any(expected in problem for problem in found):
            raise Failed(f"{after!r} instead of {before!r}: expected {expected!r} among the problems; got {found}")
    return f"{len(broken)} broken rules noticed"


def check_actionlint(work: pathlib.Path) -> str:
    path, version = ACTIONLINT
    program, stamp = work / "bin/actionlint", work / f"bin/actionlint-{version}"
    if not stamp.exists():
        run(["go", "install", f"{path}/cmd/actionlint@{version}"], env=go_environment(work))
        stamp.touch()
    done = subprocess.run([program, "-no-color", *FOLDER.iterdir()], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise Failed(done.stdout)
    return f"actionlint {version} finds nothing in {len(list(FOLDER.iterdir()))} files"


def check(bin_folder: pathlib.Path, work: pathlib.Path) -> dict:
    """Returns {"figures": {name: number}, "rows": [(what, "passed" | "failed", details)]}. `work` is for files of the run."""
    work.mkdir(parents=True, exist_ok=True)
    checks = [("actionlint", lambda: check_actionlint(work)), ("steps, actions and permissions", check_steps),
              ("broken rules", check_refusals)]
    checks += [(what, lambda action=action: action(bin_folder, work)) for what, action in release_scripts.CHECKS]
    rows = []
    for what, action in checks:
        try:
            rows.append((what, "passed", action()))
        except Exception as error:  # each row stands for itself
            rows.append((what, "failed", f"{type(error).__name__}: {error}"))
    return {"figures": {"workflows.failed": sum(outcome == "failed" for _, outcome, _ in rows)}, "rows": rows}
