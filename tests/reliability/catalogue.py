"""Names and targets of all figures, and the groups that measure them."""
import dataclasses
import fnmatch


@dataclasses.dataclass(frozen=True)
class Target:
    """A bound for a figure; a figure without one is shown beside those that have one."""
    at_most: float | None = None
    at_least: float | None = None

    def met(self, value: float) -> bool:
        return ((self.at_most is None or value <= self.at_most) and
                (self.at_least is None or value >= self.at_least))

    def __str__(self) -> str:
        if self.at_most is not None:
            return f"<= {self.at_most:g}"
        return f">= {self.at_least:g}" if self.at_least is not None else ""


# Group (the module that measures it) -> its figures.
GROUPS = {
    "draining": {"drain.accepted_lost": Target(at_most=0), "drain.visible_failures": Target(at_most=0)},
    "overload": {"overload.3x.goodput": Target(at_least=0.95), "overload.10x.goodput": Target(at_least=0.85),
                 "overload.refused_p99_ms": Target(at_most=5)},
    "mixed": {"mixed.small_p99_slices": Target(at_most=2)},
    "fairness": {"fair.quiet_peer_share": Target(at_least=0.9)},
    "bulk": {"bulk.refused": Target(at_most=0), "bulk.newcomer_slices": Target(at_most=2)},
    "deadlines": {"dead_rows": Target(at_most=0)},
    "hostile": {f"{name}.{figure}": target for name in ("never_reads", "half_sent", "http_hostile")
                for figure, target in (("rss_mib", Target(at_most=50)), ("good_caller_s", Target(at_most=1)))},
    "flood": {**{f"flood.{attack}.{figure}": target for attack in ("continuation", "reset", "settings", "ping")
                 for figure, target in (("rss_mib", Target(at_most=50)), ("good_s", Target(at_most=1)),
                                        ("sent_mib_s", Target()))},
              "health.under_attack_s": Target(at_most=1)},
    "texts": {"text.hostile_ms_per_kib": Target(at_most=5), "text.hostile_crashes": Target(at_most=0),
              "half_sent_texts.rss_mib": Target(at_most=60), "half_sent_texts.good_caller_s": Target(at_most=1)},
    "memory": {"rss_slope_bytes_per_request": Target(at_most=1), "rss_growth_mib": Target(at_most=8)},
    "connections": {"emfile.recovery_s": Target(at_most=5), "certificates.failed_handshakes": Target(at_most=0)},
    "swaps": {"swap.failures": Target(at_most=0)},
    "generator": {"generator.calls_per_s": Target(at_least=20000)},
    "speed": {"server_over_engine.bert-base": Target(at_least=0.95),
              "server_over_engine.attention.uds": Target(at_least=0.70), "metrics_cost": Target(at_most=0.01)},
    "fuzz": {"fuzz.request_inputs": Target(at_least=1e7), "fuzz.weight_inputs": Target(at_least=1e7),
             "fuzz.crashes": Target(at_most=0)},
}
ONLY_IF_NAMED = ("fuzz",)  # takes hours to reach its targets


def targets() -> dict:
    """Figure -> target, in the order of the report."""
    return {name: target for figures in GROUPS.values() for name, target in figures.items()}


def chosen(patterns: list) -> set:
    """The figures that the patterns name, each a figure, a group or a glob; without patterns all but those of groups that
    have to be named. ValueError for a pattern that names none."""
    names = set()
    for pattern in patterns:
        found = set(fnmatch.filter(targets(), pattern)) | set(GROUPS.get(pattern, ()))
        if not found:
            raise ValueError(f"no figure is called {pattern}; there are {', '.join(targets())}")
        names |= found
    return names or {name for group, figures in GROUPS.items() if group not in ONLY_IF_NAMED for name in figures}
