"""Runs the image as a hardened container: its own user, a read-only root, no capabilities, no new privileges."""
import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import time
import urllib.request


class Failed(Exception):
    """Says what was expected, and what was found."""


@dataclasses.dataclass
class Place:
    """An unpacked image with its configuration, and where the files of its runs go."""
    root: pathlib.Path
    configuration: dict
    bin_folder: pathlib.Path
    work: pathlib.Path


@dataclasses.dataclass
class Container:
    name: str
    process: subprocess.Popen
    ports: dict
    log: pathlib.Path


MODELS = "/models"


def specification(place: Place, arguments: list, models: pathlib.Path, ports: pathlib.Path, cpus: float) -> dict:
    """What a container host makes of the image's configuration, beside `--read-only --cap-drop ALL`."""
    inner = place.configuration["config"]
    uid, gid = map(int, inner["User"].split(":"))
    namespaces = [{"type": kind} for kind in ("pid", "ipc", "uts", "mount")]  # on the network of this machine
    made = {
        "ociVersion": "1.0.2",
        "process": {"terminal": False, "user": {"uid": uid, "gid": gid}, "args": [*inner["Entrypoint"], *arguments],
                    "env": inner["Env"], "cwd": inner["WorkingDir"], "noNewPrivileges": True,
                    "capabilities": {kind: [] for kind in ("bounding", "effective", "inheritable", "permitted", "ambient")}},
        "root": {"path": str(place.root), "readonly": True},
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/sys", "type": "none", "source": "/sys", "options": ["rbind", "ro", "nosuid", "noexec", "nodev"]},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "strictatime", "mode=755", "size=65536k"]},
            {"destination": MODELS, "type": "none", "source": str(models), "options": ["rbind", "ro"]},
            {"destination": "/tmp", "type": "none", "source": str(ports), "options": ["rbind", "rw"]}],
        "linux": {"namespaces": namespaces, "maskedPaths": ["/proc/kcore", "/proc/keys"], "readonlyPaths": ["/proc/sys"]}}
    if cpus:
        made["linux"]["resources"] = {"cpu": {"quota": int(cpus * 100000), "period": 100000}}
    return made


@contextlib.contextmanager
def running(place: Place, *flags: str, models: pathlib.Path = None, cpus: float = 0):
    """Runs the server in a container until it is ready; ends it by SIGTERM, which has to have exit code 0."""
    name = f"attendant-test-{os.getpid()}"
    bundle = place.work / "bundle"
    ports = place.work / "ports"
    for folder in (bundle, ports):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    ports.chmod(0o777)
    empty = place.work / "empty"
    empty.mkdir(exist_ok=True)
    arguments = ["--address", "127.0.0.1", "--port", "0", "--http-port", "0", "--port-file", "/tmp/ports", *flags]
    (bundle / "config.json").write_text(json.dumps(specification(place, arguments, models or empty, ports, cpus)))
    log = place.work / "container.log"
    with log.open("w", encoding="utf-8") as messages:
        process = subprocess.Popen(["runc", "run", "--bundle", str(bundle), name], stdout=messages, stderr=messages)
    try:
        deadline = time.monotonic() + 60
        while not (ports / "ports").exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise Failed(f"the container did not start: {log.read_text()[-500:]}")
            time.sleep(0.05)
        yield Container(name, process, dict(line.split("=") for line in (ports / "ports").read_text().split()), log)
        subprocess.run(["runc", "kill", name, "TERM"], check=True)
        code = process.wait(60)
        if code != 0:
            raise Failed(f"exit code {code} after SIGTERM: {log.read_text()[-500:]}")
    finally:
        if process.poll() is None:
            subprocess.run(["runc", "kill", name, "KILL"], check=False)
            process.wait(60)


def call(place: Place, container: Container, *arguments: str) -> str:
    """What attendant-client, outside the container, prints."""
    return subprocess.run([str(place.bin_folder / "attendant-client"), *arguments, "--address",
                           f"127.0.0.1:{container.ports['grpc_port']}"],
                          check=True, stdout=subprocess.PIPE, text=True, timeout=120).stdout


def server_state(container: Container) -> dict:
    """The lines of /proc/PID/status of the process in the container."""
    pid = json.loads(subprocess.run(["runc", "state", container.name], check=True, stdout=subprocess.PIPE).stdout)["pid"]
    return dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)


def check_confined(place: Place) -> str:
    with running(place) as container:
        state = server_state(container)
        if state["Uid"].split() != ["65532"] * 4:
            raise Failed(f"runs as {state['Uid']}")
        if int(state["CapEff"], 16) or int(state["CapBnd"], 16) or state["NoNewPrivs"] != "1":
            raise Failed(f"capabilities {state['CapEff']}, bounding {state['CapBnd']}, NoNewPrivs {state['NoNewPrivs']}")
        call(place, container, "attend", "--values", "1,0,1,0;0,2,0,2;1,1,1,1")
    return "uid 65532, no capabilities, read-only root; answers; ends with 0 after SIGTERM"


def check_health(place: Place) -> str:
    """The command of HEALTHCHECK, inside the container, at the ports of this run."""
    test = place.configuration["config"]["Healthcheck"]["Test"][1:]
    with running(place) as container:
        inside = ["runc", "exec", container.name, *test, "--address", f"127.0.0.1:{container.ports['grpc_port']}"]
        printed = subprocess.run(inside, check=True, stdout=subprocess.PIPE, text=True, timeout=60).stdout.strip()
        wrong = subprocess.run([*inside[:-1], "127.0.0.1:1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        if printed != "SERVING" or wrong.returncode == 0:
            raise Failed(f"printed {printed!r}, and exit code {wrong.returncode} where nothing listens")
        ready = f"http://127.0.0.1:{container.ports['http_port']}/readyz"
        with urllib.request.urlopen(ready, timeout=30) as answer:
            return f"{printed}; /readyz {answer.status}"


def check_load(place: Place) -> str:
    with running(place, "--model", "m=synthetic:tiny") as container:
        report = json.loads(call(place, container, "load-test", "--model", "m", "--lengths", "5..40", "--duration", "2s", "--json"))
    step, = report["steps"]
    if step["errors"] or step["ok"] == 0:
        raise Failed(f"{step['ok']} answers, errors {step['errors']}")
    return f"{step['ok']} answers, no errors"


def check_models(place: Place) -> str:
    """A checkpoint folder below /models, by a name that is relative to it."""
    models = place.work / "models"
    shutil.rmtree(models, ignore_errors=True)
    script = "import pathlib, sys, bert; bert.write_checkpoint(pathlib.Path(sys.argv[1]), bert.SMALL)"
    tests = pathlib.Path(__file__).resolve().parents[2] / "client" / "python" / "tests"
    (models / "bert").mkdir(parents=True)
    subprocess.run(["/usr/bin/python3", "-c", script, str(models / "bert")], check=True, env=os.environ | {"PYTHONPATH": str(tests)})
    with running(place, "--model", "bert=bert", models=models) as container:
        call(place, container, "encode", "--model", "bert", "--token-ids", "2,3,4")
    return "serves a folder of /models"


def check_threads(place: Place) -> str:
    """Threads follow the quota of the container's cgroup."""
    with running(place, cpus=1) as container:
        plan = next(line for line in container.log.read_text().splitlines() if "thread plan" in line)
    if "; 1 CPUs available" not in plan and "; 1 CPU" not in plan:
        raise Failed(f"with a quota of one CPU: {plan}")
    return plan.split("thread plan: ")[1]


CHECKS = [("confined", check_confined), ("health check", check_health), ("load test", check_load),
          ("models", check_models), ("threads of the quota", check_threads)]
