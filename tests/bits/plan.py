"""The models that are served together, and their options."""
import dataclasses

# Newest first. A cap above the CPU's own instruction set changes nothing, and is left out as a repetition.
CAPS = ("best", "amx", "avx512-bf16", "avx512-vnni", "avx512", "avx2")
# The name in the report -> the suffix of a model's source.
TYPES = {"f32": "", "bf16x3": ",dtype=bf16x3", "bf16": ",dtype=bf16", "int8": ",dtype=int8",
         "bf16x3 emulated": ",dtype=bf16x3,emulate=true", "bf16 emulated": ",dtype=bf16,emulate=true",
         "int8 emulated": ",dtype=int8,emulate=true"}
# Not "auto", which measures times, so that the builds could choose differently.
ROW_PLANS = ("team", "rows")
# Larger models are computed with the first row plan only.
SMALL_BYTES = 150 << 20
# The limit of the weights in one process, unless a single model has more. Two processes run at a time.
PROCESS_BYTES = 2 << 30


@dataclasses.dataclass(frozen=True)
class Served:
    """A model in one compute type."""
    model: str
    source: str
    type: str
    float32_bytes: int

    @property
    def name(self) -> str:
        return f"{self.model}.{self.type.replace(' ', '-')}"

    @property
    def bytes(self) -> int:
        """An upper bound: native types have fewer. Emulated bf16x3 holds each weight as two float32."""
        return self.float32_bytes * (2 if self.type == "bf16x3 emulated" else 1)


def distinct(isa_of_cap: dict) -> dict:
    """The first cap of each instruction set that the server has under some cap."""
    first = {}
    for cap, isa in isa_of_cap.items():
        first.setdefault(isa, cap)
    return {cap: isa for isa, cap in first.items()}


def groups(served: list) -> list:
    """Lists of the models that one process serves."""
    found, room = [], 0
    for one in served:
        if one.bytes > room:
            found.append([])
            room = PROCESS_BYTES
        found[-1].append(one)
        room -= one.bytes
    return found


def with_row_plan(served: list, row_plan: str) -> list:
    return [one for one in served if row_plan == ROW_PLANS[0] or one.float32_bytes <= SMALL_BYTES]
