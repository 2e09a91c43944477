"""Measures one contender, in the environment of its caller, and prints one JSON document; see compare.py.

The same program, http_load, calls all servers: one process, one thread, one kept connection for each call under way. It shares
the machine's cores with the server, as it does for every contender. A library is called from an event loop of this process."""
import argparse
import asyncio
import functools
import json
import math
import pathlib
import signal
import statistics
import sys

import numpy as np

import texts as all_texts
from contender import Place
from contenders import CONTENDERS
from http_load import HttpLoad
from load import Load, closed_loop, open_loop
from own import Attendant
from process import NotRun, Running, disk_bytes, memory_bytes

CALLERS = (1, 8, 32)
SHARES = (0.5, 0.8)  # of the capacity, in open loops
LEAST_COSINE = 0.999
ROUNDS = 5  # of text.over_ids, whose loops are shorter by as much


def lowest_cosine(made: np.ndarray, known: np.ndarray) -> float:
    made, known = made.astype(np.float64), known.astype(np.float64)
    return float(((made * known).sum(axis=1) / np.linalg.norm(made, axis=1) / np.linalg.norm(known, axis=1)).min())


def _milliseconds(load: Load, share: float) -> float | None:
    """This percentile of the latency; None if so many calls failed that it is infinite."""
    seconds = load.percentile(share)
    return 1e3 * seconds if math.isfinite(seconds) else None


def summary(load: Load) -> dict:
    return {"texts_per_s": load.rate, "p50_ms": _milliseconds(load, 0.5), "p99_ms": _milliseconds(load, 0.99),
            "calls": len(load.latencies), "failures": load.failures}


async def answers(embed, texts: list, callers: int) -> np.ndarray:
    """Returns the vectors of all texts, [n, E]. Several callers ask for them at a time, so that the server forms batches."""
    vectors, upcoming = [None] * len(texts), iter(enumerate(texts))

    async def call() -> None:
        for place, text in upcoming:
            vectors[place] = np.asarray(await embed(text), np.float32).reshape(-1)

    await asyncio.gather(*(call() for _ in range(callers)))
    return np.stack(vectors)


class Loops:
    """Closed and open loops over `texts`, of a contender that runs."""

    def __init__(self, contender, running: Running, texts: list):
        if contender.serves:
            self.http = HttpLoad(contender.place.http_load, running.port, [contender.request(text) for text in texts])
            self.closed, self.open = self.http.closed_loop, self.http.open_loop
        else:
            self.closed = functools.partial(closed_loop, contender.embed, texts)
            self.open = functools.partial(open_loop, contender.embed, texts)


class Measurement:
    def __init__(self, options):
        self._options = options
        self._texts = all_texts.ragged(all_texts.sentences(), seed=options.seed)
        self._contender = CONTENDERS[options.contender](options.place)
        self._running = Running(self._contender)
        self._memory = 0

    async def run(self) -> dict:
        self._contender.prepare()
        try:
            await self._running.start()
            if self._contender.serves:  # once more: the first start has filled the file cache
                await self._running.stop()
                await self._running.start()
            found = await self._measure()
            await self._running.stop()
            return found
        finally:
            self._running.kill()

    async def _measure(self) -> dict:
        found = {"ready_s": self._running.ready_seconds, "settings": self._contender.settings}
        found["cosine"] = await self._compare()
        if found["cosine"] < LEAST_COSINE:
            raise NotRun(f"its answers are wrong: lowest cosine {found['cosine']:.4f}")
        seconds, loops = self._options.seconds, Loops(self._contender, self._running, self._texts)
        short = Loops(self._contender, self._running, list(all_texts.short()))
        for name, kind in (("closed", loops), ("short", short)):
            found[name] = {str(callers): self._note(await kind.closed(callers, seconds)) for callers in CALLERS}
        capacity = max(loop["texts_per_s"] for loop in found["closed"].values())
        found["open"] = {}
        for rate in [*(share * capacity for share in SHARES), *self._options.rates]:
            found["open"][f"{rate:.6g}"] = self._note(await loops.open(rate, seconds, self._options.seed))
        if isinstance(self._contender, Attendant):
            found["text_over_ids"] = await self._text_over_ids(short.http)
        found |= {"capacity": capacity, "memory_bytes": self._memory}
        found["disk_bytes"], found["disk_bytes_for_cpus"] = disk_bytes(self._contender.installed())
        return found

    async def _text_over_ids(self, load: HttpLoad) -> dict:
        ids, seconds = list(all_texts.short().values()), self._options.seconds / ROUNDS
        return {str(callers): statistics.median(await self._contender.text_over_ids(load, ids, callers, seconds, ROUNDS))
                for callers in CALLERS}

    def _note(self, load: Load) -> dict:
        self._memory = max(self._memory, memory_bytes(self._running.pid))
        return summary(load)

    async def _compare(self) -> float:
        """The lowest cosine to the answers of sentence-transformers, which writes them."""
        file = self._options.answers
        if not self._contender.serves:
            np.save(file, self._contender.encode(self._texts))
        return lowest_cosine(await answers(self._contender.embed, self._texts, max(CALLERS)), np.load(file))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--contender", choices=CONTENDERS, required=True)
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="has attendant-server and attendant-client")
    parser.add_argument("--http-load", type=pathlib.Path, required=True, help="the program")
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--checkpoint", type=pathlib.Path, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--answers", type=pathlib.Path, required=True, help="those of sentence-transformers, .npy")
    parser.add_argument("--seconds", type=float, required=True, help="of each loop")
    parser.add_argument("--rates", type=float, nargs="*", default=[], help="of further open loops")
    parser.add_argument("--seed", type=int, required=True)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended early"))  # not before its server
    options.place = Place(options.programs, options.http_load, options.work, options.checkpoint, options.threads)
    try:
        print(json.dumps(asyncio.run(Measurement(options).run())))
    except NotRun as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
