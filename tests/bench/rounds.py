"""Interleaved rounds: contenders take turns on the same cores, so that disturbances of the machine affect all of
them."""
import dataclasses
import math
import statistics
import time

from worker_process import WorkerFailed

TURN_SECONDS = 0.4  # at least this long; short cases take several passes
SETTLE_SECONDS = 0.25  # after a turn: thread pools spin that long before they sleep
FEWEST_ROUNDS, MOST_ROUNDS = 2, 12
CASE_SECONDS = 40  # beyond the minimum of rounds, none begins that would end later
HOPELESS = 1.4  # a peer that is this much slower than the best peer drops out


@dataclasses.dataclass
class Timing:
    """The times of one contender on one case: seconds for each pass over its sequences."""
    passes: list = dataclasses.field(default_factory=list)

    @property
    def best(self) -> float:
        return min(self.passes)

    @property
    def median(self) -> float:
        return statistics.median(self.passes)


@dataclasses.dataclass
class Entrant:
    """A worker that has prepared a case, `copies` times over."""
    name: str
    is_peer: bool
    worker: object
    copies: int
    streams: int = 1  # each stream has to see each shape, so this many passes warm up, and this many count before a
                      # verdict
    repeats: int = 1
    failure: str = ""
    timing: Timing = dataclasses.field(default_factory=Timing)

    def turn(self) -> list:
        """Returns the seconds of each pass, or nothing after a failure."""
        try:
            return [seconds / self.copies for seconds in self.worker.run(self.repeats)]
        except WorkerFailed as error:
            self.failure = str(error)
            return []
        finally:
            time.sleep(SETTLE_SECONDS)


def _warm_up(entrants: list) -> None:
    for entrant in entrants:
        passes = [seconds for _ in range(entrant.streams) for seconds in entrant.turn()]
        if passes:
            entrant.repeats = max(1, min(20, math.ceil(TURN_SECONDS / (min(passes) * entrant.copies))))


def _hopeful(entrants: list) -> list:
    entrants = [entrant for entrant in entrants if not entrant.failure]
    best = min((e.timing.best for e in entrants if e.is_peer), default=0)
    return [e for e in entrants
            if not e.is_peer or e.timing.best <= HOPELESS * best or len(e.timing.passes) < e.streams]


def run_rounds(entrants: list) -> None:
    """Fills the timings, or the failures, of the entrants; the first passes of each warm up and do not count."""
    _warm_up(entrants)
    taking_part = [entrant for entrant in entrants if not entrant.failure]
    begin = round_end = time.monotonic()
    done, last_round = 0, 0.0
    while done < FEWEST_ROUNDS or (done < MOST_ROUNDS and round_end - begin + last_round < CASE_SECONDS):
        round_begin = time.monotonic()
        for entrant in taking_part:
            entrant.timing.passes += entrant.turn()
        taking_part = _hopeful(taking_part)
        round_end = time.monotonic()
        last_round = round_end - round_begin
        done += 1
