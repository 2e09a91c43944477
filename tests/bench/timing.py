"""The times of contenders by round, and the ratios of their speeds."""
import dataclasses
import statistics

FEWEST_ROUNDS = 5  # that a ratio is the median of


@dataclasses.dataclass
class Timing:
    """The times of one contender on one case: for each round, from the first until the contender drops out, the seconds
    of each pass over its sequences."""
    rounds: list = dataclasses.field(default_factory=list)

    @property
    def passes(self) -> list:
        return [seconds for passes in self.rounds for seconds in passes]

    @property
    def best(self) -> float:
        return min(self.passes)

    @property
    def median(self) -> float:
        return statistics.median(self.passes)

    @property
    def best_of_rounds(self) -> list:
        return [min(passes) for passes in self.rounds]

    @property
    def complete(self) -> bool:
        return len(self.rounds) >= FEWEST_ROUNDS


@dataclasses.dataclass(frozen=True)
class Ratio:
    """The speed of one contender over that of another, in each round that both took part in. A round counts by the best
    pass of each."""
    timing: Timing
    other: Timing

    @property
    def rounds(self) -> list:
        return [theirs / ours for ours, theirs in zip(self.timing.best_of_rounds, self.other.best_of_rounds)]

    @property
    def median(self) -> float:
        return statistics.median(self.rounds)

    @property
    def lowest(self) -> float:
        return min(self.rounds)

    @property
    def highest(self) -> float:
        return max(self.rounds)

    @property
    def complete(self) -> bool:
        return len(self.rounds) >= FEWEST_ROUNDS

    def spread(self, digits: int = 3) -> str:
        return f"{self.lowest:.{digits}f}..{self.highest:.{digits}f}"


def quickest(timings: dict) -> str | None:
    """The name of the quickest contender by the median of its rounds. One that dropped out was slower than those that
    did not."""
    return min(timings, key=lambda name: (not timings[name].complete,
                                          statistics.median(timings[name].best_of_rounds)), default=None)
