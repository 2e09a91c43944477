"""Runs what the pages of the project show against a server, and looks for the flags, files, links and anchors that they name.

    check_readme.py ROOT BIN_FOLDER SCRATCH_FOLDER

The pages are README.md and every other .md file in .github and the source folders; README.md has to link to each of them.
The examples of attendant-client's helps are run too.
Commands that need a network, Docker, a checkpoint or an hour are not run.
"""
import contextlib
import functools
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT, BIN, SCRATCH = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
FOLDERS = (".github", "client", "docker", "engine", "proto", "server", "tests")
PATH = rf"(?:\.ci|{'|'.join(map(re.escape, FOLDERS))})/[\w./-]+"  # relative to ROOT
SCRIPTS = ("server/run", "tests/run", "tests/bench/run", "tests/families/run", "tests/python/run",
           "tests/reliability/run", "tests/interop/run", "tests/deploy/run", "tests/text/run")
# The models that commands name, which do not need their files here.
STAND_INS = [flag for model in ("minilm=synthetic:minilm-l6", "m=synthetic:tiny", "words=synthetic:words",
                                "worked-example=worked-example") for flag in ("--model", model)]
TEXTS = ["--model", "words=synthetic:words"]
NEED_A_CHECKPOINT = ("tokenizer", "classify", "rerank")

WITH_PROGRAMS = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}"}


class Page:
    def __init__(self, path: pathlib.Path):
        self.path = path
        self.name = str(path.relative_to(ROOT))
        self.text = path.read_text()
        self._blocks = re.findall(r"^```(\w*)\n(.*?)^```$", self.text, re.M | re.S)
        self.prose = re.sub(r"^```.*?^```$", "", self.text, flags=re.M | re.S)

    def blocks(self, language: str) -> list:
        return [body for name, body in self._blocks if name == language]

    def lines(self) -> list:
        return [line for body in self.blocks("sh") for line in body.splitlines()]

    def curl_commands(self) -> list:
        """Returns the arguments of each command that calls the server's HTTP port, which may have several lines."""
        commands = []
        for body in self.blocks("sh") + self.blocks("bash"):
            text = ""
            for line in body.splitlines():
                text += line + "\n"
                with contextlib.suppress(ValueError):  # a quotation goes on
                    words, text = shlex.split(text, comments=True), ""
                    commands.append(words)
        return [words[1:] for words in commands if words[:1] == ["curl"] and any("localhost:8002" in word for word in words)]

    def anchors(self) -> set:
        """The anchors that GitHub gives the headings."""
        headings = re.findall(r"^#+ (.+)$", self.prose, re.M)
        return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def find_pages() -> list:
    paths = [ROOT / "README.md"]
    for folder in FOLDERS:
        found = sorted((ROOT / folder).rglob("*.md"))
        paths += [path for path in found if not {"node_modules", ".venv"} & set(path.parts)]  # left by the examples
    return [Page(path) for path in paths]


def run(arguments: list, **options) -> str:
    print("+", shlex.join(map(str, arguments)), flush=True)
    done = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, **options)
    print(done.stdout)
    if done.returncode != 0:
        sys.exit(f"exit code {done.returncode}")
    return done.stdout


@contextlib.contextmanager
def server(flags: list):
    """Runs a server and yields the addresses of its gRPC port and of its HTTP port."""
    ports = SCRATCH / "ports"
    ports.unlink(missing_ok=True)
    process = subprocess.Popen([BIN / "attendant-server", *flags, "--address", "127.0.0.1", "--port", "0",
                                "--http-port", "0", "--port-file", ports], stderr=subprocess.PIPE, text=True)
    try:
        while not ports.exists():  # each iteration waits for a line of the log, which ends with the server
            if not process.stderr.readline():
                sys.exit("the server did not start")
        numbers = dict(line.split("=") for line in ports.read_text().split())
        yield tuple(f"127.0.0.1:{numbers[name]}" for name in ("grpc_port", "http_port"))
    finally:
        process.terminate()
        process.communicate(timeout=60)


def client_commands(page: Page) -> list:
    """Returns the arguments of each attendant-client line."""
    commands = [shlex.split(line, comments=True) for line in page.lines()]
    return [words[1:] for words in commands
            if words and pathlib.Path(words[0]).name == "attendant-client" and words[1] not in NEED_A_CHECKPOINT]


def describe_commands(page: Page) -> list:
    """Returns the attendant-server lines that end by themselves."""
    return [line for line in page.lines() if line.startswith("attendant-server --describe")]


def run_client(arguments: list, address: str) -> None:
    if arguments[0] == "load-test":  # shorter
        arguments = [*arguments, "--requests", "100", "--warmup", "0"]
    run([BIN / "attendant-client", *arguments, "--address", address], cwd=SCRATCH)


def run_curl(arguments: list, address: str) -> None:
    run(["curl", "-sS", "--fail-with-body", *(word.replace("localhost:8002", address) for word in arguments)])


def run_python(page: Page, address: str) -> None:
    """A script's expected output is in its last line, a comment, where "..." stands for further digits, and at the end
    for more."""
    for script in page.blocks("python"):
        shown = script.rstrip().splitlines()[-1].removeprefix("# ")
        run(["protoc", f"--proto_path={ROOT / 'proto'}", f"--python_out={SCRATCH}", "attendant/v1/tensor.proto",
             "attendant/v1/encoder_service.proto"])
        printed = run([sys.executable, "-c", script.replace("localhost:8001", address)],
                      env=os.environ | {"PYTHONPATH": str(SCRATCH)})
        if not re.match(re.escape(shown).replace(r"\.\.\.", ".*"), printed):
            sys.exit(f"{page.name} shows: {shown}")


@functools.cache
def helps() -> list:
    """The help of every program that a page may name flags of."""
    texts = [run([BIN / "attendant-client", "--help"]), run([BIN / "attendant-server", "--help"])]
    return texts + list(command_helps().values()) + [run([ROOT / script, "--help"]) for script in SCRIPTS]


@functools.cache
def command_helps() -> dict:
    """The help of each command of attendant-client."""
    client = BIN / "attendant-client"
    commands = re.findall(r"^  ([a-z][a-z-]*)  ", run([client, "--help"]), re.M)
    return {command: run([client, command, "--help"]) for command in commands}


def run_examples(plain: str, stand_ins: str, texts: str) -> None:
    """Runs the examples of the helps, with the server at `stand_ins` where they name a model, or at `texts` with texts."""
    function = f"""set -e
        attendant-client() {{
          local address={plain}
          if [[ "$*" == *--prompt-name* ]]; then return; fi  # of a model with prompts
          if [[ $1 == embed || $1 == tokenize || "$*" == *--text* ]]; then
            command attendant-client "${{@/#minilm/words}}" --address {texts}
            return
          fi
          if [[ "$*" == *minilm* || "$*" == *--model* || $1 == drop-memory ]]; then address={stand_ins}; fi
          if [[ $1 == load-test ]]; then set -- "$@" --requests 100 --warmup 0; fi
          command attendant-client "$@" --address "$address"
        }}
        """
    for command, text in command_helps().items():
        if command not in NEED_A_CHECKPOINT:
            run(["bash", "-c", function + text.split("\nExample\n", 1)[1]], cwd=SCRATCH, env=WITH_PROGRAMS)


def wrong_link(page: Page, link: str, pages: list) -> bool:
    name, _, anchor = link.partition("#")
    target = (page.path.parent / name).resolve() if name else page.path
    if not target.exists():
        return True
    found = [other for other in pages if other.path == target]
    return bool(anchor and found) and anchor not in found[0].anchors()


def check_names(page: Page, pages: list) -> list:
    flags = set(re.findall(r"`(--[a-z-]+)", page.prose))
    unknown = [flag for flag in flags if not any(re.search(flag + r"\b(?!-)", text) for text in helps())]
    links = [link for link in re.findall(r"\]\(([^)]+)\)", page.text) if "://" not in link]
    wrong = [link for link in links if wrong_link(page, link, pages)]
    paths = set(re.findall(f"`({PATH})", page.prose)) | set(re.findall(rf"(?<![\w./-])({PATH})", "\n".join(page.lines())))
    missing = [path for path in paths if not (ROOT / path).exists() and not (ROOT / f"{path}.h").exists()]
    for body in page.blocks("json"):
        json.loads(body)
    return [f"{page.name} names {name} {found}" for name, found in
            (("unknown flags", unknown), ("wrong links", wrong), ("missing files", missing)) if found]


def check_all_are_linked(pages: list) -> list:
    links = re.findall(r"\]\(([^)#]+)\)", pages[0].text)
    return [f"README.md does not link to {page.name}" for page in pages[1:] if page.name not in links]


def check_directories(pages: list) -> list:
    """The pages with tables of directories link to every directory of sources."""
    errors = []
    for page in pages:
        if page.name not in ("server/development.md", "engine/README.md", "engine/checkpoint/README.md", "client/README.md"):
            continue
        links = re.findall(r"\]\(([\w-]+)\)", page.text)
        folders = sorted({path.parent.name for path in page.path.parent.glob("*/*.cc")} - set(links))
        errors += [f"{page.name} does not link to the directory {folder}" for folder in folders]
    return errors


def main() -> None:
    SCRATCH.mkdir(parents=True, exist_ok=True)
    pages = find_pages()
    errors = [error for page in pages for error in check_names(page, pages)]
    errors += check_all_are_linked(pages) + check_directories(pages)
    if errors:
        sys.exit("\n".join(errors))
    for line in (line for page in pages for line in describe_commands(page)):
        run(["bash", "-o", "pipefail", "-c", line], env=WITH_PROGRAMS)
    commands = [arguments for page in pages for arguments in client_commands(page)]
    calls = [arguments for page in pages for arguments in page.curl_commands()]
    with server([]) as (plain, _), server(STAND_INS) as (stand_ins, http), server(TEXTS) as (texts, _):
        for page in pages:
            run_python(page, stand_ins)
        (SCRATCH / "texts.txt").write_text("hello world\nThe cat sits on the mat.\n")
        for arguments in commands:
            if arguments[0] in ("embed", "tokenize") or "--text" in arguments:
                run_client(["words" if word == "minilm" else word for word in arguments], texts)
            else:
                run_client(arguments, stand_ins if "--model" in arguments else plain)
        for arguments in calls:
            run_curl(arguments, http)
        run_examples(plain, stand_ins, texts)
    print(f"{len(pages)} pages, {len(commands)} commands of attendant-client, {len(calls)} of curl, {len(command_helps())} helps: "
          "all as shown")


main()
