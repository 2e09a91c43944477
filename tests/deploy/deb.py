"""Builds the Debian package in an empty Debian, 12 and 13, judges it with lintian, and uses it in another one that has no compiler.

Needs root. The first run compiles everything twice; the folder of the run keeps the systems and the compiler's cache."""
import os
import pathlib
import re
import shutil
import subprocess

import deb_use
from deb_system import Failed, System

ROOT = pathlib.Path(__file__).resolve().parents[2]
RELEASES = ("12", "13")


def make_package(system: System, cache: pathlib.Path) -> pathlib.Path:
    """Builds what is committed, as a checkout would have it, and returns the package."""
    checkout = system.root / "attendant"
    shutil.rmtree(checkout, ignore_errors=True)
    checkout.mkdir()
    archive = subprocess.run(["git", "-C", str(ROOT), "archive", "HEAD"], check=True, stdout=subprocess.PIPE).stdout
    subprocess.run(["tar", "-x", "-C", str(checkout)], input=archive, check=True)
    epoch = subprocess.run(["git", "-C", str(ROOT), "log", "-1", "--format=%ct"], check=True, stdout=subprocess.PIPE, text=True).stdout
    printed = system.run("docker/make_deb.sh", "/out", folder="/attendant", cache=cache, log="build",
                         environment={"SOURCE_DATE_EPOCH": epoch.strip()})
    return system.root / printed.splitlines()[-1].lstrip("/")


def check_name(package: pathlib.Path, release: str) -> str:
    """Names with other characters are changed by GitHub; then the checksums would name no file."""
    if not re.fullmatch(rf"attendant_[0-9.]+_debian{release}_[a-z0-9]+\.deb", package.name):
        raise Failed(f"the package is called {package.name}")
    return package.name


def check_refusal(system: System) -> str:
    """On another distribution the package's dependencies would be named wrongly."""
    script = "echo 'PRETTY_NAME=Other' >/tmp/os-release; mount --bind /tmp/os-release /usr/lib/os-release; docker/make_deb.sh"
    try:
        system.run("bash", "-euc", script, folder="/attendant", log="refusal")
    except Failed as refused:
        if "expected Debian 12 or 13; got Other" in str(refused):
            return "by name"
        raise
    raise Failed("make_deb.sh packs for any distribution")


def check_lintian(system: System, package: pathlib.Path) -> str:
    system.install("lintian")
    printed = system.run("lintian", "--allow-root", "--fail-on", "error", f"/out/{package.name}", log="lintian")
    return "; ".join(printed.split("\n")) if printed else "finds nothing"


def check_unit(system: System, package: pathlib.Path) -> str:
    system.install("--reinstall", f"/out/{package.name}", "systemd")
    system.run("systemd-analyze", "verify", "/usr/lib/systemd/system/attendant.service", log="verify")
    return "systemd-analyze finds nothing"


def check_release(release: str, work: pathlib.Path, cache: pathlib.Path, figures: dict) -> list:
    rows = []

    def row(what: str, action, *arguments):
        """Returns what the action returns, or None if it fails."""
        try:
            done = action(*arguments)
            rows.append((f"{release}: {what}", "passed", done))
            return done
        except (Failed, OSError, KeyError, subprocess.SubprocessError) as error:
            rows.append((f"{release}: {what}", "failed", f"{type(error).__name__}: {error}"))
            return None

    builder = System(release, work / f"{release}-build", work)
    package = row("is built", make_package, builder, cache)
    if package is None:
        return rows
    figures[f"deb.{release}.package_mb"] = round(package.stat().st_size / 1e6, 2)
    row("name", check_name, package, release)
    row("other distributions are refused", check_refusal, builder)
    row("lintian", check_lintian, builder, package)
    row("unit", check_unit, builder, package)
    shutil.rmtree(work / f"{release}-run", ignore_errors=True)
    place = deb_use.Place(System(release, work / f"{release}-run", work), package, f"deb.{release}", figures)
    for what, action in deb_use.CHECKS:
        if row(what, action, place) is None:
            break  # the rest builds upon it
    return rows


def check(_: pathlib.Path, work: pathlib.Path, releases: tuple = RELEASES) -> dict:
    """Returns {"figures": {name: number}, "rows": [(what, "passed" | "failed" | "not run", details)]}. `work` is for files
    of the run, which stay there."""
    missing = [name for name in ("mmdebstrap", "ip", "nsenter") if shutil.which(name) is None]
    if missing:
        return {"figures": {}, "rows": [("deb", "not run", f"{', '.join(missing)}: not installed")]}
    work.mkdir(parents=True, exist_ok=True)
    cache = pathlib.Path(os.environ.get("CCACHE_DIR", work.parent / "ccache")).resolve()
    figures, rows = {}, []
    for release in releases:
        rows += check_release(release, work, cache, figures)
    figures["deb.failed"] = sum(outcome == "failed" for _, outcome, _ in rows)
    return {"figures": figures, "rows": rows}
