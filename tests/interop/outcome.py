"""The results of a run, as a table and as JSON."""
import dataclasses

from catalogue import Target  # of tests/reliability

PASSED, FAILED, NOT_RUN = "passed", "failed", "not run"
MOST_GROWTH = Target(at_most=32)  # MiB; a request claims 1 GiB and more, and brings 1 MiB at most
TARGETS = {
    "clients.passed": Target(at_least=13), "clients.failed": Target(at_most=0), "clients.not_run": Target(),
    "conformance.passed": Target(at_least=19), "languages.passed": Target(at_least=6),
    "malformed.accepted": Target(at_most=0), "malformed.grpc_growth_mib": MOST_GROWTH, "malformed.rest_growth_mib": MOST_GROWTH,
    "text.cosine": Target(at_least=0.999999), "text.differing_token_counts": Target(at_most=0),
    "python.text_over_sentence_transformers": Target(at_least=1.5), "python.overhead": Target(at_most=1.15),
    "oip_over_native": Target(at_least=0.97),
}
# A miss of these is shown, but does not fail the run: it may be the machine's.
SPEEDS = {"python.text_over_sentence_transformers", "python.overhead", "oip_over_native"}


@dataclasses.dataclass
class Row:
    client: str
    version: str
    checked: list  # what was found right
    status: str  # PASSED, FAILED or NOT_RUN
    detail: str = ""  # why not
    kind: str = "client"  # or "proxy", "case" of conformance, "malformed", "language", "texts"


@dataclasses.dataclass
class Outcome:
    machine: dict
    rows: list = dataclasses.field(default_factory=list)
    figures: dict = dataclasses.field(default_factory=dict)
    spreads: dict = dataclasses.field(default_factory=dict)  # figure -> its lowest and highest round
    failures: dict = dataclasses.field(default_factory=dict)  # group -> why it could not be measured

    def of(self, kind: str, status: str) -> list:
        return [row for row in self.rows if row.kind == kind and row.status == status]

    def count_clients(self) -> None:
        """A client has passed if all its rows have: tritonclient, for one, has a row for each of its interfaces."""
        by_name = {}
        for row in self.rows:
            if row.kind == "client":
                by_name.setdefault(row.client.partition(" ")[0], set()).add(row.status)
        self.figures["clients.passed"] = sum(found == {PASSED} for found in by_name.values())
        self.figures["clients.failed"] = len(self.of("client", FAILED))
        self.figures["clients.not_run"] = len(self.of("client", NOT_RUN))

    def missed(self) -> list:
        return [name for name, value in self.figures.items() if not TARGETS[name].met(value)]

    def broken(self) -> bool:
        return bool(self.failures or set(self.missed()) - SPEEDS or any(row.status == FAILED for row in self.rows))

    def to_json(self) -> dict:
        return {"machine": self.machine, "figures": self.figures, "spreads": self.spreads, "missed": self.missed(),
                "rows": [dataclasses.asdict(row) for row in self.rows], "failures": self.failures}

    def table(self) -> str:
        lines = [", ".join(f"{name}: {value}" for name, value in self.machine.items()), ""]
        width = max((len(row.client) for row in self.rows if row.kind != "case"), default=0)
        for row in self.rows:
            if row.kind == "case":
                lines.append(f"{row.status:8} case: {row.client}")
            else:
                lines.append(f"{row.status:8} {row.client:{width}} {row.version:10} {'; '.join(row.checked)}")
            if row.detail:
                lines.append(f"{'':8} {row.detail}")
        lines += ["", f"{'figure':40} {'value':>12} {'target':>10}"]
        for name, target in TARGETS.items():
            if name in self.figures:
                spread = "  ({:.3f} to {:.3f})".format(*self.spreads[name]) if name in self.spreads else ""
                verdict = "met" if target.met(self.figures[name]) else "MISSED"
                lines.append(f"{name:40} {self.figures[name]:>12.8g} {str(target):>10}  {verdict if str(target) else ''}{spread}")
        lines += [f"not measured: {group}: {why}" for group, why in self.failures.items()]
        return "\n".join(lines)
