"""The raw results of a run."""
import dataclasses

from cases import Case, Model
from rounds import Timing

# The stages of a layer in their order: name in kernels_bench -> (name in the report, number in a layer).
STAGES = {"qkv": ("QKV", 1), "attention": ("attention", 1), "output": ("output", 1), "norm": ("2 norms", 2),
          "ff1": ("FF1", 1), "activation": ("activation", 1), "ff2": ("FF2", 1)}
STAGE_PREFIX = "stage/"  # the prefix of the names of their micro-benchmarks

OURS = ("attendant", "bound", "products")  # the prefixes of the names of contenders that are not peers


def _best(group: dict, prefix: str) -> float | None:
    """The best of the contenders with this prefix, which are forms of one contender."""
    return min((timing.best for name, timing in group.items() if name.startswith(prefix)), default=None)


@dataclasses.dataclass
class CaseResult:
    """One case in one data type. A group is an interleaved set of rounds for one arrangement of the peers' batches. The
    engine is in every group, unless the CPU refuses it the type; the other contenders of the project are in the first
    group."""
    case: Case
    groups: dict = dataclasses.field(default_factory=dict)  # arrangement -> {contender: Timing}

    def engine_seconds(self) -> Timing | None:
        passes = [seconds for group in self.groups.values() if "attendant" in group
                  for seconds in group["attendant"].passes]
        return Timing(passes) if passes else None

    def bound(self, role: str = "bound") -> tuple | None:
        """Best seconds of the bound, in the better of its forms, and of the engine, from the group that has the
        bound."""
        for group in self.groups.values():
            best = _best(group, role + "-")
            if best is not None and "attendant" in group:
                return best, group["attendant"].best
        return None

    def bound_share(self, role: str = "bound") -> float | None:
        """The engine's tokens/s as a share of the bound's."""
        bound = self.bound(role)
        return bound[0] / bound[1] if bound else None

    def price(self) -> tuple | None:
        """Best seconds of oneDNN's products as the engine cuts them, so that equal rows have equal bits, and of the
        bound's plain ones, with the same rounding of T."""
        role = "bound16" if self.case.short else "bound"
        for group in self.groups.values():
            cut, plain = _best(group, "products-"), _best(group, role + "-")
            if cut is not None and plain is not None:
                return cut, plain
        return None

    def own_over_onednn(self) -> tuple | None:
        """Best seconds of the engine with the AMX GEMM, and with oneDNN's in the same rounds."""
        for group in self.groups.values():
            if "attendant" in group and "attendant-onednn" in group:
                return group["attendant"].best, group["attendant-onednn"].best
        return None

    def peers(self, arrangement: str) -> dict:
        return {name: timing for name, timing in self.groups.get(arrangement, {}).items()
                if not name.startswith(OURS)}

    def best_peer(self, arrangement: str, among=None) -> str | None:
        """The fastest peer of one group, or of those in `among`."""
        peers = {name: timing.best for name, timing in self.peers(arrangement).items()
                 if among is None or name in among}
        return min(peers, key=peers.get, default=None)

    def peer_ratio(self, arrangement: str, among=None) -> float | None:
        """The engine's tokens/s over those of the best peer of one group."""
        group = self.groups.get(arrangement, {})
        peer = self.best_peer(arrangement, among)
        if peer is None or "attendant" not in group:
            return None
        return group[peer].best / group["attendant"].best


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
    def chose_own(self) -> bool:
        """Whether the engine has the AMX GEMM instead of oneDNN's in at least some layers."""
        return any(plan["gemm"] == "tiles" for plan in self.plans)

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
class Results:
    machine: dict = dataclasses.field(default_factory=dict)
    models: list = dataclasses.field(default_factory=list)
    kernels: list = dataclasses.field(default_factory=list)  # (name, seconds, counters)
    starts: list = dataclasses.field(default_factory=list)
    notes: list = dataclasses.field(default_factory=list)
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

    def stages(self) -> dict:
        """Case -> {stage: seconds of one layer}, in the order of STAGES, without the cases that lack a stage."""
        found = {}
        for name, seconds, _ in self.kernels:
            if name.startswith(STAGE_PREFIX):
                case, _, stage = name.removeprefix(STAGE_PREFIX).partition("/")
                found.setdefault(case, {})[stage] = seconds
        return {case: {stage: seconds[stage] * count for stage, (_, count) in STAGES.items()}
                for case, seconds in found.items() if set(STAGES) <= set(seconds)}
