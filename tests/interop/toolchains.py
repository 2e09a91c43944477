"""Finds the tools of a language, or installs them: Debian's packages, and where those are too old, Go's own way to newer ones.

A function for each language returns the environment in which its commands run, or raises Missing with the reason.
"""
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess

GO_BOOTSTRAP = (1, 21)  # from this version on, Go fetches what a go.mod asks for
GO_TOOLCHAIN = "golang.org/toolchain@v0.0.1-go1.24.13.linux-"  # a module like others
RUST = (1, 88)
JAVA, MAVEN = (17,), (3, 6)
NODE = (18,)
SECONDS = 600


class Missing(Exception):
    """Why a language's tools cannot be had."""


def run(command: list, **options) -> str:
    """Returns what a command prints on standard output, or raises Missing with the end of what it said."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=SECONDS, check=False,
                              stdin=subprocess.DEVNULL, **options)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Missing(f"{command[0]}: {error}") from error
    if done.returncode != 0:
        raise Missing(f"{' '.join(map(str, command))}: exit code {done.returncode}: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


def version(program: str, *arguments: str, env: dict = None) -> tuple:
    """The first version that the program prints, as numbers; empty if there is no such program."""
    if not shutil.which(program, path=(env or os.environ).get("PATH")):
        return ()
    found = re.search(r"\d+(?:\.\d+)+", run([program, *arguments], env=env))
    return tuple(map(int, found[0].split("."))) if found else ()


@functools.cache
def update_packages() -> None:
    run([*as_root(), "apt-get", "update", "-qq"])


def as_root() -> list:
    return [] if os.geteuid() == 0 else ["sudo", "--non-interactive"]


def install(*packages: str) -> None:
    """Installs Debian's packages."""
    if not shutil.which("apt-get"):
        raise Missing(f"there is no apt-get to install {', '.join(packages)}")
    update_packages()
    run([*as_root(), "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages])


def ensure(program: str, needed: tuple, arguments: tuple, *packages: str) -> None:
    """Installs the packages unless there is such a program, new enough."""
    if version(program, *arguments) >= needed:
        return
    install(*packages)
    if (found := version(program, *arguments)) < needed:
        raise Missing(f"{program} is {'.'.join(map(str, found)) or 'missing'}, and {'.'.join(map(str, needed))} is needed")


def protoc() -> None:
    ensure("protoc", (3, 12), ("--version",), "protobuf-compiler")


def plain() -> dict:
    """The environment without this suite's own modules."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def python(_: pathlib.Path) -> dict:
    try:
        run(["/usr/bin/python3", "-c", "import ensurepip"])
    except Missing:
        install("python3", "python3-venv")
    return plain()


def newer_go(work: pathlib.Path) -> pathlib.Path:
    """Fetches a newer Go with an old one, and returns its folder. Programs in modules are not executable."""
    architecture = run(["go", "env", "GOARCH"]).strip()
    home = work / "go-toolchain"
    if not (home / "bin" / "go").exists():
        module = json.loads(run(["go", "mod", "download", "-json", GO_TOOLCHAIN + architecture], cwd=work))
        shutil.rmtree(home, ignore_errors=True)
        partial = home.with_suffix(".part")
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(module["Dir"], partial, copy_function=shutil.copyfile)
        for path in (partial, *partial.rglob("*")):
            program = path.parent == partial / "bin" or partial / "pkg" / "tool" in path.parents
            path.chmod(0o755 if program or path.is_dir() else 0o644)
        partial.rename(home)
    return home


def go(work: pathlib.Path) -> dict:
    protoc()
    if not shutil.which("go"):
        install("golang-go", "ca-certificates")
    env = plain() | {"GOTOOLCHAIN": "auto"}
    if version("go", "version") < GO_BOOTSTRAP:
        home = newer_go(work)
        env |= {"GOROOT": str(home), "PATH": f"{home / 'bin'}:{env['PATH']}", "GOTOOLCHAIN": "local"}
    # Programs that are installed go to a folder of the suite's own, modules to the usual one.
    modules = run(["go", "env", "GOMODCACHE"], env=env).strip()
    return env | {"GOPATH": str(work / "go-path"), "GOMODCACHE": modules}


def java(work: pathlib.Path) -> dict:
    ensure("javac", JAVA, ("-version",), "default-jdk-headless")
    ensure("mvn", MAVEN, ("--version",), "maven")
    return plain() | {"MAVEN_OPTS": f"-Dmaven.repo.local={work / 'maven'}"}


def typescript(_: pathlib.Path) -> dict:
    protoc()
    ensure("node", NODE, ("--version",), "nodejs")
    ensure("npm", (8,), ("--version",), "npm")
    return plain()


def rust(_: pathlib.Path) -> dict:
    protoc()
    # Debian renews these packages, which its browsers are built with.
    ensure("cargo", RUST, ("--version",), "cargo-web", "rustc-web")
    return plain()


def cpp(_: pathlib.Path) -> dict:
    packages = ("cmake", "g++", "libgrpc++-dev", "libprotobuf-dev", "protobuf-compiler", "protobuf-compiler-grpc")
    listed = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status}\n", *packages], capture_output=True, text=True, check=False)
    if listed.stdout.split() != ["installed"] * len(packages):
        install(*packages, "make")
    return plain()
