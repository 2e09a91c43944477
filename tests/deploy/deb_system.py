"""Empty Debian systems in folders, and a network of their own for what runs in them."""
import contextlib
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Failed(Exception):
    """Says what was expected, and what was found."""


class System:
    """A Debian in a folder, made if there is none. Its commands print into files in `logs`."""

    def __init__(self, release: str, root: pathlib.Path, logs: pathlib.Path):
        self.release, self.root, self._logs = release, root, logs
        script = f"source '{ROOT}/server/setup.sh'; source '{ROOT}/tests/debian/systems.sh'; make_system {release} '{root}'"
        subprocess.run(["bash", "-euc", script], check=True)

    def command(self, *arguments: str, folder: str = "/", cache: pathlib.Path = None) -> list:
        """The command that runs these arguments in the system, as the same process."""
        return [str(ROOT / "tests/debian/enter"), str(self.root), folder, str(cache or ""), *map(str, arguments)]

    def run(self, *arguments: str, log: str, environment: dict = None, **options) -> str:
        """Runs a command that has to succeed, and returns what it prints on stdout."""
        path = self._logs / f"{self.release}-{log}.log"
        with path.open("w", encoding="utf-8") as messages:
            done = subprocess.run(self.command(*arguments, **options), stdout=subprocess.PIPE, stderr=messages, text=True, check=False,
                                  env=os.environ | (environment or {}))
        with path.open("a", encoding="utf-8") as messages:
            messages.write(done.stdout)
        if done.returncode != 0:
            raise Failed(f"{' '.join(map(str, arguments))}: exit code {done.returncode}: {path.read_text()[-400:]}; see {path}")
        return done.stdout.strip()

    def apt(self, *arguments: str) -> None:
        self.run("apt-get", "-q", "-y", *arguments, log=f"apt-{arguments[0]}", environment={"DEBIAN_FRONTEND": "noninteractive"})

    def install(self, *packages: str) -> None:
        self.apt("update")
        self.apt("install", *packages)


@contextlib.contextmanager
def network():
    """Yields a prefix for commands that run them in a network of their own, with nothing but its loopback interface."""
    script = "ip link set lo up && echo up && exec cat"  # which ends when its input does
    with subprocess.Popen(["unshare", "--net", "bash", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        if holder.stdout.readline() != "up\n":
            raise Failed("a network namespace cannot be made")
        yield ["nsenter", f"--net=/proc/{holder.pid}/ns/net"]
        holder.stdin.close()
