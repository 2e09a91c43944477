"""Small calls beside bulk: how many slices of a long call they wait for."""
import statistics

import arithmetic
from load import Load, calls_of, load_test
from report import Measured
from server_process import cores, pinned

FLAGS = ("--model=m=synthetic:minilm-l6",)
SMALL = ("--token-ids", "--pooled", "--lengths", 16, "--rate", 20, "--warmup", "0s")
BULK = ("--token-ids", "--pooled", "--lengths", 512)
SHORT, LONG = (3, 15), (5, 30)  # rounds, and seconds of each
BATCH_SECONDS = 0.025  # --max-batch-seconds, the longest slice unless one sequence takes longer


def measure(setup) -> dict:
    server_core, core = cores()
    rounds, seconds = LONG if setup.long else SHORT
    waited, attempted = [], 0
    with setup.serve(*FLAGS, launcher=pinned(server_core)) as server:
        alone = load_test(setup, server.address, *SMALL, "--duration", "5s", core=core)
        one = load_test(setup, server.address, *BULK, "--concurrency", 1, "--duration", "4s", core=core)
        own, one_slice = alone["latency_ms"]["p50"] / 1000, max(BATCH_SECONDS, one["latency_ms"]["p50"] / 1000)
        setup.note(f"mixed: 16 tokens take {1000 * own:.1f} ms, a slice {1000 * one_slice:.1f} ms")
        for _ in range(rounds):
            bulk = Load(setup, server.address, *BULK, "--batch", 32, "--concurrency", 2, "--warmup", "0s",
                        "--duration", f"{seconds + 3}s", core=core)
            # The first batches of the bulk are part of what the small calls meet.
            small = load_test(setup, server.address, *SMALL, "--duration", f"{seconds}s", core=core)
            bulk.finish()
            waited.append(arithmetic.slices_waited(small["latency_ms"]["p99"] / 1000, own, one_slice))
            setup.say(f"p50 {small['latency_ms']['p50']:.0f} ms, p99 {small['latency_ms']['p99']:.0f} ms: "
                      f"{waited[-1]:.2f} slices")
            attempted += calls_of(small)
    return {"mixed.small_p99_slices": Measured(statistics.median(waited), attempted)}
