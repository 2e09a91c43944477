"""Attendant, by OpenAI's API; and the price of text over HTTP: texts a second over the same as ids through gRPC."""
import json
import pathlib
import re
import subprocess

from contender import MODEL_NAME
from http_load import HttpLoad
from openai_api import OpenAi
from ports import free_port


class Attendant(OpenAi):
    name = "attendant"
    path = "/v1/embeddings"
    settings = "as it comes, f32; /v1/embeddings with base64"

    def command(self, port: int) -> list:
        self._grpc_port = free_port()
        return [self.place.programs / "attendant-server", "--model", f"{MODEL_NAME}={self.place.checkpoint}",
                "--address", "127.0.0.1", "--port", str(self._grpc_port), "--http-port", str(port)]

    async def text_over_ids(self, load: HttpLoad, ids: list, callers: int, seconds: float, rounds: int) -> list:
        """Returns the ratio of each round. `ids` are those of the texts of `load`. The sides take turns at going first, so
        that a machine whose speed changes favours neither."""
        file = self.folder / "ids.jsonl"
        file.write_text("".join(f"{one}\n" for one in ids), encoding="utf-8")
        ratios = []
        for turn in range(rounds):
            before = self._ids_a_second(file, callers, seconds) if turn % 2 else None
            from_texts = (await load.closed_loop(callers, seconds)).rate
            ratios.append(from_texts / (before or self._ids_a_second(file, callers, seconds)))
        return ratios

    def _ids_a_second(self, file: pathlib.Path, callers: int, seconds: float) -> float:
        command = [self.place.programs / "attendant-client", "load-test", "--address", f"127.0.0.1:{self._grpc_port}",
                   "--token-ids", "--ids-file", file, "--pooled", "--concurrency", callers, "--duration", f"{seconds:g}s",
                   "--json"]
        told = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True).stdout
        return json.loads(told)["steps"][0]["requests_per_s"]

    def installed(self) -> list:
        program = self.place.programs / "attendant-server"
        listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        return [program, self.place.checkpoint / "model.safetensors", *re.findall(r"=> (/\S+)", listed)]
