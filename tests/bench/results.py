"""What a run has found, before anything is made of it."""
import dataclasses

from cases import Case, Model
from rounds import Timing

# Of a layer, in its order: as kernels_bench calls them -> (as the report does, how many a layer has).
STAGES = {"qkv": ("QKV", 1), "attention": ("attention", 1), "output": ("output", 1), "norm": ("2 norms", 2),
          "ff1": ("FF1", 1), "activation": ("activation", 1), "ff2": ("FF2", 1)}
STAGE_PREFIX = "stage/"  # of their micro-benchmarks, beside the kernels'

OURS = ("attendant", "bound", "products")  # what the names of contenders begin with that are no peers


def _best(group: dict, prefix: str) -> float | None:
    """Of the contenders so called: forms of one thing."""
    return min((timing.best for name, timing in group.items() if name.startswith(prefix)), default=None)


@dataclasses.dataclass
class CaseResult:
    """One case in one data type. A group is an interleaved set of rounds: one arrangement of the peers' batches, with
    the engine in every group unless the CPU refuses it, all else of ours in the first."""
    case: Case
    groups: dict = dataclasses.field(default_factory=dict)  # arrangement -> {contender: Timing}

    def engine_seconds(self) -> Timing | None:
        passes = [seconds for group in self.groups.values() if "attendant" in group
                  for seconds in group["attendant"].passes]
        return Timing(passes) if passes else None

    def bound(self, role: str = "bound") -> tuple | None:
        """Best seconds of the bound, in the better of its forms, and of the engine, of the group that has the bound."""
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
        """Best seconds of oneDNN's products as the engine cuts them so that equal rows have equal bits, and of the
        bound's plain ones; of T rounded up alike."""
        role = "bound16" if self.case.short else "bound"
        for group in self.groups.values():
            cut, plain = _best(group, "products-"), _best(group, role + "-")
            if cut is not None and plain is not None:
                return cut, plain
        return None

    def own_over_onednn(self) -> tuple | None:
        """Best seconds of the engine with products of its own, and with oneDNN's in the same rounds."""
        for group in self.groups.values():
            if "attendant" in group and "attendant-onednn" in group:
                return group["attendant"].best, group["attendant-onednn"].best
        return None

    def peers(self, arrangement: str) -> dict:
        return {name: timing for name, timing in self.groups.get(arrangement, {}).items()
                if not name.startswith(OURS)}

    def best_peer(self, arrangement: str, among=None) -> str | None:
        """The quickest of one group, or of those `among` them."""
        peers = {name: timing.best for name, timing in self.peers(arrangement).items()
                 if among is None or name in among}
        return min(peers, key=peers.get, default=None)

    def peer_ratio(self, arrangement: str, among=None) -> float | None:
        """The engine's tokens/s over the best peer's of one group."""
        group = self.groups.get(arrangement, {})
        peer = self.best_peer(arrangement, among)
        if peer is None or "attendant" not in group:
            return None
        return group[peer].best / group["attendant"].best


@dataclasses.dataclass
class Accuracy:
    """Of one contender on real sentences."""
    lowest_token_cosine: float  # to float64
    max_abs_error: float  # to float64
    max_abs_difference: float | None  # to the engine's answer
    agrees: bool  # agreement.py says when


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
    """Of the engine in a process of its own."""
    loaded_bytes: int  # resident after loading, before the first run
    resident_bytes: int  # after the first case
    file_bytes: int  # of them the pages of the program and its libraries
    weight_bytes: int  # packed
    run_bytes: int  # reserved for the activations of that case

    @property
    def touched_bytes(self) -> int:
        """Activations count as far as they can be resident: no more than was reserved, nor than came since loading."""
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
    plans: list = dataclasses.field(default_factory=list)  # of the engine's products, as it tells them

    @property
    def name(self) -> str:
        return f"{self.model.name}.{self.dtype}"

    @property
    def chose_own(self) -> bool:
        """The engine has products of its own, not oneDNN's, in some layers at least."""
        return any(plan["gemm"] == "tiles" for plan in self.plans)

    def exclude(self, contender: str) -> None:
        """Its speed is nobody's."""
        for found in self.cases:
            for group in found.groups.values():
                group.pop(contender, None)

    def disagreeing(self) -> dict:
        """Contender -> Accuracy, of those whose answers are too far from float64."""
        return {name: accuracy for name, accuracy in self.accuracy.items() if not accuracy.agrees}


@dataclasses.dataclass
class Start:
    """Of the server with one model in float32, from its start to ready, with the weights in the file cache."""
    model: str
    seconds: float
    resident_bytes: int  # when ready, without activations
    file_bytes: int  # of them the pages of the program and its libraries
    weight_bytes: int | None  # packed, as the engine tells

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
        """What a reader of the figures has to know; once."""
        if line not in self.notes:
            self.notes.append(line)

    def wrong_answers(self) -> list:
        """Where the engine's own answers are not the model's."""
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
        """Case -> {stage: seconds of one layer}, in the order of STAGES; without a case that lacks one."""
        found = {}
        for name, seconds, _ in self.kernels:
            if name.startswith(STAGE_PREFIX):
                case, _, stage = name.removeprefix(STAGE_PREFIX).partition("/")
                found.setdefault(case, {})[stage] = seconds
        return {case: {stage: seconds[stage] * count for stage, (_, count) in STAGES.items()}
                for case, seconds in found.items() if set(STAGES) <= set(seconds)}
