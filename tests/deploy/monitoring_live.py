"""Real servers, a load on them, and a real Prometheus that scrapes them with the shipped rules."""
import contextlib
import hashlib
import json
import math
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import yaml

from monitoring_files import FOLDER, Failed, dashboard_queries, dashboard_variables, run
from ports import free_port

LOAD_SECONDS = 8
RATE_INTERVAL = "5s"  # of scrapes that are a second apart
WAIT_SECONDS = 60
# What has to fire at once in a run that breaks a token file and a version, and what such a run has no reason for.
FIRING = {"AttendantReloadFailed", "AttendantModelRefused"}
WRONG = {"AttendantDown", "AttendantNotReady", "AttendantRestarting", "AttendantStalled"}


@contextlib.contextmanager
def process(command: list, log: pathlib.Path):
    """Runs a process, whose output goes to `log`, and ends it on leaving."""
    with open(log, "w", encoding="utf-8") as output:
        running = subprocess.Popen([str(part) for part in command], stdout=output, stderr=subprocess.STDOUT)
    try:
        yield running
    finally:
        running.send_signal(signal.SIGTERM)
        try:
            running.wait(timeout=30)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()


def wait_for(condition, what: str, running: subprocess.Popen, log: pathlib.Path):
    """Polls until `condition` returns something true, which it returns, or the process ends."""
    end = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < end and running.poll() is None:
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            if result := condition():
                return result
        time.sleep(0.1)
    raise Failed(f"{what} did not happen: {log.read_text(encoding='utf-8')[-1500:]}")


class Server:
    """A server on 127.0.0.1 with its ports, and the flags by which attendant-client reaches it."""

    def __init__(self, work: pathlib.Path, name: str, client_flags: list):
        self.log, self.ports_file = work / f"{name}.log", work / f"{name}.ports"
        self.ports_file.unlink(missing_ok=True)
        self.client_flags = client_flags
        self.grpc = self.http = 0

    def command(self, program: pathlib.Path, flags: list) -> list:
        return [program, "--address", "127.0.0.1", "--port", "0", "--http-port", "0", "--port-file", self.ports_file, *flags]

    def await_ready(self, running: subprocess.Popen) -> None:
        wait_for(self.ports_file.exists, "the start of a server", running, self.log)
        ports = dict(line.split("=") for line in self.ports_file.read_text(encoding="utf-8").split())
        self.grpc, self.http = int(ports["grpc_port"]), int(ports["http_port"])

    def client(self, program: pathlib.Path, arguments: list) -> list:
        return [program, "--address", f"127.0.0.1:{self.grpc}", *self.client_flags, *arguments]


def make_secrets(work: pathlib.Path) -> list:
    """Writes a certificate of a week, tokens, and a version that cannot be served; returns the server's flags for them."""
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "7",
        "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", work / "tls.key", "-out", work / "tls.crt")
    lines = []
    for scope in ("infer", "metrics"):
        token = hashlib.sha256(f"{scope} of a test".encode()).hexdigest()
        (work / f"{scope}.token").write_text(token)
        lines.append(f"{scope} {hashlib.sha256(token.encode()).hexdigest()}")
    (work / "tokens").write_text("\n".join(lines) + "\n")
    broken = work / "models/broken/1"
    broken.mkdir(parents=True, exist_ok=True)
    (broken / "config.json").write_text("{}")
    return ["--tls-cert", work / "tls.crt", "--tls-key", work / "tls.key", "--token-file", work / "tokens",
            "--model-repository", work / "models", "--repository-poll", "200ms"]


def write_config(work: pathlib.Path, plain: Server, secured: Server) -> pathlib.Path:
    """The shipped configuration and rules, with a scrape each second, and the two servers."""
    config = yaml.safe_load((FOLDER / "prometheus.yaml").read_text())
    config["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(FOLDER / name) for name in config["rule_files"]]
    job = config["scrape_configs"][0]
    job["static_configs"] = [{"targets": [f"127.0.0.1:{plain.http}"]}]
    config["scrape_configs"].append({
        "job_name": "with-tls", "scheme": "https", "tls_config": {"ca_file": str(work / "tls.crt")},
        "authorization": {"credentials_file": str(work / "metrics.token")},
        "static_configs": [{"targets": [f"127.0.0.1:{secured.http}"]}],
        "relabel_configs": [{"target_label": "job", "replacement": job["job_name"]}]})
    path = work / "prometheus.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


class Prometheus:
    """A Prometheus at `port`."""

    def __init__(self, port: int):
        self._base = f"http://127.0.0.1:{port}"

    def ready(self) -> bool:
        with urllib.request.urlopen(self._base + "/-/ready", timeout=5) as answer:
            return answer.status == 200

    def ask(self, path: str, **parameters) -> object:
        url = f"{self._base}/api/v1/{path}?{urllib.parse.urlencode(parameters, doseq=True)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise Failed(json.load(error)["error"]) from error

    def value(self, expression: str) -> float:
        """The first value of an expression now, 0 without any."""
        found = self.ask("query", query=expression)["result"]
        return float(found[0]["value"][1]) if found else 0

    def numbers(self, expression: str, begin: float, end: float) -> int:
        """How many finite values the expression has between two times, at steps of a second."""
        series = self.ask("query_range", query=expression, start=begin, end=end, step="1")["result"]
        return sum(math.isfinite(float(value)) for one in series for _, value in one["values"])


def substitute(expression: str, chosen: dict) -> str:
    """Fills in the variables of the dashboard as Grafana does: several values as alternatives of a regular expression."""
    for name, values in chosen.items():
        expression = expression.replace(f"${name}", values)
    expression = expression.replace("$__rate_interval", RATE_INTERVAL).replace("$__range", f"{LOAD_SECONDS}s")
    if left := re.findall(r"\$\w+", expression):
        raise Failed(f"unknown variable {left[0]}")
    return expression


def put_load(client: pathlib.Path, plain: Server, secured: Server, work: pathlib.Path) -> None:
    """For some seconds: answered calls of both methods, streams, too many calls, too short deadlines, wrong calls, calls
    without a token, and too many connections."""
    def load(server: Server, *arguments, deadline: str = "1m") -> list:
        return server.client(client, ["--deadline", deadline, "load-test", "--duration", f"{LOAD_SECONDS}s", "--warmup", "0",
                                      *arguments])

    commands = [
        load(plain, "--model", "tiny", "--rate", "50", "--batch", "4", "--padded", "--lengths", "4..32", "--pooled"),
        load(plain, "--model", "tiny", "--rate", "20", "--method", "attend"),
        load(plain, "--model", "tiny", "--concurrency", "2", "--stream", "--batch", "8"),
        load(plain, "--model", "large", "--concurrency", "24", "--lengths", "256"),
        load(plain, "--model", "large", "--rate", "20", "--lengths", "256", deadline="2ms"),
        load(secured, "--rate", "50", "--batch", "2", "--padded", "--lengths", "4..32"),
    ]
    logs = [open(work / f"load-{index}.log", "w", encoding="utf-8") for index in range(len(commands))]
    loads = [subprocess.Popen([str(part) for part in command], stdout=log, stderr=subprocess.STDOUT)
             for command, log in zip(commands, logs)]
    try:
        while any(one.poll() is None for one in loads):
            for command in ([client, "--address", f"127.0.0.1:{secured.grpc}", "--tls-ca", work / "tls.crt", "models"],
                            plain.client(client, ["models", "nobody"])):
                subprocess.run([str(part) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               timeout=30, check=False)
            with contextlib.ExitStack() as connections:
                for _ in range(24):
                    connections.enter_context(socket.create_connection(("127.0.0.1", plain.grpc), timeout=10))
    finally:
        for one in loads:
            one.kill()
            one.wait()
        for log in logs:
            log.close()


def ask_dashboard(prometheus: Prometheus, begin: float, end: float) -> list:
    """Returns (what asks, numbers found) for each query of the dashboard, by its variables' "All" and by what they offer;
    the less of both."""
    chosen, rows = {}, []
    for name, selector, label in dashboard_variables():
        values = prometheus.ask(f"label/{label}/values", **{"match[]": substitute(selector, chosen)})
        rows.append((f"variable {name}", len(values), selector))
        chosen[name] = "(" + "|".join(re.escape(value).replace("\\", "\\\\") for value in values) + ")"
    for what, expression in dashboard_queries():
        counts = [prometheus.numbers(substitute(expression, choice), begin, end)
                  for choice in (chosen, dict.fromkeys(chosen, ".*"))]
        rows.append((what, min(counts), expression))
    return rows


def check_alerts(prometheus: Prometheus) -> str:
    alerts = prometheus.ask("alerts")["alerts"]
    names = {state: {alert["labels"]["alertname"] for alert in alerts if alert["state"] == state}
             for state in ("firing", "pending")}
    if not FIRING <= names["firing"] or (names["firing"] | names["pending"]) & WRONG:
        raise Failed(f"firing: {sorted(names['firing'])}, pending: {sorted(names['pending'])}")
    for alert in alerts:
        text = " ".join(alert["annotations"].values())
        if "<no value>" in text or "error expanding" in text or "{{" in text:
            raise Failed(f"{alert['labels']['alertname']}: {text}")
    for rule in (rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]):
        if rule["health"] != "ok":
            raise Failed(f"{rule['name']}: {rule.get('lastError')}")
    return f"firing: {', '.join(sorted(names['firing']))}; pending: {', '.join(sorted(names['pending']))}"


def scrape(server: Server, work: pathlib.Path, secured: bool) -> str:
    request = urllib.request.Request(f"{'https' if secured else 'http'}://127.0.0.1:{server.http}/metrics")
    if secured:
        request.add_header("Authorization", "Bearer " + (work / "metrics.token").read_text())
    context = ssl.create_default_context(cafile=work / "tls.crt") if secured else None
    with urllib.request.urlopen(request, timeout=30, context=context) as answer:
        return answer.read().decode()


@contextlib.contextmanager
def loaded(bin_folder: pathlib.Path, work: pathlib.Path):
    """Starts servers and Prometheus and puts load on them. Yields Prometheus, when the load began and ended, and what the
    servers' /metrics say."""
    program, client = bin_folder / "attendant-server", bin_folder / "attendant-client"
    shutil.rmtree(work / "tsdb", ignore_errors=True)  # of an earlier run, whose servers would be missed
    plain = Server(work, "plain", [])
    secured = Server(work, "secured", ["--tls-ca", work / "tls.crt", "--token-file", work / "infer.token"])
    flags = ["--model", "tiny=synthetic:tiny", "--model", "large=synthetic:minilm-l6", "--max-inflight", "16",
             "--max-queue-requests", "8", "--max-connections-per-address", "16", "--cache-bytes", "1048576"]
    with contextlib.ExitStack() as stack:
        for server, more in ((plain, flags), (secured, ["--model", "tiny=synthetic:tiny", *make_secrets(work)])):
            server.await_ready(stack.enter_context(process(server.command(program, more), server.log)))
        port, log = free_port(), work / "prometheus.log"
        running = stack.enter_context(process(
            ["prometheus", f"--config.file={write_config(work, plain, secured)}", f"--web.listen-address=127.0.0.1:{port}",
             f"--storage.tsdb.path={work / 'tsdb'}"], log))
        prometheus = Prometheus(port)
        wait_for(prometheus.ready, "the start of Prometheus", running, log)
        wait_for(lambda: prometheus.value("sum(up)") == 2, "a scrape of both servers", running, log)
        with open(work / "tokens", "a", encoding="utf-8") as tokens:
            tokens.write("not a token\n")  # which leaves the old ones in use
        begin = time.time()
        put_load(client, plain, secured, work)
        end = time.time()
        wait_for(lambda: prometheus.value("min(timestamp(attendant_ready))") > end, "a scrape after the load", running, log)
        wait_for(lambda: prometheus.value('sum(attendant_reloads_total{result="failed"})'), "a failed reload", running, log)
        wait_for(lambda: prometheus.value('count(ALERTS{alertstate="firing"})') >= len(FIRING), "an alert", running, log)
        yield prometheus, begin, time.time(), scrape(plain, work, False) + scrape(secured, work, True)
