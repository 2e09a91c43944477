"""A quiet caller beside a greedy one, at two addresses. The server has one core, its callers the other."""
import arithmetic
import overload
from load import Load, calls_of, from_address, load_test
from report import Measured
from server_process import cores, pinned

QUIET, GREEDY = "127.0.0.2", "127.0.0.3"
SHORT, LONG = (3, 10), (5, 20)  # rounds, and seconds of each part of one
# Token ids, so that the forwarders carry little.
REQUESTS = ("--token-ids", "--pooled", "--lengths", 128, "--deadline", "1s", "--connections", 4)


def _open_loop(rate: float, seconds: float) -> tuple:
    return (*REQUESTS, "--rate", f"{rate:.1f}", "--warmup", "1s", "--duration", f"{seconds}s")


def measure(setup) -> dict:
    server_core, core = cores()
    rounds, seconds = LONG if setup.long else SHORT
    shares, attempted = [], 0
    with (setup.serve(*overload.FLAGS, launcher=pinned(server_core)) as server,
          from_address(QUIET, server.port, core) as quiet, from_address(GREEDY, server.port, core) as greedy):
        most = load_test(setup, server.address, *REQUESTS, "--concurrency", 8, "--duration", "5s", core=core)
        peak = most["goodput"]["requests_per_s"]
        for _ in range(rounds):
            alone = load_test(setup, quiet, *_open_loop(peak / 2, seconds), core=core)
            other = Load(setup, greedy, *_open_loop(10 * peak, seconds + 2), core=core)
            beside = load_test(setup, quiet, *_open_loop(peak / 2, seconds), core=core)
            crowd = other.finish()
            shares.append((beside["goodput"]["share"], alone["goodput"]["share"]))
            attempted += calls_of(alone) + calls_of(beside)
            setup.say(f"quiet: {alone['goodput']['share']:.3f} in time alone, {beside['goodput']['share']:.3f} beside; "
                      f"greedy: {crowd['goodput']['requests_per_s']:.0f}/s of {10 * peak:.0f}/s in time")
    return {"fair.quiet_peer_share": Measured(arithmetic.median_ratio(shares), attempted)}
