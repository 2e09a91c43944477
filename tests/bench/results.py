"""The raw results of a run."""
import dataclasses
import math

from cases import DEFAULT_SEED, Case, Model
from timing import Ratio, Timing, quickest

OURS = ("attendant", "bound", "products")  # the prefixes of the names of contenders that are not peers


def _timing(group: dict, name: str) -> Timing | None:
    """The contender of this name, or the quicker of its forms."""
    forms = {form: group[form] for form in (name, f"{name}-team", f"{name}-rows") if form in group}
    return group.get(quickest(forms))


@dataclasses.dataclass
class CaseResult:
    """One case in one data type. A group is an interleaved set of rounds for one arrangement of the peers' batches. The
    engine is in every group, unless the CPU refuses it the type; the other contenders of the project are in the first
    group."""
    case: Case
    groups: dict = dataclasses.field(default_factory=dict)  # arrangement -> {contender: Timing}

    def engine_seconds(self) -> Timing | None:
        rounds = [passes for group in self.groups.values() if "attendant" in group
                  for passes in group["attendant"].rounds]
        return Timing(rounds) if rounds else None

    def _ratio(self, name: str, other: str) -> Ratio | None:
        """From the first group that has both."""
        for group in self.groups.values():
            timings = _timing(group, name), _timing(group, other)
            if all(timings):
                return Ratio(*timings)
        return None

    def bound_share(self, role: str = "bound") -> Ratio | None:
        """The engine's speed as a share of the bound's."""
        return self._ratio("attendant", role)

    def price(self) -> Ratio | None:
        """The speed of the bound's plain products over that of oneDNN's as the engine cuts them, so that equal rows
        have equal bits, with the same rounding of T."""
        return self._ratio("bound16" if self.case.short else "bound", "products")

    def own_over_onednn(self) -> Ratio | None:
        """The speed of the engine with its own GEMM over that with oneDNN's."""
        return self._ratio("attendant", "attendant-onednn")

    def stored(self) -> Ratio | None:
        """The speed of float32 arithmetic over weights stored in bfloat16 over that with weights in float32."""
        return self._ratio("attendant-bf16-file", "attendant")

    def int8_over_f32(self) -> Ratio | None:
        return self._ratio("attendant", "attendant-f32")

    def peers(self, arrangement: str) -> dict:
        return {name: timing for name, timing in self.groups.get(arrangement, {}).items()
                if not name.startswith(OURS)}

    def best_peer(self, arrangement: str, among=None) -> str | None:
        """The fastest peer of one group, or of those in `among`."""
        return quickest({name: timing for name, timing in self.peers(arrangement).items()
                         if among is None or name in among})

    def best_peer_seconds(self) -> float:
        """The best pass of any peer so far; infinity if there is none."""
        return min((timing.best for arrangement in self.groups for timing in self.peers(arrangement).values()),
                   default=math.inf)

    def peer_ratio(self, arrangement: str, among=None) -> Ratio | None:
        """The engine's speed over that of the best peer of one group."""
        group, peer = self.groups.get(arrangement, {}), self.best_peer(arrangement, among)
        if peer is None or "attendant" not in group:
            return None
        return Ratio(group["attendant"], group[peer])


@dataclasses.dataclass
class Accuracy:
    """The accuracy of one contender on real sentences."""
    lowest_token_cosine: float  # compared with float64
    max_abs_error: float  # compared with float64
    max_abs_difference: float | None  # from the engine's answer
    agrees: bool  # by the rules of agreement.py


@dataclasses.dataclass
class CostFit:
    """Seconds of a batch = a + b T + c (sum of squared lengths), by least squares."""
    a: float
    b: float
    c: float
    r2: float
    measured: list  # seconds of each batch
    predicted: list


@dataclasses.dataclass
class Memory:
    """The memory of the engine in a process of its own."""
    loaded_bytes: int  # resident after loading, before the first run
    resident_bytes: int  # after the first case
    file_bytes: int  # pages of the program and its libraries among these
    weight_bytes: int  # packed weights
    run_bytes: int  # reserved for the activations of that case

    @property
    def touched_bytes(self) -> int:
        """Activations count as far as they can be resident: no more than was reserved, and no more than was added since
        loading."""
        return max(0, min(self.run_bytes, self.resident_bytes - self.loaded_bytes))

    @property
    def over_weights(self) -> float:
        """Resident bytes without the activations, over the packed weights."""
        return (self.resident_bytes - self.touched_bytes) / self.weight_bytes


@dataclasses.dataclass
class ModelResult:
    """A model in one data type."""
    model: Model
    dtype: str
    refused: str = ""  # why the engine does not compute in this type here
    cases: list = dataclasses.field(default_factory=list)
    failures: dict = dataclasses.field(default_factory=dict)  # contender -> reason
    accuracy: dict = dataclasses.field(default_factory=dict)  # contender -> Accuracy
    fit: CostFit | None = None
    memory: Memory | None = None
    plans: list = dataclasses.field(default_factory=list)  # the plans of the engine's products, as it reports them

    @property
    def name(self) -> str:
        return f"{self.model.name}.{self.dtype}"

    @property
    def chose_tiles(self) -> bool:
        """Whether the engine has the AMX GEMM instead of oneDNN's in at least some layers."""
        return any(plan["gemm"] == "tiles" for plan in self.plans)

    @property
    def chose_own(self) -> bool:
        """Whether the engine has a GEMM of its own in some layers where oneDNN's would do."""
        return self.chose_tiles or (self.dtype == "f32" and any(plan["gemm"] == "vector" for plan in self.plans))

    def exclude(self, contender: str) -> None:
        """Removes a contender, whose speed does not count."""
        for found in self.cases:
            for group in found.groups.values():
                group.pop(contender, None)

    def disagreeing(self) -> dict:
        """Contender -> Accuracy, for those whose answers are too far from float64."""
        return {name: accuracy for name, accuracy in self.accuracy.items() if not accuracy.agrees}


@dataclasses.dataclass
class Start:
    """The start of the server with one model in float32, until it is ready, with the weights in the file cache."""
    model: str
    seconds: float
    resident_bytes: int  # when ready, without activations
    file_bytes: int  # pages of the program and its libraries among these
    weight_bytes: int | None  # packed weights, as the engine reports

    @property
    def over_weights(self) -> float | None:
        return self.resident_bytes / self.weight_bytes if self.weight_bytes else None


@dataclasses.dataclass
class CacheHits:
    """The server's time for a call whose vectors are all in its cache."""
    model: str
    tokens: int
    seconds: float  # the median of some rounds, each the mean of its calls
    lowest: float
    highest: float


@dataclasses.dataclass
class Results:
    machine: dict = dataclasses.field(default_factory=dict)
    models: list = dataclasses.field(default_factory=list)
    kernels: list = dataclasses.field(default_factory=list)  # (name, seconds, counters)
    starts: list = dataclasses.field(default_factory=list)
    cache_hits: CacheHits | None = None
    notes: list = dataclasses.field(default_factory=list)
    seed: int = DEFAULT_SEED  # of the ragged sets
    ended_by: str = ""  # the signal that ended the run early
    seconds: float = 0

    def weight_bytes(self, model: str, dtype: str) -> int | None:
        return next((found.memory.weight_bytes for found in self.models
                     if found.name == f"{model}.{dtype}" and found.memory), None)

    def note(self, line: str) -> None:
        """Adds a remark for readers of the figures, once."""
        if line not in self.notes:
            self.notes.append(line)

    def wrong_answers(self) -> list:
        """The models for which the engine's own answers are wrong."""
        wrong = []
        for model in self.models:
            for contender, name in (("attendant", model.name), ("attendant-onednn", f"{model.name}, attendant-onednn")):
                accuracy = model.accuracy.get(contender)
                if contender in model.failures:
                    wrong.append(f"{name}: {model.failures[contender]}")
                elif accuracy and not accuracy.agrees:
                    wrong.append(f"{name}: lowest cosine {accuracy.lowest_token_cosine:.7f}, "
                                 f"largest error {accuracy.max_abs_error:.1e}")
        return wrong
