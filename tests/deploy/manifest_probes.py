"""Runs the server with the arguments of rendered pods, and asks it what their probes ask, as the kubelet does."""

import contextlib
import hashlib
import pathlib
import signal
import ssl
import subprocess
import time
import urllib.error
import urllib.request

# The kubelet checks no certificate either.
NO_CHECK = ssl._create_unverified_context()
PROBES = ("startupProbe", "readinessProbe", "livenessProbe")


def make_files(work: pathlib.Path) -> dict:
    """A certificate, its key and a list of tokens; returns the flags that name them."""
    key, certificate, tokens = work / "tls.key", work / "tls.crt", work / "tokens"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "1", "-subj", "/CN=attendant", "-keyout", key, "-out", certificate],
                   check=True, capture_output=True)
    tokens.write_text(f"infer {hashlib.sha256(b'token').hexdigest()}\n")
    return {"--tls-cert": certificate, "--tls-key": key, "--tls-client-ca": certificate, "--token-file": tokens}


def local_arguments(arguments: list, files: dict, port_file: pathlib.Path) -> list:
    """The same server, but on free ports, with files of this machine, and with the embedded model."""
    flags = [argument.split("=", 1) for argument in arguments]
    changed = {"--address": "127.0.0.1", "--port": 0, "--http-port": 0} | files
    return [f"{flag}={changed.get(flag, value)}" for flag, value in flags
            if flag not in ("--model", "--model-repository")] + [f"--port-file={port_file}"]


@contextlib.contextmanager
def running(server: pathlib.Path, arguments: list, port_file: pathlib.Path):
    """Yields the process and its ports by the names of the pod's."""
    port_file.unlink(missing_ok=True)
    process = subprocess.Popen([server, *arguments], stderr=subprocess.PIPE, text=True, env={})
    try:
        while not port_file.exists():  # each turn waits for a line of the log, which ends with the server
            if not process.stderr.readline():
                raise RuntimeError("the server did not start")
        ports = dict(line.split("=") for line in port_file.read_text().split())
        yield process, {"grpc": ports["grpc_port"], "http": ports["http_port"]}
    finally:
        process.kill()
        process.communicate()


def answers(probe: dict, client: pathlib.Path, ports: dict) -> bool:
    if "grpc" in probe:
        return subprocess.run([client, "health", "--address", f"127.0.0.1:{ports['grpc']}"], capture_output=True,
                              env={}).returncode == 0
    http = probe["httpGet"]
    url = f"{http.get('scheme', 'HTTP').lower()}://127.0.0.1:{ports['http']}{http['path']}"
    try:
        return urllib.request.urlopen(url, context=NO_CHECK, timeout=5).status == 200
    except (urllib.error.URLError, OSError):
        return False


def probe_problems(container: dict, binaries: pathlib.Path, work: pathlib.Path):
    """All probes have to succeed once the server is ready. After SIGTERM, in its lame duck, readiness has to fail, and
    liveness must not."""
    server, client = binaries / "attendant-server", binaries / "attendant-client"
    port_file = work / "ports"
    with running(server, local_arguments(container["args"], make_files(work), port_file), port_file) as (process, ports):
        yield from (f"{name} fails at a ready server" for name in PROBES if not answers(container[name], client, ports))
        if any("--tls-cert" in argument for argument in container["args"]) and answers({"grpc": {}}, client, ports):
            yield "a gRPC probe without TLS succeeds"  # then HTTPS would not be needed
        process.send_signal(signal.SIGTERM)
        end = time.monotonic() + 5
        while answers(container["readinessProbe"], client, ports):
            if time.monotonic() > end:
                return (yield "readinessProbe succeeds after SIGTERM")
        if not answers(container["livenessProbe"], client, ports):
            yield "livenessProbe fails in the lame duck"
        process.send_signal(signal.SIGTERM)  # the second ends it at once
