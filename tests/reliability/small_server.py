"""A server with little memory for requests, and what attacks on it cost the server and its good caller."""
import contextlib
import dataclasses

import calls

MIB = 1 << 20
# Of all requests together, so small that what is held beyond it is seen.
BUDGET = 40 * MIB


@contextlib.contextmanager
def small_server(setup, *flags: str, preparation=None, authority=None):
    """A server whose budget is BUDGET. Its limit is found from what a first one makes of another limit: a fifth of what
    is beyond weights and margins is gRPC's."""
    flags = ("--model=m=synthetic:tiny", *flags)
    first = 400 * MIB
    with setup.serve(*flags, f"--memory-limit-bytes={first}", authority=authority) as server:
        limit = first - round((server.metric("attendant_budget_bytes") - BUDGET) / 0.8)
    with setup.serve(*flags, f"--memory-limit-bytes={limit}", authority=authority, preparation=preparation) as server:
        setup.say(f"limit {limit / MIB:.0f} MiB, budget {server.metric('attendant_budget_bytes') / MIB:.0f} MiB, "
                  f"idle {server.resident_bytes() / MIB:.0f} MiB")
        yield server


@dataclasses.dataclass
class Cost:
    """Of an attack: the growth of the server's resident memory, and the good caller's longest wait and number of calls."""
    rss_mib: float = 0
    worst_s: float = 0
    calls: int = 0


@contextlib.contextmanager
def observed(setup, name: str, server):
    """Runs the good caller meanwhile, and yields a Cost, which is filled in at the end."""
    cost = Cost()
    with calls.GoodCaller(server) as good:
        for _ in range(50):
            good.call()
        server.reset_peak()
        idle = server.resident_bytes()
        yield cost
        peak = server.resident_bytes("VmHWM")
    cost.rss_mib, cost.worst_s, cost.calls = (peak - idle) / MIB, good.worst, good.calls
    setup.say(f"{name}: idle {idle / MIB:.1f} MiB, peak {peak / MIB:.1f} MiB; good caller: worst {good.worst:.3f} s, "
              f"{good.failures} of {good.calls} calls failed")
