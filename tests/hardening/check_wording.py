#!/usr/bin/env python3
"""check_wording.py [--counts | --list] [TREE]: fails if a text that users read contains a phrase that the project avoids, or if a page is too long.

Texts are the string literals of the sources (messages, help, log lines), the comments of the protocol, the comments of the
headers of HEADERS, the strings of the Python client, and the pages. Prints each breach as PATH:LINE with the phrase and the
usual replacement. --counts prints the number of breaches by rule and place, in the form of ALLOWED. --list prints every message,
help text and log line of the sources for reading aloud, with … for values.
"""

import collections
import pathlib
import re
import sys

# Rule: a regular expression, and how to write the same thing.
RULES = {
    "what": (r"(?:^|[.:;] )What (?:is|are|was|has|had|it|its|the|they|an?|no|can|could|may)\b", "the thing itself: \"Tokens that …\""),
    "that of": (r"\b[Tt](?:hat|hose) of\b", "the noun again"),
    "is no": (r"(?<![Tt]here )\b(?:is|are|was|were) no (?!(?:more|less|fewer|other|such|further|lower|higher|slower|faster|longer|shorter|larger|smaller)\b)[A-Za-z]",
              "\"is not a …\", \"is not …\" or \"invalid …\""),
    "nobody": (r"\b(?:[Nn]o|[Ss]ome|[Aa]ny|[Ee]very)body\b", "the thread, request or client"),
    "as": (r"[,;] as (?:it|they|there|(?:the|its|an?|no|this|these) (?:[\w'-]+ ){0,3}(?:is|are|has|have|was|can|needs?|takes?))\b",
           "\"because …\", or the reason in parentheses"),
    "beside": (r"\b[Bb]eside\b", "\"with\", \"next to\" or \"in addition to\""),
    "but for": (r"\b(?:but for|(?:none|nothing) but)\b", "\"except for\" or \"only\""),
    "answer": (r"\b(?:[Aa]lso answer|[Aa]nswers? (?:the|an?|what|its?|how|all|with)|[Tt]ells? (?:the|an?|what|its?|how|all|where))\b",
               "\"returns\", \"reports\" or \"shows\""),
    "comes": (r"\b(?:ha[sd]|have) (?:left|come)\b|\b[Ii]s gone\b|\bbrings?\b", "\"send\", \"receive\", \"contain\" or \"end\""),
    "got": (r"[,:] got\b|[,;:] found\b", "the separator \"; got\""),
    "got it": (r"; got (?:it|some|both|one|a tensor)\b", "the value that was received"),
    "expected not": (r"\bexpected (?:another|either it|neither|false,|none,)", "\"not supported\", \"cannot be combined with\" or \"requires\""),
    "takes no": (r"\b[Tt]akes? no (?!slot|time|space|part)[a-z]", "\"does not accept …\""),
    "at start": (r"\bat (?:the )?start\b(?! of)", "\"at startup\""),
    "in all": (r"\bin all(?= ?(?:$|[;,.()]))", "\"in total\""),
    "own": (r"\bof (?:its|their) own\b(?! [a-z])", "\"its own …\" or \"separate\""),
    "in vain": (r"\b(?:in vain|for want of|in place of)\b", "\"without effect\", \"because there is no …\" or \"instead of\""),
    "folder": (r"\b[Ff]olders?\b", "\"directory\""),
    "british": (r"\b(?:[Cc]olour|[Bb]ehaviour|[Nn]eighbouring|[Cc]entred|[A-Za-z]*(?:al|im|ar)is(?:e[ds]?|ing|ation)s?\b)",
                "the American spelling"),
    "coined": (r"\b(?:exit norm|vocabulary head|table of (?:words|distances)|keyless rows?|masked language model|time-out)\b",
               "\"final norm\", \"MLM head\", \"embeddings\", \"fully masked\", \"timeout\""),
}
# The breaches that a place may still have, by rule. Lower them when texts improve: --counts prints this table.
ALLOWED = {
    "that of": {"engine": 2, "server": 1},
    "answer": {"engine": 1},
}
# Headers whose comments are checked. Each is read by those who use a library of the project.
HEADERS = ("client/*.h", "proto/*.h", "engine/checkpoint/checkpoint.h", "engine/layers/encoder.h",
           "engine/model/model_description.h", "server/text/tokenizer.h")
MOST_WORDS, MOST_SERVER_WORDS, MOST_README_LINES = 1800, 1200, 130

Text = collections.namedtuple("Text", "path line words")  # `words` may have several lines, of which `line` is the first
CODE = re.compile(r"""
    //[^\n]* | /\*.*?\*/ | '(?:\\.|[^'\\\n])*'        # what is not a string literal
  | R"(?P<mark>[^(\s]*)\((?P<raw>.*?)\)(?P=mark)"     # a raw one
  | "(?P<plain>(?:\\.|[^"\\\n])*)"                    # a plain one
""", re.S | re.X)


def matching(root, *patterns):
    """The files of the tree that match, without what tools put there. It need not be a clone, and Git need not be installed."""
    found = {path.relative_to(root) for pattern in patterns for path in root.glob(pattern)}
    return sorted(path.as_posix() for path in found if not {"node_modules", ".venv", "build"} & set(path.parts))


def literals(path, source, by_statement=False):
    """Yields the string literals, adjacent ones joined; `by_statement`, all literals of a statement, joined by "…"."""
    words, line, end = "", 0, -1
    for match in CODE.finditer(source):
        text = match["plain"] if match["plain"] is not None else match["raw"]
        if text is None or source[source.rfind("\n", 0, match.start()) + 1:match.start()].lstrip().startswith("#"):
            continue
        between = source[end:match.start()].strip() if words else ""
        if by_statement and between and not re.search(r"[;{}]", between):
            words += "…"
        elif between:
            yield Text(path, line, words)
            words = ""
        if not words:
            line = source.count("\n", 0, match.start()) + 1
        words += text
        end = match.end()
    if words:
        yield Text(path, line, words)


def comments(path, source):
    """Yields each block of // comments as one text."""
    block, first = [], 0
    for number, line in enumerate([*source.splitlines(), ""], 1):
        match = re.match(r"(\s*|.*?[;{,] *)// ?(.*)$", line)
        if match and not match[1].strip():
            first = first if block else number
            block.append(match[2])
            continue
        if block:
            yield Text(path, first, "\n".join(block))
            block = []
        if match:
            yield Text(path, number, match[2])


def page(path, source):
    """The prose of a page, with as many lines as the page."""
    prose = re.sub(r"^```.*?^```$", lambda match: "\n" * match[0].count("\n"), source, flags=re.M | re.S)
    return Text(path, 1, re.sub(r"`[^`\n]*`|\]\([^)\n]*\)", "", prose))


def python_strings(path, source):
    """Yields the string literals and docstrings."""
    for match in re.finditer(r'[rf]{0,2}("""(.*?)"""|"((?:\\.|[^"\\\n])*)")', source, re.S):
        yield Text(path, source.count("\n", 0, match.start()) + 1, match[2] if match[2] is not None else match[3])


SOURCES = [f"{top}/**/*.{ending}" for top in ("proto", "engine", "server", "client") for ending in ("cc", "h")]


def all_messages(root):
    """Yields the literals that a person may read: messages, help and log lines."""
    for name in matching(root, *SOURCES):
        for text in literals(name, (root / name).read_text(encoding="utf-8"), by_statement=True):
            if re.search(r"[a-z] | [a-z]", text.words):
                yield text


def texts(root):
    def read(reader, *patterns):
        for name in matching(root, *patterns):
            yield from reader(name, (root / name).read_text(encoding="utf-8"))

    yield from read(literals, *SOURCES)
    yield from read(comments, "proto/attendant/**/*.proto", "proto/grpc/**/*.proto", "proto/inference/*.proto", *HEADERS)
    yield from read(python_strings, "client/python/attendant_client/**/*.py")
    for name in pages(root):
        yield page(name, (root / name).read_text(encoding="utf-8"))


def pages(root):
    tops = ("client", "docker", "engine", "proto", "server", "tests")
    return matching(root, "README.md", ".github/*.md", *(f"{top}/**/*.md" for top in tops))


def place_of(path):
    """Texts are counted by place: pages, or a top-level folder."""
    return "pages" if path.endswith(".md") else path.split("/")[0]


def find(root):
    """Yields (rule, place, message) of each breach."""
    for text in texts(root):
        # A phrase may be divided by the end of a line, but not by an empty one.
        words = re.sub(r"\s", " ", text.words.replace("\n\n", ". "))
        for rule, (pattern, instead) in RULES.items():
            for match in re.finditer(pattern, words):
                line = text.line + text.words.count("\n", 0, match.start())
                yield rule, place_of(text.path), f"{text.path}:{line}: \"{match[0].strip(' .:;(')}\" ({rule}): use {instead}"


def check_lengths(root):
    for name in pages(root):
        content = (root / name).read_text(encoding="utf-8")
        most = MOST_SERVER_WORDS if re.fullmatch(r"server/[^/]+\.md", name) else MOST_WORDS
        if len(content.split()) > most:
            yield f"{name}: {len(content.split())} words, at most {most}: split it by topic, or shorten it"
        if name == "README.md" and content.count("\n") > MOST_README_LINES:
            yield f"{name}: {content.count(chr(10))} lines, at most {MOST_README_LINES}"


def main():
    arguments = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    root = pathlib.Path(arguments[0] if arguments else ".").resolve()
    if "--list" in sys.argv:
        print(*(f"{text.path}:{text.line}: {text.words}" for text in all_messages(root)), sep="\n")
        return 0
    found = collections.defaultdict(list)
    for rule, place, message in find(root):
        found[rule, place].append(message)
    if "--counts" in sys.argv:
        for rule in RULES:
            counts = {place: len(found[rule, place]) for place in ("client", "engine", "proto", "server", "pages") if found[rule, place]}
            if counts:
                print(f"    {rule!r}: {counts},".replace("'", '"'))
        return 0
    breaches = list(check_lengths(root))
    for (rule, place), messages in found.items():
        allowed = ALLOWED.get(rule, {}).get(place, 0)
        if len(messages) > allowed:
            breaches += messages
            if allowed:
                breaches.append(f"{place}: {len(messages)} breaches of the rule \"{rule}\", at most {allowed}")
    print(*breaches, sep="\n")
    print(f"{len(breaches)} breaches of the wording")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
