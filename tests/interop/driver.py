#!/usr/bin/env python3
"""Starts the server, calls it with stock clients, and prints a table of what they found; see `run`."""
import argparse
import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import sys

import grpc
import numpy as np
from machine import cpu_name
from server_process import NotMeasured, Server

import expected
import heads
import languages
import malformed
import proxy
import speed
import text_kinds
from outcome import FAILED, NOT_RUN, PASSED, Outcome, Row

HERE = pathlib.Path(__file__).parent
SYSTEM = "system"  # Debian's Python
GROUPS = ("clients", "proxy", "conformance", "malformed", "languages", "texts", "speed")
ROUNDS = {"python.overhead": (7, 100), "oip_over_native": (15, 60), "texts": 5}


@dataclasses.dataclass(frozen=True)
class Client:
    name: str  # its first word is the client's, the rest is one of its interfaces
    script: str
    environment: str = SYSTEM
    needs: tuple = ()  # what else has to be installed


CLIENTS = (
    Client("tritonclient grpc", "tritonclient_grpc.py", "triton"),
    Client("tritonclient grpc.aio", "tritonclient_aio.py", "triton"),
    Client("tritonclient http", "tritonclient_http.py", "triton"),
    Client("perf_analyzer", "perf_analyzer.py", needs=("perf_analyzer",)),
    Client("kserve grpc", "kserve_grpc.py", "kserve"),
    Client("kserve REST", "kserve_rest.py", "kserve"),
    Client("ghz", "ghz.py", needs=("ghz", "grpcurl")),
    Client("grpcurl", "grpcurl.py", needs=("grpcurl",)),
    Client("grpc-health-probe", "grpc_health_probe.py", needs=("grpc-health-probe",)),
    Client("openai", "openai_embeddings.py", "web"),
    Client("openai AzureOpenAI", "azure.py", "web"),
    Client("huggingface_hub (text-embeddings-inference)", "tei.py", "web"),
    Client("cohere", "cohere_clients.py", "web"),
    Client("LangChain OpenAIEmbeddings", "langchain_embeddings.py", "web"),
    Client("LlamaIndex TextEmbeddingsInference", "llama_index_tei.py", "web"),
    Client("ollama", "ollama_python.py", "web"),
    Client("ollama.js", "ollama_js.py", needs=("npm",)),
    Client("JavaScript (openai, ai, cohere-ai, voyageai, huggingface)", "javascript.py", needs=("npm",)),
    Client("LangChain OllamaEmbeddings", "langchain_of_ollama.py", "web"),
    Client("LlamaIndex OllamaEmbedding", "llama_index_ollama.py", "web"),
    Client("Jina's requests", "jina.py", "web"),
    Client("voyageai", "voyage.py", "web"),
    Client("LiteLLM", "litellm_proxy.py", "web"),
    Client("Haystack", "haystack_components.py", "haystack"),
    Client("grpcio with reflection", "reflection.py", "reflection"),
    Client("curl REST", "curl.py"),
    Client("curl texts", "curl_texts.py"),
)


class Workplace:
    """What `run` has installed, and the programs."""

    def __init__(self, programs: pathlib.Path, work: pathlib.Path, minilm: pathlib.Path | None):
        self.work, self.checkpoint = work, minilm
        self.server, self.client = programs / "attendant-server", programs / "attendant-client"

    def missing(self, *names: str) -> str:
        """Why one of these could not be installed; empty: they are there."""
        for name in names:
            log = self.work / "errors" / f"{name}.log"
            if log.exists():
                lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or ["no reason was given"]
                return f"{name} could not be installed: {lines[-1][:400]}"
        return ""

    def python(self, environment: str) -> pathlib.Path:
        if environment == SYSTEM:
            return pathlib.Path("/usr/bin/python3")
        return self.work / "venvs" / environment / "bin" / "python"

    def script(self, environment: str, script: pathlib.Path, options: dict, timeout: float, **variables: str) -> dict:
        """Runs a script in its environment, and returns the JSON document that it prints last."""
        plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        done = subprocess.run([self.python(environment), script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=timeout, check=False, env={**plain, "INTEROP": json.dumps(options), **variables})
        lines = done.stdout.strip().splitlines()
        if done.returncode != 0 or not lines:
            raise NotMeasured(f"{script.name}: exit code {done.returncode}: {done.stderr.strip()[-300:]}")
        return json.loads(lines[-1])

    def serve(self, *models: str, flags: tuple = ()) -> Server:
        return Server(self.server, *(word for model in models for word in ("--model", model)), *flags)


def call_clients(place: Workplace, server: Server, outcome: Outcome) -> None:
    options = {"grpc": server.address, "http": f"127.0.0.1:{server.http_port}", "expected": str(expected.file(server)),
               "programs": str(place.work / "go"), "npm": str(place.work / "npm/node_modules"), "cuda": str(place.work / "perf_analyzer/nvidia/cuda_runtime/lib"),
               "perf_analyzer": str(place.work / "perf_analyzer/tritonclient-2.48.0.data/data/bin/perf_analyzer")}
    for client in CLIENTS:
        outcome.rows.append(call(place, client, options))
        print(f"  {client.name}: {outcome.rows[-1].status}", file=sys.stderr, flush=True)
    outcome.count_clients()


def call(place: Workplace, client: Client, options: dict) -> Row:
    if why := place.missing(*client.needs, client.environment):
        return Row(client.name, "", [], NOT_RUN, why)
    try:
        made = place.script(client.environment, HERE / "clients" / client.script, options, timeout=180)
    except (NotMeasured, subprocess.SubprocessError, ValueError) as error:
        return Row(client.name, "", [], FAILED, str(error))
    return Row(client.name, **made)


def check_proxy(_: Workplace, server: Server, outcome: Outcome) -> None:
    with np.load(expected.file(server)) as known:
        text, vector = str(known["texts"][0]), known["normalized"][0]
    outcome.rows.append(Row("HAProxy, idle connections", **proxy.check(server.folder, f"127.0.0.1:{server.http_port}", text, vector),
                            kind="proxy"))


def check_conformance(place: Workplace, server: Server, outcome: Outcome) -> None:
    if why := place.missing("triton"):
        raise NotMeasured(why)
    with place.serve("l6=synthetic:minilm-l6") as draining:
        options = {"grpc": server.address, "draining": draining.address, "draining_pid": draining.pid,
                   "draining_http": f"127.0.0.1:{draining.http_port}"}
        made = place.script("triton", HERE / "conformance.py", options, timeout=300)
    for row in made["rows"]:
        outcome.rows.append(Row(row["case"], made["version"], [], row["status"], row["detail"], kind="case"))
    outcome.figures["conformance.passed"] = len(outcome.of("case", PASSED))


def check_malformed(place: Workplace, _: Server, outcome: Outcome) -> None:
    with place.serve("l6=synthetic:minilm-l6") as server:
        for name, check in (("grpc", malformed.over_grpc), ("rest", malformed.over_rest)):
            found = check(server)
            checked = [f"{found.sent} requests, growth {found.growth_mib:.1f} MiB"]
            outcome.rows.append(Row(f"malformed, over {name}", "", checked, FAILED if found.wrong else PASSED,
                                    "; ".join(found.wrong)[:800], kind="malformed"))
            outcome.figures[f"malformed.{name}_growth_mib"] = max(found.growth_mib, 0.0)
            outcome.figures["malformed.accepted"] = outcome.figures.get("malformed.accepted", 0) + len(found.wrong)


def call_languages(place: Workplace, _: Server, outcome: Outcome) -> None:
    with place.serve("worked-example=worked-example", "tiny=synthetic:tiny", f"minilm={place.checkpoint}") as shown:
        for row in languages.run(shown.address, place.work):
            outcome.rows.append(Row(**row, kind="language"))
    outcome.figures["languages.passed"] = len(outcome.of("language", PASSED))


def compare_texts(place: Workplace, _: Server, outcome: Outcome) -> None:
    if why := place.missing("texts"):
        raise NotMeasured(why)
    models = heads.make(place.checkpoint, place.work / "heads")
    models["minilm"] = heads.prompted(place.checkpoint, place.work / "prompted", {"query": text_kinds.PROMPT})
    models = {name: str(folder) for name, folder in models.items()}
    with place.serve(*(f"{name}={folder}" for name, folder in models.items())) as server:
        options = {"grpc": server.address, "http": f"127.0.0.1:{server.http_port}", "models": models,
                   "threads": len(os.sched_getaffinity(0)), "rounds": ROUNDS["texts"]}
        made = place.script("texts", HERE / "texts.py", options, timeout=900, HF_HUB_OFFLINE="1")
    checked = [f"{kind}: lowest cosine {cosine:.12f}" for kind, cosine in made["cosines"].items()]
    checked += [f"{kind}: largest difference {most:.1g}" for kind, most in made["scores"].items()]
    outcome.rows.append(Row("sentence-transformers", made["version"], checked, FAILED if made["differing"] else PASSED,
                            "; ".join(made["differing"]), kind="texts"))
    outcome.figures.update(made["figures"])
    outcome.spreads["python.text_over_sentence_transformers"] = made["spread"]


def measure_speed(place: Workplace, server: Server, outcome: Outcome) -> None:
    rounds = {"python.overhead": speed.overhead_of_python(place.client, server.address, *ROUNDS["python.overhead"]),
              "oip_over_native": speed.oip_over_native(server.address, *ROUNDS["oip_over_native"])}
    for name, ratios in rounds.items():
        outcome.figures[name] = statistics.median(ratios)
        outcome.spreads[name] = [min(ratios), max(ratios)]


MEASURES = dict(zip(GROUPS, (call_clients, check_proxy, check_conformance, check_malformed, call_languages, compare_texts,
                             measure_speed)))


def measure(place: Workplace, groups: list) -> Outcome:
    outcome = Outcome(machine={"cpu": cpu_name(), "cpus": len(os.sched_getaffinity(0))})
    if why := place.missing("checkpoints"):
        raise NotMeasured(f"the real MiniLM: {why}")
    made = (f"{name}={folder}" for name, folder in heads.make(place.checkpoint, place.work / "heads").items())
    with place.serve(f"minilm={place.checkpoint}", "l6=synthetic:minilm-l6", *made,
                     flags=("--alias", "text-embedding-3-small=minilm")) as server:
        for group in groups:
            print(f"{group}:", file=sys.stderr, flush=True)
            try:
                MEASURES[group](place, server, outcome)
            except (NotMeasured, OSError, ValueError, subprocess.SubprocessError, grpc.RpcError) as error:
                outcome.failures[group] = f"{type(error).__name__}: {error}"
    return outcome


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="where the server and the client are")
    parser.add_argument("--work", type=pathlib.Path, required=True, help="where `run` has installed what is needed")
    parser.add_argument("--minilm", type=pathlib.Path, help="the folder of the real one, if it could be had")
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=GROUPS)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    try:
        outcome = measure(Workplace(options.bin, options.work, options.minilm), options.only)
    except NotMeasured as error:
        sys.exit(f"error: {error}")
    print(outcome.table())
    if options.json:
        options.json.write_text(json.dumps(outcome.to_json(), indent=2) + "\n", encoding="utf-8")
    sys.exit(1 if outcome.broken() else 0)


if __name__ == "__main__":
    main()
