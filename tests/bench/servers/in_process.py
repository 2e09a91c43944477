"""sentence-transformers in the caller's own process: the floor, for it has no server to pay for.

A thread encodes everything that waits, up to 32 texts in one call ("Computing Embeddings"), which sorts them by length. Its
batches are of 4: of 1, 4, 8 and 32, which is the default, that was the fastest on two cores, since batches are padded."""
import asyncio
import queue
import threading

from contender import Contender

MOST_TEXTS, BATCH_SIZE = 32, 4


class SentenceTransformers(Contender):
    name = "sentence-transformers"
    serves = False
    caller = "floor"
    settings = "in process, torch; what waits is encoded in one call, in batches of 4"

    async def connect(self, port: int) -> None:
        import torch
        from sentence_transformers import SentenceTransformer
        torch.set_num_threads(self.place.threads)
        self._model = SentenceTransformer(str(self.place.checkpoint), device="cpu")
        self._waiting = queue.SimpleQueue()
        threading.Thread(target=self._run, daemon=True).start()

    def encode(self, texts: list):
        return self._model.encode(texts, batch_size=BATCH_SIZE, show_progress_bar=False)

    def _run(self) -> None:
        while True:
            taken = [self._waiting.get()]
            while len(taken) < MOST_TEXTS and not self._waiting.empty():
                taken.append(self._waiting.get())
            for (_, loop, future), vector in zip(taken, self.encode([text for text, _, _ in taken])):
                loop.call_soon_threadsafe(future.set_result, vector)

    async def embed(self, text: str):
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._waiting.put((text, loop, future))
        return await future

    async def close(self) -> None:
        """The thread ends with the process."""

    def installed(self) -> list:
        return [self.place.site_packages("floor"), self.place.checkpoint / "model.safetensors"]
