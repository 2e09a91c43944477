"""A server that is called over HTTP: by http_load in the loops, and by aiohttp to compare its answers."""
import abc
import json

import numpy as np

from contender import Contender


class OverHttp(Contender):
    path = ""

    @abc.abstractmethod
    def body(self, text: str) -> dict:
        """The request to embed a text, as JSON."""

    @abc.abstractmethod
    def vector(self, content: bytes, headers) -> np.ndarray:
        """Reads the vector [E] from an answer."""

    def request(self, text: str) -> str:
        """The whole request, head and body."""
        body = json.dumps(self.body(text))  # ASCII
        return (f"POST {self.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n{body}")

    async def connect(self, port: int) -> None:
        import aiohttp
        self._session = aiohttp.ClientSession(f"http://127.0.0.1:{port}", connector=aiohttp.TCPConnector(limit=0))

    async def post(self, path: str, body: dict) -> tuple:
        """Returns the content and the headers of an answer."""
        async with self._session.post(path, json=body) as answer:
            content = await answer.read()
            if answer.status != 200:
                raise RuntimeError(f"status {answer.status}: {content[:200]!r}")
            return content, answer.headers

    async def embed(self, text: str):
        return self.vector(*await self.post(self.path, self.body(text)))

    async def close(self) -> None:
        await self._session.close()
