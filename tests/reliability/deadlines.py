"""Nothing is computed for a call whose deadline has passed."""
import random
import threading
import time

import calls
from report import Measured
from server_process import NotMeasured

CALLS, MOST_UNDER_WAY = 10_000, 128
LENGTH, WIDTH = 16, 384


def deadline(number: int, own: float, choose: random.Random) -> float:
    """Half of the deadlines are below the service time `own`, the others above what the queue takes."""
    return own * choose.uniform(0.05, 1) if number % 2 else choose.uniform(0.1, 2)


def measure(setup) -> dict:
    choose, room = random.Random(9), threading.Semaphore(MOST_UNDER_WAY)
    request = calls.attend_request(1, LENGTH, WIDTH)
    with setup.serve("--model=m=synthetic:minilm-l6") as server:
        channel = calls.open_channel(server.address)
        attend = calls.method(channel)
        own = []
        for _ in range(20):
            begin = time.monotonic()
            attend(request)
            own.append(time.monotonic() - begin)
        futures = []
        for number in range(CALLS):
            room.acquire()
            futures.append(attend.future(request, timeout=deadline(number, min(own), choose)))
            futures[-1].add_done_callback(lambda _: room.release())
        ok = sum(future.code().name == "OK" for future in futures)
        setup.note(f"deadlines: {ok} of {CALLS} calls answered, {CALLS - ok} too late or refused")
        channel.close()
        if ok == 0 or "attendant_dead_rows_total{" not in server.scrape():
            raise NotMeasured("the server counts no dead rows")
        return {"dead_rows": Measured(server.metric("attendant_dead_rows_total"), CALLS)}
