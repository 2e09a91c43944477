"""Runs what README.md shows against a server, and looks for the flags, files and links that it names.

    check_readme.py README BIN_FOLDER SCRATCH_FOLDER

Left out: what needs a network, Docker, a checkpoint or an hour.
"""
import contextlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

README, BIN, SCRATCH = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
ROOT = README.parent
TEXT = README.read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.M | re.S)
# The models that README's commands name, without their files.
STAND_INS = ["--model", "minilm=synthetic:minilm-l6", "--model", "m=synthetic:tiny"]


def blocks(language: str) -> list:
    return [body for name, body in BLOCKS if name == language]


def run(arguments: list, **options) -> str:
    print("+", shlex.join(map(str, arguments)), flush=True)
    done = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, **options)
    print(done.stdout)
    if done.returncode != 0:
        sys.exit(f"exit code {done.returncode}")
    return done.stdout


@contextlib.contextmanager
def server(flags: list):
    """Its gRPC address."""
    ports = SCRATCH / "ports"
    ports.unlink(missing_ok=True)
    process = subprocess.Popen([BIN / "attendant-server", *flags, "--address", "127.0.0.1", "--port", "0",
                                "--http-port", "0", "--port-file", ports], stderr=subprocess.PIPE, text=True)
    try:
        while not ports.exists():  # each turn waits for a line of the log, whose end is the server's
            if not process.stderr.readline():
                sys.exit("the server did not start")
        yield "127.0.0.1:" + dict(line.split("=") for line in ports.read_text().split())["grpc_port"]
    finally:
        process.terminate()
        process.communicate(timeout=60)


def client_commands() -> list:
    """The arguments of each attendant-client line that runs as it stands."""
    lines = [shlex.split(line, comments=True) for body in blocks("sh") for line in body.splitlines()]
    return [words[1:] for words in lines if words and words[0] == "attendant-client"]


def describe_commands() -> list:
    """The attendant-server lines that end by themselves."""
    return [line for body in blocks("sh") for line in body.splitlines() if line.startswith("attendant-server --describe")]


def run_client(arguments: list, address: str) -> None:
    if arguments[0] == "load-test":  # shorter
        arguments = [*arguments, "--requests", "100", "--warmup", "0"]
    run([BIN / "attendant-client", *arguments, "--address", address])


def run_python(address: str) -> None:
    """What it prints is in its last line, a comment; "..." stands for further digits, and at the end for more."""
    (script,) = blocks("python")
    shown = script.rstrip().splitlines()[-1].removeprefix("# ")
    run(["protoc", f"--proto_path={ROOT / 'proto'}", f"--python_out={SCRATCH}", "attendant/v1/tensor.proto",
         "attendant/v1/encoder_service.proto"])
    printed = run([sys.executable, "-c", script.replace("localhost:8001", address)],
                  env=os.environ | {"PYTHONPATH": str(SCRATCH)})
    if not re.match(re.escape(shown).replace(r"\.\.\.", ".*"), printed):
        sys.exit(f"README shows: {shown}")


def check_names() -> None:
    helps = [run([BIN / "attendant-server", "--help"])]
    helps += [run([BIN / "attendant-client", command, "--help"])
              for command in ("attend", "put-memory", "drop-memory", "encode", "explain", "inspect", "models", "health", "load-test")]
    prose = re.sub(r"^```.*?^```$", "", TEXT, flags=re.M | re.S)
    flags = set(re.findall(r"`(--[a-z-]+)", prose))
    unknown = [flag for flag in flags if not any(re.search(flag + r"\b(?!-)", text) for text in helps)]
    programs = [line.split()[0] for body in blocks("sh") for line in body.splitlines() if re.match(r"(\w+/)+run\b", line)]
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", TEXT) if "://" not in link]
    missing = [path for path in links + programs if not (ROOT / path).exists()]
    if unknown or missing:
        sys.exit(f"README names flags {unknown} and files {missing} that are not there")
    for body in blocks("json"):
        json.loads(body)


def main() -> None:
    SCRATCH.mkdir(parents=True, exist_ok=True)
    check_names()
    for line in describe_commands():
        run(["bash", "-o", "pipefail", "-c", line], env=os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}"})
    commands = client_commands()
    with server([]) as address:
        run_python(address)
        for arguments in commands:
            if "--model" not in arguments:
                run_client(arguments, address)
    with server(STAND_INS) as address:
        for arguments in commands:
            if "--model" in arguments:
                run_client(arguments, address)


main()
