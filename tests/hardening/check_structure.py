#!/usr/bin/env python3
"""check_structure.py [TREE]: fails if the sources of `proto`, `engine`, `server` and `client` break a rule of their structure.

- A file may include files of its own folder and of the folders that ORDER names before it, within what its top-level
  folder may use (USES).
- Headers of libraries that take seconds to compile are included where HEAVY says, and most of them in no header.
- A folder holds at most 30 source files; a file has at most 400 lines.
- At most 3 units (a header with its source file) include each other in a loop.
- A comment in a header names the thing at once: it does not begin with "What", "How", "Whose", "Of" or "The same".
- A function has at most 60 lines and 6 parameters (where Universal Ctags is installed).
Prints every breach. Lists the order with --order."""

import collections
import json
import pathlib
import re
import shutil
import subprocess
import sys

# A folder may include those above it in this list, whose first is the lowest.
ORDER = """
proto
engine/base
engine/model
engine/kernels
engine/kernels/gemm
engine/kernels/norm
engine/kernels/attention
engine/checkpoint/files
engine/checkpoint/families
engine/checkpoint/torch
engine/checkpoint/late_interaction
engine/checkpoint
engine/layers/state
engine/layers/extras
engine/layers
server/hub
server/text/base
server/settings
server/metrics
server/base
server/text/models
server/text
server/cache
server/security
server/http
server/page
server/wire
server/batching
server/admission
server/transport
server/tensors
server/host
server/models
server/cross_kv
server/request
server/account
server/text_api
server/execution
server/repository
server/inference
server/rpc/call
server/rpc
server/rest
server/text_calls
server/describe
server
client
client/files
client/json
client/flags
client/inspect
client/load_requests
client/load_test
client/load_report
client/cli
client/commands/load
client/commands/text
client/commands
client/examples/cpp
client/examples/cpp_library
""".split()
USES = {"proto": {"proto"}, "engine": {"engine"}, "server": {"server", "engine", "proto"}, "client": {"client", "proto"}}
# Headers that take a second or more to compile: the folders whose files may include them, where "a/" is `a` and all folders in
# it, and whether headers may; elsewhere these include a forward declaration or a type of our own. A second is paid by every
# file that includes such a header, and by every file that includes that one.
HEAVY = {
    "CLI/": ({"client/flags", "server/settings"}, False),
    "hwy/": ({"engine/kernels/"}, True),
    "nlohmann/json.hpp": ({"engine/checkpoint/files", "proto", "server/describe", "server/rest", "server/text/base",
                           "client/cli", "client/files", "client/inspect", "client/json", "client/load_report", "client/load_requests"},
                          {"engine/checkpoint/files/json.h", "server/rest/infer_json_reader.h"}),
    "grpcpp/": ({"server/wire", "server/tensors", "server/request", "server/execution", "server/inference", "server/rpc/",
                 "server/rest", "server/text_calls", "client", "client/commands", "client/examples/cpp"}, True),
    "spdlog/": ({"server/"}, False),
    "prometheus/": ({"server/metrics"}, {"server/metrics/gauges.h"}),
}
MOST_FILES, MOST_LINES, MOST_LOOPING_UNITS = 30, 400, 3
MOST_FUNCTION_LINES, MOST_PARAMETERS = 60, 6
ROUNDABOUT = re.compile(r"// (What|How|Whose|Of|The same)\b")
ANY_INCLUDE = re.compile(r'\s*#\s*include [<"]([^>"]+)[>"]')
INCLUDE = re.compile(r'\s*#\s*include "([^"]+)"')
# Macros that ctags would take for function names.
MACROS = ("HWY_ATTR,HWY_INLINE,HWY_API,HWY_NOINLINE,ABSL_EXCLUSIVE_LOCKS_REQUIRED+,ABSL_SHARED_LOCKS_REQUIRED+,"
          "ABSL_GUARDED_BY+,ABSL_LOCKS_EXCLUDED+")


def read_tree(root):
    """Returns {path: lines} of all sources."""
    files = {}
    for top in USES:
        for path in sorted((root / top).rglob("*")):
            if path.suffix in (".h", ".cc"):
                files[path.relative_to(root).as_posix()] = path.read_text().splitlines()
    return files


def folder_of(path):
    return path.rpartition("/")[0]


def includes_of(path, lines, known):
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if match and match.group(1) in known:
            yield number, match.group(1)


def check_order(files):
    rank = {folder: number for number, folder in enumerate(ORDER)}
    for folder in sorted({folder_of(path) for path in files} - set(rank)):
        yield f"{folder}: this folder has no place in ORDER of check_structure.py"
    for path, lines in files.items():
        own = folder_of(path)
        for number, included in includes_of(path, lines, files):
            other = folder_of(included)
            if included.split("/")[0] not in USES[own.split("/")[0]]:
                yield f"{path}:{number}: {own.split('/')[0]} may not include {included}"
            elif own.split("/")[0] == included.split("/")[0] and rank.get(other, 0) > rank.get(own, len(rank)):
                yield f"{path}:{number}: {own} comes before {other}, so it may not include {included}"


def check_heavy(files):
    for path, lines in files.items():
        folder = folder_of(path)
        for number, line in enumerate(lines, 1):
            match = ANY_INCLUDE.match(line)
            for header, (folders, headers) in HEAVY.items():
                if not match or not match.group(1).startswith(header):
                    continue
                if folder not in folders and not any(f"{folder}/".startswith(f) for f in folders if f.endswith("/")):
                    yield f"{path}:{number}: only {', '.join(sorted(folders))} may include {header}, which takes long to compile"
                elif path.endswith(".h") and headers is not True and path not in (headers or ()):
                    yield f"{path}:{number}: a header may not include {header}, which takes long to compile"


def check_sizes(files):
    for folder, count in collections.Counter(map(folder_of, files)).items():
        if count > MOST_FILES:
            yield f"{folder}: {count} source files, at most {MOST_FILES}"
    for path, lines in files.items():
        if len(lines) > MOST_LINES:
            yield f"{path}: {len(lines)} lines, at most {MOST_LINES}"


def strongly_connected(graph):
    """Returns the groups of more than one node, by Tarjan's algorithm."""
    index, low, stack, groups = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            group = []
            while not group or group[-1] != node:
                group.append(stack.pop())
            if len(group) > 1:
                groups.append(sorted(group))

    sys.setrecursionlimit(10000)
    for node in sorted(graph):
        if node not in index:
            visit(node)
    return groups


def check_loops(files):
    unit_of = lambda path: path.rpartition(".")[0]
    graph = {unit_of(path): set() for path in files}
    for path, lines in files.items():
        for _, included in includes_of(path, lines, files):
            if unit_of(included) != unit_of(path):
                graph[unit_of(path)].add(unit_of(included))
    for group in strongly_connected(graph):
        if len(group) > MOST_LOOPING_UNITS:
            yield f"{len(group)} units include each other in a loop, at most {MOST_LOOPING_UNITS}: {', '.join(group)}"


def parameter_count(signature):
    inside = signature.strip()[1:signature.rfind(")")].strip()
    if inside in ("", "void"):
        return 0
    depth, count = 0, 1
    for character in inside:
        depth += (character in "<([{") - (character in ">)]}")
        count += character == "," and depth == 0
    return count


def check_functions(root, files):
    ctags = ["ctags", "--language-force=C++", "--kinds-C++=fp", "--fields=+neS", "--output-format=json", "-f", "-",
             "-L", "-", "-I", MACROS]
    tags = subprocess.run(ctags, input="\n".join(files), capture_output=True, text=True, cwd=root, check=True).stdout
    for tag in map(json.loads, tags.splitlines()):
        where = f"{tag.get('path')}:{tag.get('line')}: {tag.get('name')}"
        if tag.get("kind") == "function" and "end" in tag:
            lines = tag["end"] - tag["line"] + 1
            if lines > MOST_FUNCTION_LINES:
                yield f"{where}: a function of {lines} lines, at most {MOST_FUNCTION_LINES}"
        if parameter_count(tag.get("signature", "()")) > MOST_PARAMETERS:
            yield f"{where}: {parameter_count(tag['signature'])} parameters, at most {MOST_PARAMETERS}"


def check_comments(files):
    for path, lines in files.items():
        for number, (before, line) in enumerate(zip(["", *lines], lines), 1):
            if path.endswith(".h") and ROUNDABOUT.match(line) and not before.startswith("//"):
                yield f"{path}:{number}: begin with what the thing is, not with \"{ROUNDABOUT.match(line).group(1)}\""


def main():
    if sys.argv[1:] == ["--order"]:
        print("\n".join(ORDER))
        return 0
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    files = read_tree(root)
    breaches = [*check_order(files), *check_heavy(files), *check_sizes(files), *check_loops(files), *check_comments(files)]
    if shutil.which("ctags"):
        breaches += check_functions(root, files)
    print(*breaches, sep="\n")
    print(f"{len(files)} source files, {len(breaches)} breaches of the structure")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
