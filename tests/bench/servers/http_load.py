"""Loops of calls over HTTP, by the program http_load: the same one for every server."""
import asyncio
import json
import pathlib

from load import WARM_UP_SECONDS, Load, arrivals


class HttpLoad:
    """As the loops of `load`, with a connection for each call that is under way."""

    def __init__(self, program: pathlib.Path, port: int, requests: list):
        self._program, self._plan = program, {"port": port, "requests": requests}

    async def closed_loop(self, callers: int, seconds: float, warm_up: float = WARM_UP_SECONDS) -> Load:
        return await self._run(seconds, warm_up, callers=callers)

    async def open_loop(self, rate: float, seconds: float, seed: int, warm_up: float = WARM_UP_SECONDS) -> Load:
        return await self._run(seconds, warm_up, arrivals=list(arrivals(rate, warm_up + seconds, seed)))

    async def _run(self, seconds: float, warm_up: float, **loop) -> Load:
        plan = json.dumps({**self._plan, "seconds": seconds, "warm_up": warm_up, **loop})
        process = await asyncio.create_subprocess_exec(self._program, stdin=asyncio.subprocess.PIPE,
                                                       stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
        told, wrong = await process.communicate(plan.encode())
        if process.returncode != 0:
            raise RuntimeError(wrong.decode(errors="replace").strip())
        found = json.loads(told)
        return Load(seconds, found["latencies"], found["failures"])
