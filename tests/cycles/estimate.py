"""Prints the cycles of arm64's inner loops, and those that the units need for their products, according to llvm-mca."""
import argparse
import json
import pathlib
import re
import subprocess
import sys
from typing import NamedTuple

LLVM_MCA = "llvm-mca-19"
OBJDUMP = "aarch64-linux-gnu-objdump"
CPUS = ("neoverse-n1", "neoverse-n2", "neoverse-v1", "neoverse-v2")
WITHOUT_MATRICES = {"neoverse-n1"}  # has neither i8mm nor bf16
PASSES = 1000
PRODUCT = re.compile(r"(fmla|sdot|smmla|bfmmla|bfdot) ")
BRANCH = re.compile(r"(?:b\.\w+|cbn?z \w+,|tbn?z \w+, #\d+,) *([0-9a-f]+) <")


class Kernel(NamedTuple):
    name: str
    file: str
    function: str  # a pattern of its name
    product: str
    needs_matrices: bool = False


GEMM, ATTENTION = "gemm/CMakeFiles/*/vector_gemm.cc.o", "attention/CMakeFiles/*/attend_block.cc.o"
VALUES, SCORES = r"{0}::AddValues<", r"^(?!.*{0}::AddValues<).*{0}"
F32, BF16 = (rf"VectorProducts<\(attendant::AttentionOperands\){number}>" for number in (0, 2))
KERNELS = (
    Kernel("f32", GEMM, "MultiplyRows<float,", "fmla"),
    Kernel("bf16_weights", GEMM, "MultiplyRows<hwy::bfloat16_t,", "fmla"),
    Kernel("f16_weights", GEMM, "MultiplyRows<(half|hwy::float16_t),", "fmla"),
    Kernel("sdot", GEMM, "MultiplyInt8Rows<", "sdot"),
    Kernel("smmla", GEMM, "Int8Matrix,", "smmla", True),
    Kernel("bfmmla", GEMM, "Bf16Matrix,", "bfmmla", True),
    Kernel("attention.scores", ATTENTION, SCORES.format(F32), "fmla"),
    Kernel("attention.values", ATTENTION, VALUES.format(F32), "fmla"),
    Kernel("bf16_attention.scores", ATTENTION, SCORES.format(BF16), "bfdot", True),
    Kernel("bf16_attention.values", ATTENTION, VALUES.format(BF16), "bfdot", True),
)


def functions_of(objects: pathlib.Path) -> list:
    """Returns (name, [(address, instruction)]) of each function."""
    text = subprocess.run([OBJDUMP, "-d", "-C", "--no-show-raw-insn", objects], capture_output=True, text=True,
                          check=True).stdout
    found = []
    for line in text.splitlines():
        if header := re.match(r"[0-9a-f]+ <(.*)>:$", line):
            found.append((header[1], []))
        elif code := re.match(r"\s+([0-9a-f]+):\s+(.*)", line):
            found[-1][1].append((int(code[1], 16), re.sub(r"\s*//.*", "", code[2]).replace("\t", " ")))
    return found


def inner_loops(code: list):
    """Yields the instructions of each loop that has no branch but its last instruction."""
    indices = {address: index for index, (address, _) in enumerate(code)}
    for end, (_, instruction) in enumerate(code):
        begin = indices.get(int(branch[1], 16)) if (branch := BRANCH.match(instruction)) else None
        if begin is None or begin > end:
            continue
        body = [text for _, text in code[begin:end + 1]]
        if not any(re.match(r"(b|bl|blr|br|ret|b\..*) |ret$", text) or BRANCH.match(text) for text in body[:-1]):
            yield body


def widest_loop(functions: list, kernel: Kernel) -> list:
    """Returns the loop with the most products: it computes all rows but the last few."""
    loops = [body for name, code in functions if re.search(kernel.function, name) for body in inner_loops(code)]

    def count(body: list) -> int:
        return sum(text.startswith(kernel.product + " ") for text in body)

    widest = max(loops, key=count, default=[])
    if not count(widest):
        sys.exit(f"{kernel.name}: expected a loop with {kernel.product} in a function named {kernel.function}; got none; "
                 "update KERNELS of estimate.py")
    return widest


def analyse(body: list, cpu: str) -> str:
    """Returns what llvm-mca says of many passes."""
    assembly = "\n".join([".arch armv8.6-a", "loop:", *(re.sub(r"[0-9a-f]+ <.*>", "loop", text) for text in body), ""])
    return subprocess.run([LLVM_MCA, "-mtriple=aarch64-linux-gnu", f"-mcpu={cpu}", "-mattr=+i8mm,+bf16,+dotprod",
                           f"-iterations={PASSES}"], input=assembly, capture_output=True, text=True, check=True).stdout


def cycles(body: list, cpu: str) -> float:
    """Returns the cycles of one pass."""
    return int(re.search(r"Total Cycles: +(\d+)", analyse(body, cpu))[1]) / PASSES


def needed_cycles(products: list, cpu: str) -> float:
    """Returns the cycles in which the units can execute the products, if none waits for another."""
    return float(re.search(r"Block RThroughput: +([\d.]+)", analyse(products, cpu))[1])


def object_of(kernels: pathlib.Path, pattern: str) -> pathlib.Path:
    found = next(kernels.glob(pattern), None)
    if found is None:
        sys.exit(f"{kernels / pattern}: not found; update GEMM or ATTENTION of estimate.py")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", type=pathlib.Path, required=True, help="the directory of the built kernels")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    objects = {file: functions_of(object_of(options.kernels, file)) for file in (GEMM, ATTENTION)}
    figures = {}
    print(f"{'cycles: products / loop':33}" + "".join(f"{cpu:>20}" for cpu in CPUS))
    for kernel in KERNELS:
        body = widest_loop(objects[kernel.file], kernel)
        products = [text for text in body if PRODUCT.match(text)]
        row = f"{kernel.name:21} {len(products):3} of {len(body):3} "
        for cpu in CPUS:
            if kernel.needs_matrices and cpu in WITHOUT_MATRICES:
                row += f"{'-':>20}"
                continue
            needed, whole = needed_cycles(products, cpu), cycles(body, cpu)
            figures[f"cycles.{kernel.name}.{cpu}.busy"] = needed / whole
            row += f"{needed:6.1f} /{whole:5.1f} = {needed / whole:4.2f}"
        print(row, flush=True)
    if options.json:
        version = subprocess.run([LLVM_MCA, "--version"], capture_output=True, text=True, check=True).stdout
        machine = {"model": re.search(r"LLVM version \S+", version)[0], "isa": ", ".join(CPUS)}
        options.json.write_text(json.dumps({"machine": machine, "figures": figures}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
