"""Interleaved rounds: contenders take turns on the same cores, so that disturbances of the machine affect all of
them."""
import dataclasses
import math
import time

from timing import FEWEST_ROUNDS, Timing
from worker_process import WorkerFailed

TURN_SECONDS = 0.4  # at least this long; short cases take several passes
SETTLE_SECONDS = 0.25  # after a turn: thread pools spin that long before they sleep
MOST_ROUNDS = 12
CASE_SECONDS = 30  # beyond the minimum of rounds, none begins that would end later
# A contender that is this much slower than the best of its role drops out, and from a later round on one that is a
# little slower. The bound in its forms is a role too; the engine is alone in its own.
HOPELESS = 1.4
BEATEN, BEATEN_FROM_ROUND = 1.15, 3


@dataclasses.dataclass
class Entrant:
    """A worker that has prepared a case, `copies` times over."""
    name: str
    role: str  # see Contender
    worker: object
    copies: int
    streams: int = 1  # each stream has to see each shape, so this many passes warm up, and this many count before a
                      # verdict
    repeats: int = 1
    failure: str = ""
    timing: Timing = dataclasses.field(default_factory=Timing)

    @property
    def is_peer(self) -> bool:
        return self.role == "peer"

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


def _hopeful(entrants: list, limit: float, peers_best: float) -> list:
    best = {"peer": peers_best}  # role -> seconds
    for entrant in entrants:
        best[entrant.role] = min(entrant.timing.best, best.get(entrant.role, math.inf))
    return [e for e in entrants
            if e.timing.best <= limit * best[e.role] or len(e.timing.passes) < e.streams]


def run_rounds(entrants: list, peers_best: float = math.inf) -> None:
    """Fills the timings, or the failures, of the entrants; the first passes of each warm up and do not count.
    `peers_best`: the seconds of the best peer in another arrangement of the case. If no peer can keep up with it, the
    rounds end early."""
    _warm_up(entrants)
    taking_part = [entrant for entrant in entrants if not entrant.failure]
    begin = round_end = time.monotonic()
    done, last_round = 0, 0.0
    while done < FEWEST_ROUNDS or (done < MOST_ROUNDS and round_end - begin + last_round < CASE_SECONDS):
        round_begin = time.monotonic()
        for entrant in taking_part:
            if passes := entrant.turn():
                entrant.timing.rounds.append(passes)
        done += 1
        taking_part = _hopeful([entrant for entrant in taking_part if not entrant.failure],
                               BEATEN if done >= BEATEN_FROM_ROUND else HOPELESS, peers_best)
        if peers_best < math.inf and not any(entrant.is_peer for entrant in taking_part):
            break
        round_end = time.monotonic()
        last_round = round_end - round_begin
