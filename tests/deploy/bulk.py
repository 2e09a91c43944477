"""Embeds a data set with client/examples/spark by two replicas, and compares every row with a direct call; once more while a
replica is killed."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

from server_process import NotMeasured, Server

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "client" / "examples" / "spark"
SENTENCES = ROOT / "tests" / "families" / "sentences.jsonl"
GET_CHECKPOINTS = ROOT / "tests" / "families" / "get_checkpoints"
ROWS, PARTITIONS, JOB_SECONDS = 3000, 12, 300
KILLED_AFTER = 20  # requests that the replica has answered; it gets three times as many in a job


def run(*command, **options) -> str:
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, **options)
    if done.returncode != 0:
        raise NotMeasured(f"{pathlib.Path(command[0]).name}: {(done.stderr.strip().splitlines() or ['no reason was given'])[-1][:300]}")
    return done.stdout


def environment(work: pathlib.Path) -> pathlib.Path:
    """Installs PySpark and the Python client, and returns their folder of programs."""
    venv, wanted = work / "venv", EXAMPLE / "requirements.txt"
    installed = venv / "installed.txt"
    if not installed.exists() or installed.read_text() != wanted.read_text():
        shutil.rmtree(venv, ignore_errors=True)
        run(sys.executable, "-m", "venv", venv)
        run(venv / "bin/pip", "install", "-q", "-r", wanted, "-e", ROOT / "client" / "python")
        installed.write_text(wanted.read_text())
    return venv / "bin"


def write_rows(path: pathlib.Path) -> None:
    sentences = [json.loads(line)["text"] for line in SENTENCES.read_text(encoding="utf-8").splitlines()]
    with open(path, "w", encoding="utf-8") as file:
        for number in range(ROWS):
            text = sentences[number % len(sentences)]
            file.write(json.dumps({"id": 7 * number, "text": f"{number}: {text}"}) + "\n")


class Job:
    """spark-submit of the example, on the cores of this machine; a task may fail three times."""

    def __init__(self, programs: pathlib.Path, work: pathlib.Path, servers: list):
        self.output = work / "vectors"
        target = "ipv4:" + ",".join(server.address for server in servers)
        self._log = work / "spark.log"
        with open(self._log, "w", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                [programs / "spark-submit", "--master", "local[2,4]", EXAMPLE / "embed.py", "--target", target, "--model", "minilm",
                 "--format", "json", "--partitions", str(PARTITIONS), work / "texts.json", self.output],
                stdout=subprocess.PIPE, stderr=log, text=True, cwd=work,
                env={**os.environ, "PYSPARK_PYTHON": str(programs / "python"), "SPARK_LOCAL_IP": "127.0.0.1",
                     "SPARK_LOCAL_HOSTNAME": "localhost", "PYTHONDONTWRITEBYTECODE": "1"})

    def running(self) -> bool:
        return self._process.poll() is None

    def rows_per_s(self) -> float:
        """Waits for the end."""
        try:
            out, _ = self._process.communicate(timeout=JOB_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise NotMeasured(f"the job did not end in {JOB_SECONDS} s") from None
        found = re.search(r"^(\d+) rows in ([\d.]+) s$", out, re.M)
        if self._process.returncode != 0 or not found:
            told = [line for line in self._log.read_text(encoding="utf-8").splitlines() if "Error" in line or "Exception" in line]
            raise NotMeasured(f"exit code {self._process.returncode}: {(told or ['without a word'])[-1][:300]}")
        return int(found[1]) / float(found[2])

    def retried(self) -> int:
        """Tasks that were lost, and run again."""
        return self._log.read_text(encoding="utf-8").count("Lost task")


def compare(programs: pathlib.Path, work: pathlib.Path, job: Job, server: Server) -> str:
    """Compares each row with a direct call, and returns what is wrong."""
    found = json.loads(run(programs / "python", pathlib.Path(__file__).with_name("bulk_rows.py"), work / "texts.json", job.output,
                           server.address))
    return ", ".join(f"{count} rows {what}" for what, count in found.items() if count)


def answered(server: Server) -> int:
    """Requests for vectors, alone and as items of streams."""
    return int(sum(server.metric("attendant_requests_total", method=method) for method in ("Encode", "EncodeStream")))


def undisturbed(programs: pathlib.Path, work: pathlib.Path, servers: list) -> tuple:
    job = Job(programs, work, servers)
    rate = job.rows_per_s()
    shares = [answered(server) for server in servers]
    wrong = compare(programs, work, job, servers[0])
    if min(shares) < max(shares) / 4:
        wrong = wrong or f"the replicas answered {shares} requests"
    return rate, wrong or f"{ROWS} rows, the same bits as a direct call; replicas answered {shares}", not wrong


def with_a_kill(programs: pathlib.Path, work: pathlib.Path, servers: list) -> tuple:
    before = answered(servers[1])
    job = Job(programs, work, servers)
    while job.running() and answered(servers[1]) < before + KILLED_AFTER:
        time.sleep(0.01)
    if not job.running():
        raise NotMeasured("the job ended before the replica could be killed")
    servers[1].kill()
    rate = job.rows_per_s()
    wrong = compare(programs, work, job, servers[0])
    return rate, wrong or f"{ROWS} rows, each once; {job.retried()} tasks were run again", not wrong


def check(bin_folder: pathlib.Path, work: pathlib.Path) -> dict:
    """Returns {"figures": {name: number}, "rows": [(what, "passed" | "failed" | "not run", details)]}."""
    work.mkdir(parents=True, exist_ok=True)
    figures, rows = {}, []
    try:
        if shutil.which("java") is None:
            raise NotMeasured("java: not installed")
        programs = environment(work)
        model = run(GET_CHECKPOINTS).strip()
    except NotMeasured as error:
        return {"figures": figures, "rows": [("PySpark over two replicas", "not run", str(error))]}
    write_rows(work / "texts.json")
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(Server(bin_folder / "attendant-server", "--model", f"minilm={model}")) for _ in range(2)]
        for what, measure in (("PySpark over two replicas", undisturbed), ("PySpark, a replica killed midway", with_a_kill)):
            try:
                rate, details, good = measure(programs, work, servers)
            except NotMeasured as error:
                rows.append((what, "failed", str(error)))
                continue
            rows.append((what, "passed" if good else "failed", f"{details}; {rate:.0f} rows/s"))
            if measure is undisturbed:
                figures["bulk.rows_per_s"] = rate
    return {"figures": figures, "rows": rows}
