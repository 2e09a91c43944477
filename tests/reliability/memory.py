"""Memory over many requests."""
import time

import arithmetic
from load import calls_of, load_test
from report import Measured

# What the requests are: all lengths, methods, types and layouts, streams, refusals of hopeless deadlines.
MIX = (("--token-ids", "--lengths", "1..64"), ("--method", "attend", "--lengths", "1..200", "--padded", "--batch", 3),
       ("--token-ids", "--pooled", "--lengths", "lognormal:12:0.7:64", "--stream"),
       ("--wire-dtype", "bfloat16", "--lengths", "1..300"), ("--lengths", "1..64", "--deadline", "200us"))
CONCURRENCY = 16
SETTLE_SECONDS, STILL_BYTES = 2.5, 1 << 16  # an idle server gives back every second what it has freed
WARMUP_ROUNDS = 3
SHORT, LONG = (100_000, 20), (1_000_000, 50)  # requests, and rounds of all kinds


def settled_bytes(server) -> int:
    """What an idle server keeps: its memory when it has not changed for some time."""
    before = server.resident_bytes()
    for _ in range(20):
        time.sleep(SETTLE_SECONDS)
        now = server.resident_bytes()
        if abs(now - before) <= STILL_BYTES:
            break
        before = now
    return now


def measure(setup) -> dict:
    requests, rounds = LONG if setup.long else SHORT
    each = requests // rounds // len(MIX)
    done, points = 0, []
    with setup.serve("--model=m=synthetic:tiny") as server:
        for number in range(WARMUP_ROUNDS + rounds):
            for kind in MIX:
                report = load_test(setup, server.address, *kind, "--requests", each, "--concurrency", CONCURRENCY,
                                   "--warmup", "0s", "--seed", number + 1)
                if number >= WARMUP_ROUNDS:
                    done += calls_of(report)
            if number >= WARMUP_ROUNDS - 1:
                points.append((done, settled_bytes(server)))
    growth = max(resident for _, resident in points) - points[0][1]
    setup.say(f"{points[0][1] >> 20} MiB after the warm-up, {points[-1][1] >> 20} MiB at the end")
    return {"rss_slope_bytes_per_request": Measured(arithmetic.slope(*zip(*points)), done),
            "rss_growth_mib": Measured(growth / (1 << 20), done)}
