#!/usr/bin/env python3
"""make_unicode_tables.py: writes server/text/base/unicode_tables.inc, with PyPI's tokenizers 0.23.

The library takes its Unicode data from five crates, each of another version of Unicode, so no library of ours has the same.
This script asks the library itself about every code point. Combining classes alone cannot be asked for: they never change
once assigned, so they are Python's, for the marks that the library reorders."""

import pathlib
import unicodedata

from tokenizers import Regex, normalizers, pre_tokenizers

ALL = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
CHUNK = 4096


def chunks():
    for start in range(0, len(ALL), CHUNK):
        yield ALL[start:start + CHUNK]


def mapped(normalizer, separator="\n"):
    """Returns {code point: text} of those that the normalizer changes."""
    changed = {}
    for codes in chunks():
        text = separator.join(map(chr, codes))
        parts = normalizer.normalize_str(text).split(separator)
        if len(parts) != len(codes):  # some of them are, or become, the separator
            parts = [normalizer.normalize_str(chr(code)) for code in codes]
        changed.update({code: part for code, part in zip(codes, parts) if part != chr(code)})
    return changed


def pieces(pre_tokenizer, separator):
    """Returns {code point: "alone", "joined" or "dropped"}: how each is split off from separators around it."""
    kind = {}
    for codes in chunks():
        text = separator + separator.join(map(chr, codes)) + separator
        place = {}
        for _, (start, end) in pre_tokenizer.pre_tokenize_str(text):
            for index in range(start, end):
                place[index] = "alone" if end - start == 1 else "joined"
        kind.update({code: place.get(2 * index + 1, "dropped") for index, code in enumerate(codes)})
    return kind


def ranges(codes):
    found = []
    for code in sorted(codes):
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return found


def matching(pattern):
    kind = pieces(pre_tokenizers.Split(Regex(pattern), "removed", invert=True), " ")
    return [code for code, how in kind.items() if how == "alone"]


def numeric():
    kind = pieces(pre_tokenizers.Digits(individual_digits=True), "a")
    return [code for code, how in kind.items() if how == "alone"]


def classes():
    """Returns [(first, last, class)] of marks that the library reorders."""
    nfd, found = normalizers.NFD(), []
    for code in ALL:
        own = unicodedata.combining(chr(code))
        # U+0334 has class 1, U+0345 has class 240.
        if not own:
            continue
        moved = nfd.normalize_str("a" + chr(code) + "\u0334")[-1] != "\u0334" if own > 1 else \
            nfd.normalize_str("a\u0345" + chr(code))[-1] == "\u0345"
        if not moved:
            continue
        if found and found[-1][1] == code - 1 and found[-1][2] == own:
            found[-1][1] = code
        else:
            found.append([code, code, own])
    return found


def is_hangul(code):
    return 0xAC00 <= code <= 0xD7A3


def decompositions():
    canonical, compatible = mapped(normalizers.NFD()), mapped(normalizers.NFKD())
    flat = []
    for code in sorted(set(canonical) | set(compatible)):
        if is_hangul(code):
            continue
        if code in canonical:
            flat += [code, len(canonical[code]), *map(ord, canonical[code])]
        if code in compatible and compatible[code] != canonical.get(code):
            flat += [code, 0x100 | len(compatible[code]), *map(ord, compatible[code])]
    return canonical, flat


def compositions(canonical):
    nfc, pairs = normalizers.NFC(), []
    for code, parts in canonical.items():
        if is_hangul(code) or nfc.normalize_str(parts) != chr(code):
            continue
        first = nfc.normalize_str(parts[:-1])
        assert len(first) == 1, hex(code)
        pairs.append([ord(first), ord(parts[-1]), code])
    return sorted(pairs)


def lower():
    """Returns [(first, last, step, distance)]; U+0130 alone becomes two, which the code knows."""
    found = []
    for code, text in sorted(mapped(normalizers.Lowercase()).items()):
        if code == 0x130:
            assert text == "i\u0307"
            continue
        assert len(text) == 1, hex(code)
        distance = ord(text) - code
        last = found[-1] if found else None
        if last and last[3] == distance and (code - last[1] == last[2] or last[0] == last[1] and code - last[1] <= 2):
            last[2], last[1] = code - last[1], code
        else:
            found.append([code, code, 1, distance])
    return found


def joining():
    """Returns code points that join what is before, those that join what is after, and those that end a grapheme cluster.

    A map with the byte "a" or any first byte as a key replaces a short cluster whole, so that its length tells."""
    probe = make_probe()
    after = [code for code in ALL if code and len(chr(code).encode()) <= 4
             and probe.normalize_str("a" + chr(code)) == "X"]
    before = [code for code in ALL if code > 0x7F and probe.normalize_str(chr(code) + "a") == "X"]
    # Two marks are a short cluster by themselves after what ends one, however long that is.
    control = [code for code in ALL if probe.normalize_str(chr(code) + "\u0301\u0301") in ("XX", "\0X")]
    return after, before, control


def make_probe():
    """Returns a Precompiled normalizer that replaces every cluster by X, whatever its first byte."""
    import base64
    import json
    import struct
    from tokenizers import Tokenizer, models
    size = 1024
    units = [0] * size
    # The root's offset is 512; the child of byte b is at 512 ^ b, whose own offset leads to one shared leaf with value 0.
    units[0] = 512 << 10
    for byte in range(1, 256):
        node = 512 ^ byte
        leaf = 256
        units[node] = (node ^ leaf) << 10 | 1 << 8 | byte
    units[256] = 1 << 31
    blob = struct.pack("<I", 4 * size) + struct.pack(f"<{size}I", *units) + b"X\0"
    tokenizer = json.loads(Tokenizer(models.WordLevel({"a": 0}, "a")).to_str())
    tokenizer["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(blob).decode()}
    return Tokenizer.from_str(json.dumps(tokenizer)).normalizer


def write(out, name, rows):
    flat = [number for row in rows for number in (row if isinstance(row, list) else [row])]
    out.append(f"inline constexpr int32_t k{name}[] = {{")
    line = "   "
    for number in flat:
        word = f" {number:#x}," if number >= 0 else f" {number},"
        if len(line) + len(word) > 120:
            out.append(line)
            line = "   "
        line += word
    out += [line, "};"]


def main():
    bert = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    out = ["// Made by tests/text/make_unicode_tables.py from PyPI's tokenizers; do not edit.",
           "// Ranges are pairs: first, last."]
    clean = mapped(normalizers.BertNormalizer(**{**bert, "clean_text": True}), "a")
    write(out, "RemovedRanges", ranges(code for code, text in clean.items() if text == ""))
    write(out, "WhitespaceRanges", ranges(code for code, how in pieces(pre_tokenizers.WhitespaceSplit(), "a").items() if how == "dropped"))
    write(out, "PunctuationRanges", ranges(code for code, how in pieces(pre_tokenizers.BertPreTokenizer(), "a").items() if how == "alone"))
    accents = mapped(normalizers.BertNormalizer(**{**bert, "strip_accents": True}), "a")
    write(out, "NonspacingMarkRanges", ranges(code for code, text in accents.items() if text == ""))
    write(out, "MarkRanges", ranges(code for code, text in mapped(normalizers.StripAccents(), "a").items() if text == ""))
    write(out, "NumericRanges", ranges(numeric()))
    write(out, "LetterRanges", ranges(matching(r"\p{L}")))
    write(out, "NumberRanges", ranges(matching(r"\p{N}")))
    write(out, "UpperLetterRanges", ranges(matching(r"[\p{Lu}\p{Lt}]")))
    write(out, "LowerLetterRanges", ranges(matching(r"\p{Ll}")))
    write(out, "PatternMarkRanges", ranges(matching(r"\p{M}")))
    write(out, "SymbolRanges", ranges(matching(r"[\p{P}\p{S}]")))
    write(out, "WordRanges", ranges(code for code, how in pieces(pre_tokenizers.Whitespace(), "a").items() if how == "joined"))
    after, before, control = joining()
    write(out, "JoinsBeforeRanges", ranges(after))
    write(out, "JoinsAfterRanges", ranges(before))
    write(out, "ControlRanges", ranges(control))
    out.append("// First, last, class.")
    write(out, "CombiningClasses", classes())
    out.append("// First, last, step, what is added.")
    write(out, "LowerRanges", lower())
    canonical, flat = decompositions()
    out.append("// Code point, number of parts (with 0x100 if for compatibility alone), parts.")
    write(out, "Decompositions", flat)
    out.append("// First, second, composed.")
    write(out, "Compositions", compositions(canonical))
    path = pathlib.Path(__file__).resolve().parents[2] / "server/text/base/unicode_tables.inc"
    path.write_text("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
