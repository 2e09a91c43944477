"""The contenders: the engine, the bound in its forms, and the peers, each in its best documented configurations."""
import dataclasses
import pathlib

# Without these settings, glibc returns large buffers to the system after every call and faults them in again; peers
# reach their best figures only with them.
PEER_ENVIRONMENT = {
    "GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=4294967296:glibc.malloc.trim_threshold=17179869184",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",
    "CUDA_VISIBLE_DEVICES": "",
}
# The server sets this for itself; see server/host/library_variables.h.
ENGINE_ENVIRONMENT = {"GOMP_SPINCOUNT": "1000"}
# The loader finds these libraries.
JEMALLOC, TCMALLOC = "libjemalloc.so.2", "libtcmalloc_minimal.so.4"


@dataclasses.dataclass(frozen=True)
class Contender:
    name: str
    # "engine", "onednn" (the engine with oneDNN's products only), "form" (the engine with other types), "bound",
    # "bound16" (T rounded up to 16, not 64), "products" (the engine's own use of oneDNN's products, without anything
    # else) or "peer"
    role: str
    command: tuple
    environment: dict = dataclasses.field(default_factory=dict)
    streams: int = 1  # batches in flight


@dataclasses.dataclass(frozen=True)
class _PeerConfiguration:
    name: str
    script: str
    flags: tuple
    dtypes: tuple
    streams: int = 1
    allocator: str = ""  # replaces glibc's
    full_only: bool = False
    models: str = "all"  # or "large" or "small": only large models (see Model.large), or only others


_PEERS = (
    _PeerConfiguration("openvino", "openvino_peer.py", (), ("f32", "bf16", "int8")),
    _PeerConfiguration("openvino-2-streams", "openvino_peer.py", (), ("f32", "bf16", "int8"), streams=2,
                       models="small"),
    _PeerConfiguration("onnxruntime", "onnxruntime_peer.py", (), ("f32", "int8")),
    _PeerConfiguration("ctranslate2-1x2", "ctranslate2_peer.py", (), ("f32", "int8")),
    _PeerConfiguration("ctranslate2-2x1", "ctranslate2_peer.py", (), ("f32", "int8"), streams=2,
                       models="small"),
    _PeerConfiguration("torch-eager", "torch_peer.py", ("--mode", "eager"), ("f32", "bf16", "int8")),
    _PeerConfiguration("torch-nested", "torch_peer.py", ("--mode", "nested"), ("f32", "bf16"), models="small"),
    _PeerConfiguration("torch-compiled", "torch_peer.py", ("--mode", "compiled"), ("bf16",)),
    _PeerConfiguration("torch-compiled", "torch_peer.py", ("--mode", "compiled"), ("f32",), full_only=True,
                       models="small"),
    _PeerConfiguration("torch-compiled", "torch_peer.py", ("--mode", "compiled"), ("f32",), models="large"),
    _PeerConfiguration("llama.cpp", "llama_cpp_peer.py", (), ("f32",), models="large"),
    _PeerConfiguration("torch-eager-jemalloc", "torch_peer.py", ("--mode", "eager"), ("f32", "bf16"),
                       allocator=JEMALLOC, full_only=True, models="small"),
    _PeerConfiguration("torch-eager-tcmalloc", "torch_peer.py", ("--mode", "eager"), ("f32", "bf16"),
                       allocator=TCMALLOC, full_only=True, models="small"),
)

# How each peer is capped to AVX2. The others cannot be capped: OpenVINO, for example, reads the same variable as oneDNN
# but then fails to compile models on a CPU that has more.
_ONEDNN_AVX2 = {"ONEDNN_MAX_CPU_ISA": "AVX2"}
_AVX2_ENVIRONMENTS = {
    "ctranslate2_peer.py": _ONEDNN_AVX2 | {"CT2_FORCE_CPU_ISA": "AVX2"},
    "torch_peer.py": _ONEDNN_AVX2 | {"ATEN_CPU_CAPABILITY": "avx2", "FBGEMM_ENABLE_INSTRUCTIONS": "AVX2",
                                     "MKL_ENABLE_INSTRUCTIONS": "AVX2"},
}

_PEER_DTYPES = {"bf16x3": "f32"}  # a type that no peer offers is compared with the type that it replaces


# The engine in another type: the type with which it is compared -> (name, flags). The last value of a flag counts.
_FORMS = {"f32": ("attendant-bf16-file", ("--weights", "bf16")), "int8": ("attendant-f32", ("--dtype", "f32"))}


def own_contenders(binaries: pathlib.Path, source: str, dtype: str, threads: int, isa: str = "best") -> list:
    """The engine as users get it, and matrix products only, with at most this instruction set."""
    products = {"bound": ("--row-multiple", "64"), "bound16": ("--row-multiple", "16"),
                "products": ("--products", "engine")}
    bounds = [Contender(f"{role}-{split}", role, (str(binaries / "bound_worker"), *_common(source, dtype, threads, isa),
                                                  "--split", split, *flags))
              for role, flags in products.items() for split in ("team", "rows")]
    return [_engine(binaries, source, dtype, threads, isa), *bounds]


def onednn_contender(engine: Contender) -> Contender:
    """The engine as it would be without its own GEMMs, to run next to one that has chosen them."""
    return dataclasses.replace(engine, name="attendant-onednn", role="onednn",
                               command=(*engine.command, "--gemm", "onednn"))


def form_contender(engine: Contender, dtype: str) -> Contender | None:
    """The engine with other types than `dtype`, if one is compared with it."""
    if dtype not in _FORMS:
        return None
    name, flags = _FORMS[dtype]
    return dataclasses.replace(engine, name=name, role="form", command=(*engine.command, *flags))


def _engine(binaries: pathlib.Path, source: str, dtype: str, threads: int, isa: str) -> Contender:
    return Contender("attendant", "engine", (str(binaries / "engine_worker"), *_common(source, dtype, threads, isa)),
                     ENGINE_ENVIRONMENT)


def _common(source: str, dtype: str, threads: int, isa: str) -> tuple:
    cap = () if isa == "best" else ("--isa", isa)
    return ("--model", source, "--dtype", dtype, "--threads", str(threads), *cap)


def can_cap_peers(isa: str) -> bool:
    """Whether there are peers to compare with the engine that is capped to this instruction set."""
    return isa in ("best", "avx2")


def peer_contenders(python: pathlib.Path, source: str, dtype: str, threads: int, large: bool, full: bool,
                    isa: str = "best") -> list:
    """The peers of the engine with at most this instruction set; without those that cannot be capped to it."""
    scripts = pathlib.Path(__file__).parent / "peers"
    dtype = _PEER_DTYPES.get(dtype, dtype)
    made = []
    for peer in _PEERS:
        if dtype not in peer.dtypes or (peer.full_only and not full) or (
                peer.models == ("small" if large else "large")) or (
                isa == "avx2" and peer.script not in _AVX2_ENVIRONMENTS):
            continue
        environment = dict(PEER_ENVIRONMENT)
        if isa == "avx2":
            environment |= _AVX2_ENVIRONMENTS[peer.script]
        if peer.allocator:
            environment["LD_PRELOAD"] = peer.allocator
        command = (str(python), str(scripts / peer.script), "--model", source, "--dtype", dtype, "--threads",
                   str(threads), "--streams", str(peer.streams), *peer.flags)
        made.append(Contender(peer.name, "peer", command, environment, peer.streams))
    return made


def reference_contender(python: pathlib.Path, source: str, threads: int) -> Contender:
    """The contender that answers are compared with: torch in float64."""
    script = pathlib.Path(__file__).parent / "peers" / "torch_peer.py"
    command = (str(python), str(script), "--model", source, "--dtype", "f64", "--threads", str(threads),
               "--streams", "1", "--mode", "eager")
    return Contender("torch-float64", "reference", command, PEER_ENVIRONMENT)
