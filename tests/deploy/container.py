"""Builds the image with buildah in an empty Debian 12, looks at what is in it, runs it with runc as a container host would, and
pushes it to a registry.

Needs root. The first run compiles everything; the folder of the run keeps the Debian system and the compiler's cache."""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess

import container_push
import container_run

ROOT = pathlib.Path(__file__).resolve().parents[2]
BASE, IMAGE = "localhost/attendant-test-base", "localhost/attendant-test"
UID = 65532
MOST_MB = 110
EPOCH = 1700000000


class Failed(Exception):
    """Says what was expected, and what was found."""


def expect(condition: bool, message: str) -> None:
    if not condition:
        raise Failed(message)


class Buildah:
    """buildah with its files in a folder of ours."""

    def __init__(self, work: pathlib.Path, cache: pathlib.Path):
        self.work, self.cache = work, cache
        storage = work / "storage.conf"
        storage.write_text(f'[storage]\ndriver = "vfs"\ngraphroot = "{work}/store"\nrunroot = "{work}/run"\n')
        self.environment = os.environ | {"CONTAINERS_STORAGE_CONF": str(storage)}

    def __call__(self, *arguments: str) -> str:
        return subprocess.run(["buildah", *arguments], check=True, stdout=subprocess.PIPE, text=True, env=self.environment).stdout.strip()

    def build(self, log: pathlib.Path, *flags: str) -> str:
        """Builds the image and returns its identifier."""
        self.cache.mkdir(parents=True, exist_ok=True)
        proxies = [f"--build-arg={name}={os.environ[name]}" for name in
                   ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY") if name in os.environ]
        command = [self.source() / "docker/make_image.sh", IMAGE, "--volume", f"{self.cache}:/root/.cache/ccache",
                   "--build-arg", f"BASE={BASE}", *proxies, *flags]
        environment = self.environment | {"SOURCE_DATE_EPOCH": str(EPOCH), "REVISION": "of-a-test"}
        with log.open("w", encoding="utf-8") as messages:
            return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=messages, text=True,
                                  env=environment).stdout.splitlines()[-1]

    def source(self) -> pathlib.Path:
        """What is committed, as a checkout would have it."""
        source = self.work / "source"
        shutil.rmtree(source, ignore_errors=True)
        source.mkdir()
        archive = subprocess.run(["git", "-C", str(ROOT), "archive", "HEAD"], check=True, stdout=subprocess.PIPE).stdout
        subprocess.run(["tar", "-x", "-C", str(source)], input=archive, check=True)
        return source

    def unpack(self, image: str, target: pathlib.Path) -> pathlib.Path:
        """Copies the files of an image into a folder."""
        container = self("from", image)
        try:
            shutil.rmtree(target, ignore_errors=True)
            subprocess.run(["cp", "-a", self("mount", container), str(target)], check=True)
        finally:
            self("rm", container)
        return target


def make_base(buildah: Buildah) -> None:
    """Makes the image of an empty Debian 12 that the build starts from, if there is none."""
    if BASE in buildah("images", "--format", "{{.Name}}").split():
        return
    system = buildah.work / "debian"
    subprocess.run(["bash", "-euc", f"source '{ROOT}/server/setup.sh'; source '{ROOT}/tests/debian/systems.sh'; "
                    f"make_system 12 '{system}'"], check=True)
    container = buildah("from", "scratch")
    buildah("add", "--quiet", container, str(system), "/")
    buildah("commit", "--quiet", "--rm", container, BASE)


def contents(root: pathlib.Path) -> str:
    """A digest of every name, kind, permission, owner, time and byte of a folder."""
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        state = path.lstat()
        digest.update(f"{path.relative_to(root)} {state.st_mode} {state.st_uid} {state.st_gid} {int(state.st_mtime)}\n".encode())
        if path.is_symlink():
            digest.update(os.readlink(path).encode())
        elif path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()


def check_size(root: pathlib.Path) -> str:
    size = sum(path.lstat().st_size for path in root.rglob("*") if path.is_file() and not path.is_symlink()) / 1e6
    expect(size <= MOST_MB, f"{size:.1f} MB, more than {MOST_MB}")
    return f"{size:.1f} MB"


def check_programs(root: pathlib.Path) -> str:
    """There is no shell and no package manager: two programs, libraries, and nothing that takes its owner's rights."""
    programs = [path.name for path in root.rglob("*") if path.is_file() and os.access(path, os.X_OK) and ".so" not in path.name]
    expect(sorted(programs) == ["attendant-client", "attendant-server"], f"programs: {', '.join(sorted(programs))}")
    special = [path for path in root.rglob("*") if not path.is_symlink() and path.lstat().st_mode & 0o6000]
    expect(not special, f"set-uid or set-gid: {special}")
    writable = [path for path in root.rglob("*") if not path.is_symlink() and path.lstat().st_mode & 0o002 and path.name != "tmp"]
    expect(not writable, f"anybody may write {writable}")
    return " and ".join(sorted(programs))


def check_packages(root: pathlib.Path) -> str:
    """Scanners find each package: dpkg's entry, its licence, and its line of the SPDX document."""
    entries = sorted((root / "var/lib/dpkg/status.d").iterdir())
    spdx = json.loads((root / "usr/share/doc/attendant/attendant.spdx.json").read_text())
    described = {package["name"]: package["versionInfo"] for package in spdx["packages"]}
    for entry in entries:
        fields = dict(line.split(": ", 1) for line in entry.read_text().splitlines() if ": " in line and line[0] != " ")
        expect(fields["Package"] == entry.name and "Version" in fields, f"{entry} is no entry of dpkg")
        expect((root / "usr/share/doc" / entry.name / "copyright").stat().st_size > 0, f"{entry.name} has no copyright file")
        expect(described.get(entry.name) == fields["Version"], f"{entry.name} is not in the SPDX document")
    expect({"libc6", "libdnnl2", "base-files"} <= {entry.name for entry in entries}, f"packages: {entries}")
    expect("Apache License" in (root / "usr/share/doc/attendant/copyright").read_text(), "no licence of Attendant")
    return f"{len(entries)} packages"


def check_hub(root: pathlib.Path) -> str:
    """What pulling models takes: a cache that the user may write, and the authorities of HTTPS."""
    cache = (root / "cache").lstat()
    expect((cache.st_uid, cache.st_gid) == (UID, UID), f"/cache is of {cache.st_uid}:{cache.st_gid}")
    authorities = (root / "etc/ssl/certs/ca-certificates.crt").read_text().count("BEGIN CERTIFICATE")
    expect(authorities > 100, f"{authorities} authorities")
    return f"a cache, {authorities} authorities"


def check_release(root: pathlib.Path) -> str:
    release = dict(line.split("=", 1) for line in (root / "etc/os-release").read_text().splitlines() if "=" in line)
    expect(release["ID"] == "debian", f"os-release has ID={release['ID']}")
    return release["PRETTY_NAME"].strip('"')


def check_configuration(configuration: dict) -> str:
    inner = configuration["config"]
    expect(inner["User"] == f"{UID}:{UID}", f"User is {inner['User']}")
    expect(inner["Entrypoint"] == ["attendant-server"], f"Entrypoint is {inner['Entrypoint']}")
    expect("ATTENDANT_MODEL_CACHE=/cache" in inner["Env"], f"Env is {inner['Env']}")
    expect(inner["WorkingDir"] == "/models", f"WorkingDir is {inner['WorkingDir']}")
    expect(set(inner["ExposedPorts"]) >= {"8001", "8002"} or set(inner["ExposedPorts"]) >= {"8001/tcp", "8002/tcp"},
           f"ExposedPorts are {inner['ExposedPorts']}")
    expect(inner["Healthcheck"]["Test"] == ["CMD", "attendant-client", "health"], f"Healthcheck is {inner.get('Healthcheck')}")
    labels = {name.removeprefix("org.opencontainers.image.") for name in inner["Labels"]}
    expect({"title", "description", "licenses", "version", "revision"} <= labels, f"Labels are {sorted(labels)}")
    return f"user {inner['User']}, health check, {len(labels)} labels"


def check(bin_folder: pathlib.Path, work: pathlib.Path) -> dict:
    """Returns {"figures": {name: number}, "rows": [(what, "passed" | "failed" | "not run", details)]}. `work` is for files
    of the run, which stay there."""
    rows = []
    missing = [name for name in ("buildah", "runc", "mmdebstrap", "docker-registry") if shutil.which(name) is None]
    if missing:
        rows.append(("container", "not run", f"{', '.join(missing)}: not installed"))
        return {"figures": {}, "rows": rows}
    work.mkdir(parents=True, exist_ok=True)
    figures = {}

    def row(what: str, action, *arguments):
        try:
            rows.append((what, "passed", action(*arguments)))
        except (Failed, container_run.Failed, OSError, KeyError, subprocess.SubprocessError) as error:
            rows.append((what, "failed", f"{type(error).__name__}: {error}"))

    buildah = Buildah(work, pathlib.Path(os.environ.get("CCACHE_DIR", work.parent / "ccache")).resolve())
    make_base(buildah)
    image = buildah.build(work / "build.log")
    root = buildah.unpack(image, work / "image")
    configuration = json.loads(buildah("inspect", "--type", "image", "--format", "{{.Config}}", image))
    row("size", check_size, root)
    row("programs", check_programs, root)
    row("packages", check_packages, root)
    row("models of the Hub", check_hub, root)
    row("release", check_release, root)
    row("configuration", check_configuration, configuration)
    for what, action in container_run.CHECKS:
        row(what, action, container_run.Place(root, configuration, bin_folder, work))

    def rebuild() -> str:
        again = buildah.unpack(buildah.build(work / "rebuild.log", "--no-cache"), work / "image-again")
        first, second = contents(root), contents(again)
        expect(first == second, f"contents differ: {first[:12]} and {second[:12]}; see {root} and {again}")
        return f"twice {first[:12]}"

    row("two builds, one digest of contents", rebuild)
    row("push", container_push.check_push, IMAGE, buildah.environment, work / "registry")
    if rows[0][1] == "passed":
        figures["image_mb"] = float(rows[0][2].split()[0])
    figures["container.passed"] = sum(outcome == "passed" for _, outcome, _ in rows)
    figures["container.failed"] = sum(outcome == "failed" for _, outcome, _ in rows)
    return {"figures": figures, "rows": rows}
