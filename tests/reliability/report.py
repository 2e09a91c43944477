"""The results of a run, as a table and as JSON."""
import dataclasses

import catalogue


@dataclasses.dataclass(frozen=True)
class Measured:
    value: float
    calls: int  # attempted


@dataclasses.dataclass
class Report:
    machine: dict = dataclasses.field(default_factory=dict)
    figures: dict = dataclasses.field(default_factory=dict)  # name -> Measured
    failures: dict = dataclasses.field(default_factory=dict)  # group -> why it could not be measured
    notes: list = dataclasses.field(default_factory=list)

    def missed(self) -> list:
        wanted = catalogue.targets()
        return [name for name, figure in self.figures.items() if not wanted[name].met(figure.value)]

    def to_json(self) -> dict:
        return {"machine": self.machine, "figures": {name: figure.value for name, figure in self.figures.items()},
                "calls": {name: figure.calls for name, figure in self.figures.items()}, "missed": self.missed(),
                "failures": self.failures, "notes": self.notes}

    def table(self) -> str:
        lines = [", ".join(f"{name}: {value}" for name, value in self.machine.items()), "",
                 f"{'figure':36} {'value':>10} {'target':>10}  {'':6} {'calls':>8}"]
        for name, target in catalogue.targets().items():
            if name not in self.figures:
                continue
            figure = self.figures[name]
            verdict = ("met" if target.met(figure.value) else "MISSED") if str(target) else ""
            lines.append(f"{name:36} {figure.value:>10.4g} {str(target):>10}  {verdict:6} {figure.calls:>8}")
        lines += [f"not measured: {group}: {why}" for group, why in self.failures.items()]
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)
