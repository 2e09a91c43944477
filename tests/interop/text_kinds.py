"""Texts of many kinds, more than 1,000, always the same."""
import json
import pathlib
import random
import sys

HERE = pathlib.Path(__file__).parent
SENTENCES = HERE.parent / "families" / "sentences.jsonl"
SCRIPTS = (
    "Ein naïver Café-Besitzer größer als ½ — «voilà»", "Быстрая коричневая лиса прыгает", "Η γρήγορη καφέ αλεπού πηδάει",
    "日本語のテキストと漢字とカタカナ", "敏捷的棕色狐狸跳过了懒狗。", "빠른 갈색 여우가 게으른 개를 뛰어넘는다", "الثعلب البني السريع يقفز فوق الكلب",
    "השועל החום המהיר קופץ מעל הכלב", "तेज़ भूरी लोमड़ी आलसी कुत्ते पर कूदती है", "দ্রুত বাদামী শিয়াল লাফ দেয়", "விரைவான பழுப்பு நரி தாவுகிறது",
    "สุนัขจิ้งจอกสีน้ำตาลกระโดดข้ามสุนัข", "Con cáo nâu nhảy qua con chó lười biếng", "სწრაფი ყავისფერი მელა", "Արագ շագանակագույն աղվեսը",
    "ፈጣን ቡናማ ቀበሮ ዘለለ", "မြန်ဆန်သော အညိုရောင်", "Zażółć gęślą jaźń; İstanbul'da ığdır", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 ﬁ ﬂ ℌ Ⅷ ㎏ ｆｕｌｌ ＷＩＤＴＨ", "å vs å; ﷺ; ǆ; ß; ẞ",
)
EMOJI = ("🙂🙂", "👩‍👩‍👧‍👦 family", "🏳️‍🌈 flag", "👍🏽", "🇩🇪🇫🇷", "❤️ vs ❤", "1️⃣ keycap", "ok 👌 then 🎉!", "🫠🪿", "♀️⚕️")
MARKS = ("e" + "\u0301" * 40, "\u200b\u200d\ufeffzero width", "soft\u00adhyphen", "\u202eright to left", "tab\tnew\nline\r\nreturn\x0b\x0c",
         "A\0B", "\x01\x02\x7f\x80\x9f", "\ue000 private \uf8ff", "\ufffd\ufffe\U0010ffff", "line\u2028para\u2029end\u3000wide\u00a0no-break")
SPECIAL = ("[CLS] [SEP] [MASK]", "[UNK]", "[PAD][PAD]", "[cls]", "a[SEP]b", "##ing", "<s></s>", "[unused1]", "don't", "can't, won't; I'd've")
BLANK = ("", " ", "\n", "  \t ", "\u3000", "\u200b", "\0", ".", "a", "\ufe0f")
PROMPT = "query: "  # of the prompt "query"


def sayings() -> list:
    with open(SENTENCES, encoding="utf-8") as file:
        return [json.loads(line)["text"] for line in file]


def code(count: int) -> list:
    lines = [line for path in sorted(HERE.parent.glob("*/*.py")) for line in path.read_text(encoding="utf-8").splitlines()]
    return ["\n".join(lines[at:at + 1 + at % 9]) for at in range(0, 17 * count, 17)]


def any_characters(count: int) -> list:
    """Characters of every block, some of them unassigned."""
    chosen = random.Random(43)
    planes = [point for point in range(sys.maxunicode + 1) if not 0xD800 <= point < 0xE000 and point < 0x33480] + [0xE0001, 0x10FFFD]
    return ["".join(chr(chosen.choice(planes)) + " " * (chosen.random() < 0.2) for _ in range(1 + chosen.randrange(60)))
            for _ in range(count)]


def mixed(count: int) -> list:
    chosen = random.Random(7)
    return ["".join(chosen.choices(SCRIPTS + EMOJI + MARKS + SPECIAL, k=2 + chosen.randrange(5))) for _ in range(count)]


def long(texts: list, sentences: int) -> list:
    return [" ".join(texts[at:at + sentences]) for at in range(0, len(texts) - sentences, sentences)]


def kinds() -> dict:
    """name -> (texts, {"prompt": True} or {"left": True} or neither)."""
    texts = sayings()
    words = ["x" * 3000, "ab" * 60, "9" * 101, "Donaudampfschifffahrtsgesellschaft" * 4, "http://example.org/" + "a/b?c=d&" * 40, "漢" * 700]
    return {
        "plain": (texts[:420], {}), "scripts": (list(SCRIPTS), {}), "emoji": (list(EMOJI), {}), "marks and controls": (list(MARKS), {}),
        "special": (list(SPECIAL), {}), "blank": (list(BLANK), {}), "code": (code(80), {}), "any characters": (any_characters(150), {}),
        "mixed": (mixed(120), {}), "long words": (words, {}), "spaces": ([f"  \n {text}\t  " for text in texts[400:440]], {}),
        "truncated": (long(texts[:500], 25), {}), "truncated on the left": (long(texts[500:], 25), {"left": True}),
        "prompts": (texts[440:500] + list(SCRIPTS) + list(BLANK), {"prompt": True}),
        "truncated prompts": (long(texts[100:400], 25), {"prompt": True}),
        "prompts, truncated on the left": (long(texts[400:600], 25), {"prompt": True, "left": True}),
    }
