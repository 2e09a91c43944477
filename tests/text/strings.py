"""Texts of many kinds to tokenize: prose in several scripts, code, controls, emoji, marks piled on letters, long words."""

import random

PROSE = """The quick brown fox jumps over the lazy dog, and isn't it strange that nobody'll say they've seen it? In 1984 the
price was $1,299.50 (about 40% more), they said; "quoted text" follows -- with dashes_and_underscores and e-mail@example.com.
Étienne naïvely façaded the coöperative's résumé. Der Straßenbahnübergang führt über die Brücke, großer Übermut. L'été à
Genève fut très agréable, où l'on mange des œufs. El niño comió piñas mañana, ¿verdad? ¡Sí! Příliš žluťoučký kůň úpěl ďábelské ódy.
Zażółć gęślą jaźń. İstanbul'da ılık bir gün. Việt Nam đất nước con người tiếng Việt có dấu thanh điệu. Съешь же ещё этих мягких
французских булок, да выпей чаю. Η γρήγορη αλεπού πηδά πάνω από το τεμπέλικο σκυλί ΑΣ. השועל החום המהיר קופץ. الثعلب البني
السريع يقفز فوق الكلب الكسول ٢٠٢٤. तेज़ भूरी लोमड़ी आलसी कुत्ते पर कूदती है क्षत्रिय। দ্রুত বাদামী শিয়াল। விரைவான பழுப்பு நரி. ไทยเขียนติดกันไม่มีวรรค
กรุงเทพมหานคร. 我们今天去北京看长城，天气很好。私は昨日、東京タワーへ行きました。カタカナ ﾊﾝｶｸ Ｆｕｌｌｗｉｄｔｈ １２３. 다람쥐 헌 쳇바퀴에 타고파. 한글.
function add(a, b) { return a + b; } // comment\tif (x != null && y >= 10) std::vector<int> v{1, 2, 3}; #include <stdio.h>
def main(): print(f"{x!r:>10}") SELECT * FROM t WHERE id = 42; https://example.org/path?query=1&other=two#frag C:\\Users\\name
""".replace("\n", " ").split(" ")

POOL = ["\u0301", "\u0300", "\u0315", "\u05ae", "\u0323", "\u0307", "\u0345", "\u3099", "\u0f71", "\u0f72", "\u0344", "\u0958",
        "é", "Å", "Å", "ﬁ", "ﷺ", "ﷻ", "½", "²", "ſ", "ẛ̣", "İ", "ı", "ß", "ẞ", "Σ", "ς", "Ǆ", "ǆ", "가", "각", "ᄀ", "ᅡ", "ᆨ", "㈎", "㍿",
        "豈", "中", "文", "、", "。", "！", "\u3000", "\u00a0", "\u2028", "\u0085", "\u200b", "\u200c", "\u200d", "\ufeff", "\ufffd", "\u202e", "\0", "\x01",
        "\x0b", "\x1e", "\x7f", "\t", "\n", "\r", "\r\n", " ", "  ", "   ", "a", "b", "c", "ab", "abc", "A", "B", "x", "1", "12", "3", "٣", "Ⅷ", "①", "😀",
        "👩\u200d👩\u200d👧", "👍🏽", "🇩🇪", "❤\ufe0f", "\U0001e922", "\U0001d400", "\U00016b00", "\U00010940", "\u1c89", "\ua7cb", "_", "-", "'", "'s", "'LL", "'ſ", "$", "+", "<", "=", ">",
        "^", "`", "|", "~", ".", ",", "!", "?", "(", ")", "[CLS]", "[MASK]", "<s>", "</s>", "<mask>", "<m>", "<n>", "<unk>", "foo", "Foo",
        "bar", "Bar", "<special>", "▁", "Ġ", "</w>", "##a", "the", "The", " the", "ing", "un", "™", "Ａ", "ｶ", "ﾞ", "\u0903", "क", "्", "ष", "\u0600",
        "\u0d4e", "\ue000", "\U000e0001", "\U000f0000", "\u0378", "<0x41>", "é́", "q\u0307\u0323", "\ud7a3", "\u1175", "\u11c2", "\u2126", "\u212a", "\u2581"]


def words(rng, count):
    return " ".join(rng.choice(PROSE) for _ in range(count))


def any_character(rng):
    while True:
        code = rng.choice((rng.randrange(0x250), rng.randrange(0x3000), rng.randrange(0x10000), rng.randrange(0x110000)))
        if not 0xD800 <= code < 0xE000:
            return chr(code)


def text(rng):
    kind = rng.random()
    if kind < 0.3:
        return "".join(rng.choice(POOL) for _ in range(rng.randint(1, 14)))
    if kind < 0.5:
        return words(rng, rng.randint(1, 24))
    if kind < 0.65:
        return "".join(any_character(rng) for _ in range(rng.randint(1, 10)))
    if kind < 0.75:
        return "".join(rng.choice((rng.choice(POOL), words(rng, 1), any_character(rng))) for _ in range(rng.randint(1, 12)))
    if kind < 0.85:
        return (" " * rng.randint(0, 3)) + words(rng, rng.randint(1, 6)) + rng.choice(("", "\n", "  ", "\n\n  ", "\t", "...", "!?"))
    if kind < 0.9:
        return "".join(rng.choice("abcdeABCDE01 '.,-_\n") for _ in range(rng.randint(0, 40)))
    if kind < 0.95:
        return rng.choice((rng.choice(PROSE) or "a", rng.choice(POOL))) * rng.randint(2, 40)
    if kind < 0.97:
        return words(rng, rng.randint(30, 120))
    return rng.choice(("", " ", "\u0301" * rng.randint(1, 50), "\u0315\u0300" * rng.randint(1, 60), "a" * rng.randint(90, 210), "é" * 101))


def texts(seed, count):
    rng = random.Random(seed)
    return [text(rng) for _ in range(count)]


def corpus(count=3000):
    rng = random.Random(0)
    return [words(rng, rng.randint(3, 30)) for _ in range(count)]


def prose(seed, count, tokens):
    """Returns plain texts of about so many words, in English for the most part, as most are that people embed."""
    rng = random.Random(seed)
    english = PROSE[:60]
    return [" ".join(rng.choice(english if rng.random() < 0.9 else PROSE) for _ in range(tokens)) for _ in range(count)]
