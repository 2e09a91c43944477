"""The counts of what has been compared, as a table and as figures."""
import dataclasses

_HEADER = ("isa", "rows by", "type", "models", "answers", "differing")


@dataclasses.dataclass
class _Count:
    models: set = dataclasses.field(default_factory=set)
    answers: int = 0
    differing: int = 0


class Tally:
    def __init__(self):
        self._counts = {}  # (isa, row plan, type) -> _Count
        self.differences = []  # one line for each
        self.notes = []  # the questions that were left out

    def add(self, key: tuple, model: str, stage: str, answers: int, differences: list) -> None:
        """`key` is (isa, row plan, type). An answer is a tensor of a response."""
        count = self._counts.setdefault(key, _Count())
        count.models.add(model)
        count.answers += answers
        count.differing += len(differences)
        self.differences += [f"{model} {key[2]} ({key[0]}, {key[1]}), {stage}: {difference.tensor}: {difference.what}"
                             for difference in differences]

    def note(self, line: str) -> None:
        if line not in self.notes:
            self.notes.append(line)

    @property
    def compared(self) -> int:
        return sum(count.answers for count in self._counts.values())

    @property
    def differing(self) -> int:
        return sum(count.differing for count in self._counts.values())

    def figures(self) -> dict:
        return {"bits.compared": self.compared, "bits.differing": self.differing}

    def text(self) -> str:
        rows = [_HEADER] + [(*key, str(len(count.models)), str(count.answers), str(count.differing))
                            for key, count in self._counts.items()]
        rows.append(("all", "", "", "", str(self.compared), str(self.differing)))
        widths = [max(map(len, column)) for column in zip(*rows)]
        # Names are aligned to the left, numbers to the right.
        lines = ["  ".join(cell.ljust(width) if i < 3 else cell.rjust(width)
                           for i, (cell, width) in enumerate(zip(row, widths))) for row in rows]
        return "\n".join([*(f"not compared: {note}" for note in self.notes), *lines, *self.differences])
