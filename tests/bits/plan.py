"""What is served together, and how."""
import dataclasses

# Newest first: a cap above what the CPU has changes nothing, and is left out as the same again.
CAPS = ("best", "amx", "avx512-bf16", "avx512-vnni", "avx512", "avx2")
# As the report names it -> what a model's source has behind it.
TYPES = {"f32": "", "bf16x3": ",dtype=bf16x3", "bf16": ",dtype=bf16", "int8": ",dtype=int8",
         "bf16x3 emulated": ",dtype=bf16x3,emulate=true", "bf16 emulated": ",dtype=bf16,emulate=true",
         "int8 emulated": ",dtype=int8,emulate=true"}
# Never "auto", which times: the builds could choose otherwise.
ROW_PLANS = ("team", "rows")
# Larger models are computed in the first row plan alone.
SMALL_BYTES = 150 << 20
# Of the weights in one process, unless a single model has more. There are two processes at a time.
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
        """At most: native types have fewer. Emulated bf16x3 has each weight as two float32."""
        return self.float32_bytes * (2 if self.type == "bf16x3 emulated" else 1)


def distinct(isa_of_cap: dict) -> dict:
    """Of caps and the instruction sets that the server has with them, the first cap of each."""
    first = {}
    for cap, isa in isa_of_cap.items():
        first.setdefault(isa, cap)
    return {cap: isa for isa, cap in first.items()}


def groups(served: list) -> list:
    """Lists of those that one process serves."""
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
