"""Uses the Debian package as an administrator does: installs it, serves, configures it, upgrades, removes and purges it."""
import contextlib
import dataclasses
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import time

from deb_system import Failed, ROOT, System, network

MOST_SECONDS = 60  # from apt to a first answer, and to that of a real model
ACCOUNT = "61184"  # the first of those that systemd takes for DynamicUser
SETTINGS = "etc/attendant/attendant.conf"
LINK = "etc/systemd/system/multi-user.target.wants/attendant.service"
ENABLED = "var/lib/systemd/deb-systemd-helper-enabled/"
FOLDER = "/var/lib/models/all-MiniLM-L6-v2"  # as the example settings have it
WORKED_EXAMPLE = [1.9366208, 6.683105, 1.5950683]  # its first row
HELLO_WORLD = [-0.034477, 0.031023, 0.006735]  # as sentence-transformers embeds it
KEPT = ("var/lib/dpkg/", "var/lib/apt/", "var/cache/apt/", "var/log/", "root/")


@dataclasses.dataclass
class Place:
    """A system to install the package in, and where its figures go."""
    system: System
    package: pathlib.Path
    prefix: str
    figures: dict
    begin: float = 0

    def path(self, inside: str) -> pathlib.Path:
        return self.system.root / inside

    def took(self, name: str) -> str:
        """Writes down the time since apt began, which has a limit."""
        seconds = round(time.monotonic() - self.begin, 1)
        self.figures[f"{self.prefix}.{name}"] = seconds
        if seconds > MOST_SECONDS:
            raise Failed(f"{seconds} s after the begin of apt install, more than {MOST_SECONDS}")
        return f"{seconds} s after the begin of apt install"


def named(place: Place) -> set:
    """Every path that has the package's name, but for what apt and dpkg keep of any package, and the copies of this test."""
    paths = {str(path.relative_to(place.system.root)) for path in place.system.root.rglob("*attendant*")}
    return {path for path in paths if not path.startswith(KEPT)}


def install(place: Place) -> str:
    model = subprocess.run([ROOT / "tests/families/get_checkpoints"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    shutil.copytree(model, place.path(FOLDER[1:]))
    shutil.copy(place.package, place.path("root"))
    place.system.apt("update")
    place.begin = time.monotonic()
    place.system.apt("install", f"/root/{place.package.name}")
    compilers = [path for name in ("cc", "gcc", "g++", "c++", "clang", "cmake") for path in place.system.root.glob(f"usr/bin/{name}*")]
    if compilers:
        raise Failed(f"the package brings {compilers}")
    if not place.path(LINK).is_symlink():
        raise Failed(f"the service is not enabled: {LINK} does not exist")
    return f"{len(named(place))} files and folders; the service is enabled"


def start_command(place: Place) -> list:
    """ExecStart of the unit, under an account like the one that DynamicUser gives."""
    unit = place.path("usr/lib/systemd/system/attendant.service").read_text()
    if "\nDynamicUser=yes\n" not in unit:
        raise Failed("the unit has no DynamicUser=yes")
    program = shlex.split(re.search(r"^ExecStart=(.+)$", unit, re.M)[1])
    return place.system.command("setpriv", f"--reuid={ACCOUNT}", f"--regid={ACCOUNT}", "--clear-groups", "--no-new-privs",
                                "--bounding-set=-all", "--inh-caps=-all", *program)


@contextlib.contextmanager
def serving(place: Place):
    """Runs the service until it is ready, and yields a function that calls it with attendant-client and returns its JSON. The
    service has to end with exit code 0 upon SIGTERM."""
    with network() as prefix:
        server = subprocess.Popen([*prefix, *start_command(place)], stderr=subprocess.PIPE, text=True)

        def call(*arguments: str) -> dict:
            command = [*prefix, *place.system.command("attendant-client", *arguments, "--json")]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
            if done.returncode != 0:
                raise Failed(f"attendant-client {arguments[0]}: exit code {done.returncode}: {done.stderr[-300:]}")
            return json.loads(done.stdout)

        try:
            lines = []
            while not lines or " ready: " not in lines[-1]:  # each iteration waits for a line of the log
                lines.append(server.stderr.readline())
                if not lines[-1]:
                    raise Failed(f"the service did not start: {''.join(lines)[-400:]}")
            yield call
            server.terminate()
            log = server.communicate(timeout=60)[1]
            if server.returncode != 0:
                raise Failed(f"exit code {server.returncode} after SIGTERM: {log[-400:]}")
        finally:
            if server.poll() is None:
                server.kill()
                server.communicate()


def expect_near(found: list, expected: list) -> None:
    if any(abs(one - other) > 1e-4 for one, other in zip(found, expected)):
        raise Failed(f"expected {expected}; got {found[:len(expected)]}")


def first_answer(place: Place) -> str:
    """The settings as they were installed, at the usual ports."""
    with serving(place) as call:
        answer = call("attend", "--values", "1,0,1,0;0,2,0,2;1,1,1,1")
        expect_near(answer["output"]["values"][0][0], WORKED_EXAMPLE)
        return place.took("first_answer_s")


def real_model(place: Place) -> str:
    settings = place.path(SETTINGS)
    text = settings.read_text()
    example = f"#model = minilm={FOLDER}\n"
    if example not in text:
        raise Failed(f"{SETTINGS} has no line {example!r}")
    settings.write_text(text.replace(example, example[1:]))
    with serving(place) as call:
        answer = call("encode", "--model", "minilm", "--token-ids", "101,7592,2088,102", "--pooled", "--normalize")
        expect_near(answer["pooled"]["values"][0], HELLO_WORLD)
        return place.took("real_model_s")


def completion(place: Place) -> str:
    """bash offers the commands of the client, and the flags of the server."""
    offered = {}
    for program, begun, expected in (("attendant-client", "att", "attend"), ("attendant-server", "--conf", "--config")):
        script = f"""source /usr/share/bash-completion/completions/{program}
          COMP_WORDS=({program} {begun}) COMP_CWORD=1 COMP_LINE='{program} {begun}' COMP_POINT=${{#COMP_LINE}}
          set -- $(complete -p {program}); while [[ $1 != -F ]]; do shift; done
          $2 {program} {begun} {program}; echo "${{COMPREPLY[@]}}\""""
        offered[program] = place.system.run("bash", "-c", script, log="completion").split()
        if expected not in offered[program]:
            raise Failed(f"{program} {begun}: expected {expected}; offered {offered[program]}")
    return "; ".join(f"{program}: {' '.join(words)}" for program, words in offered.items())


def upgrade(place: Place) -> str:
    """A higher version of the same contents, over changed settings."""
    changed = place.path(SETTINGS).read_text()
    scratch, newer = place.path("root/newer"), place.path("root/newer.deb")
    subprocess.run(["dpkg-deb", "-R", place.package, scratch], check=True)
    control = scratch / "DEBIAN/control"
    control.write_text(re.sub(r"^(Version: .*)$", r"\g<1>.1", control.read_text(), flags=re.M))
    subprocess.run(["dpkg-deb", "-b", scratch, newer], check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(scratch)
    for package in (newer.name, place.package.name):  # and back: --allow-downgrades
        place.system.apt("install", "--allow-downgrades", f"/root/{package}")
        if place.path(SETTINGS).read_text() != changed:
            raise Failed(f"the installation of {package} changed {SETTINGS}")
    with serving(place) as call:
        return f"keeps changed settings; serves {', '.join(model['name'] for model in call('models')['models'])}"


def remove(place: Place) -> str:
    """Settings stay, and whether the service is enabled, as for any package that is removed and may come back."""
    place.system.apt("remove", "attendant")
    left = named(place)
    other = [path for path in left - {"etc/attendant", SETTINGS, LINK} if not path.startswith(ENABLED)]
    if other or SETTINGS not in left:
        raise Failed(f"expected {SETTINGS} to stay; left are {sorted(left)}")
    return f"leaves {SETTINGS}"


def purge(place: Place) -> str:
    cache = place.path("var/cache/private/attendant")  # as systemd makes it with DynamicUser and CacheDirectory
    cache.mkdir(parents=True, exist_ok=True)
    (cache / "model").touch()
    place.path("var/cache/attendant").symlink_to("private/attendant")
    place.system.apt("purge", "attendant")
    left = named(place)
    if left or "Package: attendant\n" in place.path("var/lib/dpkg/status").read_text():
        raise Failed(f"left behind are {sorted(left) or 'an entry of dpkg'}")
    return "leaves nothing"


CHECKS = [("is installed without a compiler", install), ("first answer", first_answer), ("real model", real_model),
          ("completion", completion), ("upgrade", upgrade), ("removal", remove), ("purge", purge)]
