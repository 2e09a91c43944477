"""Closed and open loops of calls from one event loop, whose clock they read."""
import asyncio
import dataclasses
import itertools
import random

WARM_UP_SECONDS = 1.0  # of each loop, which are not counted
PATIENCE_SECONDS = 60


@dataclasses.dataclass
class Load:
    """The calls of one loop that counted."""
    seconds: float  # during which they ended, or in an open loop were due
    latencies: list = dataclasses.field(default_factory=list)  # seconds, of good calls
    failures: dict = dataclasses.field(default_factory=dict)  # message -> calls

    @property
    def rate(self) -> float:
        return len(self.latencies) / self.seconds

    @property
    def failed(self) -> int:
        return sum(self.failures.values())

    def percentile(self, share: float) -> float:
        """The smallest latency that this share of the calls does not exceed; a failed call took for ever."""
        ordered = sorted(self.latencies) + [float("inf")] * self.failed
        if not ordered:
            return float("inf")
        return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))]

    def add(self, latency: float, failure: str) -> None:
        if failure:
            self.failures[failure] = self.failures.get(failure, 0) + 1
        else:
            self.latencies.append(latency)


async def _outcome(embed, text: str) -> str:
    """Why the call failed, or nothing."""
    try:
        await embed(text)
    except Exception as error:  # whatever a client library raises
        return f"{type(error).__name__}: {error}"[:200] or "failed"
    return ""


async def closed_loop(embed, texts: list, callers: int, seconds: float, warm_up: float = WARM_UP_SECONDS) -> Load:
    """Each caller sends its next text when the last one has been answered."""
    upcoming = itertools.cycle(texts)
    now = asyncio.get_running_loop().time
    begin = now() + warm_up
    load = Load(seconds)

    async def call() -> None:
        while (sent := now()) < begin + seconds:
            failure = await _outcome(embed, next(upcoming))
            ended = now()
            if begin <= ended < begin + seconds:
                load.add(ended - sent, failure)

    await asyncio.gather(*(call() for _ in range(callers)))
    return load


def arrivals(rate: float, seconds: float, seed: int):
    """Yields the times of a Poisson process."""
    dice, at = random.Random(seed), 0.0
    while (at := at + dice.expovariate(rate)) < seconds:
        yield at


async def open_loop(embed, texts: list, rate: float, seconds: float, seed: int = 1,
                    warm_up: float = WARM_UP_SECONDS) -> Load:
    """Calls are due at random times, however slowly answers come. A latency begins when its call was due, so that a call that
    had to wait for the sender, or for a server that stood still, has waited (no coordinated omission)."""
    load = Load(seconds)
    now = asyncio.get_running_loop().time
    begin = now()
    under_way = set()

    async def call(text: str, due: float) -> None:
        failure = await _outcome(embed, text)
        if due >= warm_up:
            load.add(now() - begin - due, failure)

    for text, due in zip(itertools.cycle(texts), arrivals(rate, warm_up + seconds, seed)):
        if (ahead := begin + due - now()) > 0:
            await asyncio.sleep(ahead)
        task = asyncio.create_task(call(text, due))
        under_way.add(task)
        task.add_done_callback(under_way.discard)
    if under_way:
        _, unanswered = await asyncio.wait(under_way, timeout=PATIENCE_SECONDS)
        for task in unanswered:
            task.cancel()
            load.add(0, f"no answer in {PATIENCE_SECONDS} s")
    return load
