"""Attendant, called through its Python package."""
import re
import subprocess

from contender import MODEL_NAME, Contender


class Attendant(Contender):
    name = "attendant"
    settings = "as it comes, f32; texts, gRPC"

    def command(self, port: int) -> list:
        return [self.place.programs / "attendant-server", "--model", f"{MODEL_NAME}={self.place.checkpoint}",
                "--address", "127.0.0.1", "--port", str(port), "--http-port", "0"]

    async def connect(self, port: int) -> None:
        from attendant_client.aio import AsyncClient
        from attendant_client.text import AsyncTextModel
        self._client = AsyncClient(f"127.0.0.1:{port}")
        self._model = AsyncTextModel(self._client, MODEL_NAME)

    async def embed(self, text: str):
        return await self._model.embed(text)

    async def close(self) -> None:
        await self._client.close()

    def installed(self) -> list:
        program = self.place.programs / "attendant-server"
        listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        return [program, self.place.checkpoint / "model.safetensors", *re.findall(r"=> (/\S+)", listed)]
