"""Runs the scripts of .github/scripts: with a copy of the files that they read, a real gh and a real twine, and imitations of
the two services that they upload to."""
import hashlib
import os
import pathlib
import re
import shutil
import subprocess

from deb_system import Failed
from imitations import PackageIndex, ReleaseService
from server_process import Server

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = ".github/scripts"
# The files that state the version, and a changelog that has a section of it.
STATED_IN = ("CMakeLists.txt", "client/python/pyproject.toml", "docker/Dockerfile", "docker/chart/Chart.yaml")
VERSION = re.search(r"^project\(attendant VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]
CHANGELOG = f"# Changelog\n\n## Unreleased\n\n- Later.\n\n## {VERSION}\n\n- A thing.\n\n### Fixed\n\n- Another.\n\n## 0.0.1\n\n- Old.\n"
NOTES = "- A thing.\n\n### Fixed\n\n- Another."
IMAGE = f"ghcr.io/owner/attendant@sha256:{'0' * 64}"


def call(script: pathlib.Path, *arguments, **environment) -> str:
    """Runs a script that has to succeed, and returns what it prints on stdout."""
    done = subprocess.run([script, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                          env=os.environ | environment)
    if done.returncode != 0:
        raise Failed(f"{script.name}: exit code {done.returncode}: {(done.stderr + done.stdout)[-400:]}")
    return done.stdout.strip()


def expect_refusal(reason: str, script: pathlib.Path, *arguments, **environment) -> None:
    try:
        printed = call(script, *arguments, **environment)
    except Failed as refused:
        if reason in str(refused):
            return
        raise
    raise Failed(f"{script.name} {' '.join(map(str, arguments))}: expected an error with {reason!r}; printed {printed!r}")


def copy_tree(work: pathlib.Path) -> pathlib.Path:
    tree = work / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(ROOT / SCRIPTS, tree / SCRIPTS)
    for name in STATED_IN:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    (tree / "CHANGELOG.md").write_text(CHANGELOG)
    return tree


def check_version(_: pathlib.Path, work: pathlib.Path) -> str:
    tree = copy_tree(work)
    script = tree / SCRIPTS / "check_version.sh"
    call(script, f"v{VERSION}")
    call(script, GITHUB_REF_NAME=f"v{VERSION}")
    for tag in (VERSION, "v9.8.7", f"v{VERSION}-rc1"):
        expect_refusal(f"expected the version of the tag {tag}; got {VERSION}", script, tag)
    for name in (*STATED_IN, "CHANGELOG.md"):
        path, text = tree / name, (tree / name).read_text()
        path.write_text(text.replace(VERSION, "9.8.7"))
        expect_refusal(f"{name}: expected the version of the tag v{VERSION}; got 9.8.7", script, f"v{VERSION}")
        path.write_text(text)
    return f"{VERSION} in {len(STATED_IN) + 1} files"


def check_notes(_: pathlib.Path, work: pathlib.Path) -> str:
    tree = copy_tree(work)
    script = tree / SCRIPTS / "release_notes.sh"
    if (printed := call(script, VERSION)) != NOTES:
        raise Failed(f"expected {NOTES!r}; got {printed!r}")
    if not call(ROOT / SCRIPTS / "release_notes.sh", "Unreleased"):
        raise Failed("the changelog of the tree has no section")
    expect_refusal('expected a section "## 9.8.7" with text; got none', script, "9.8.7")
    return f"{len(NOTES.splitlines())} lines"


def check_checksums(_: pathlib.Path, work: pathlib.Path) -> str:
    script, folder = ROOT / SCRIPTS / "make_checksums.sh", work / "files"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    expect_refusal("expected files", script, folder)
    for name in ("attendant_1.0_debian12_amd64.deb", "attendant.spdx.json"):
        (folder / name).write_text(name)
    call(script, folder)
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=folder, check=True)
    call(script, folder)  # not over its own file
    lines = (folder / "SHA256SUMS").read_text().splitlines()
    (folder / "attendant_1.0~deb12.deb").touch()
    expect_refusal("expected letters", script, folder)
    return f"{len(lines)} files"


def check_wheel(bin_folder: pathlib.Path, work: pathlib.Path) -> str:
    """The wheel is built as a release does it, installed beside Debian's gRPC and NumPy, and calls a server."""
    shutil.rmtree(work / "wheel", ignore_errors=True)
    wheel = pathlib.Path(call(ROOT / SCRIPTS / "build_wheel.sh", work / "wheel"))
    if wheel.name != f"attendant_client-{VERSION}-py3-none-any.whl":
        raise Failed(f"the wheel is called {wheel.name}")
    venv = work / "venv"
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--clear", "--system-site-packages", venv], check=True)
    subprocess.run([venv / "bin/pip", "install", "-q", "--no-deps", wheel], check=True)
    script = """import sys, attendant_client
x = [[[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]]]
print(attendant_client.__file__, attendant_client.Client(sys.argv[1]).attend(hidden_states=x).output[0].tolist())"""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with Server(bin_folder / "attendant-server") as server:
        printed = subprocess.run([venv / "bin/python", "-c", script, server.address], env=clean, cwd=work, check=True,
                                 stdout=subprocess.PIPE, text=True).stdout
    if str(venv) not in printed or "[[1.93662" not in printed:
        raise Failed(f"printed {printed}")
    return f"{wheel.name} calls a server"


def check_release(_: pathlib.Path, work: pathlib.Path) -> str:
    tree, folder = copy_tree(work), work / "files"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    contents = {name: name.encode() * 1000 for name in ("attendant_1.0_debian12_amd64.deb", "attendant.spdx.json")}
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    tag = f"v{VERSION}"
    with ReleaseService(tag) as service:
        call(tree / SCRIPTS / "publish_release.sh", folder, GITHUB_REF_NAME=tag, IMAGE=IMAGE, **service.environment(work))
        released = service.released
    sums = "".join(f"{hashlib.sha256(contents[name]).hexdigest()}  {name}\n" for name in sorted(contents))
    if released.files != contents | {"SHA256SUMS": sums.encode()}:
        raise Failed(f"the files of the release are {sorted(released.files)}, or their bytes differ")
    if released.draft or released.tag != tag or released.notes != f"{NOTES}\n\nContainer image: `{IMAGE}`":
        raise Failed(f"draft {released.draft}, tag {released.tag}, notes {released.notes!r}")
    with ReleaseService("v9.8.7") as service:
        for asked, reason in ((tag, "tag"), ("v9.8.7", "expected a section")):  # no such tag, no such notes
            expect_refusal(reason, tree / SCRIPTS / "publish_release.sh", folder, GITHUB_REF_NAME=asked, IMAGE=IMAGE,
                           **service.environment(work))
        if service.released.tag:
            raise Failed(f"a release was made: {service.released}")
    return f"{len(released.files)} files, with notes and checksums"


def check_index(_: pathlib.Path, work: pathlib.Path) -> str:
    wheel, = (work / "wheel").glob("*.whl")
    with PackageIndex() as index:
        call(ROOT / SCRIPTS / "publish_wheel.sh", work / "wheel", TWINE_REPOSITORY_URL=index.url, TWINE_USERNAME="__token__",
             TWINE_PASSWORD="token")
        if index.uploaded != {wheel.name: wheel.read_bytes()}:
            raise Failed(f"uploaded are {sorted(index.uploaded)}, or the bytes differ")
    return f"{wheel.name} arrives"


CHECKS = [("check_version.sh", check_version), ("release_notes.sh", check_notes), ("make_checksums.sh", check_checksums),
          ("build_wheel.sh", check_wheel), ("publish_release.sh", check_release), ("publish_wheel.sh", check_index)]
