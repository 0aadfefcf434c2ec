"""Texts of many kinds, made from a seed: what a tokenizer of the world's scripts may meet."""

import random

SCRIPTS = {
    "latin": [(0x41, 0x5A), (0x61, 0x7A)],
    "latin accented": [(0xC0, 0x24F), (0x1E00, 0x1EFF)],
    "greek": [(0x370, 0x3FF), (0x1F00, 0x1FFF)],
    "cyrillic": [(0x400, 0x52F)],
    "armenian, georgian": [(0x531, 0x58A), (0x10A0, 0x10FF), (0x1C90, 0x1CBF)],
    "hebrew": [(0x591, 0x5F4)],
    "arabic": [(0x600, 0x6FF), (0x750, 0x77F), (0xFB50, 0xFDFF), (0xFE70, 0xFEFF)],
    "indic": [(0x900, 0xDFF)],
    "thai, lao, tibetan, myanmar": [(0xE00, 0x109F)],
    "ethiopic, cherokee, canadian": [(0x1200, 0x167F)],
    "khmer, mongolian": [(0x1780, 0x18AF)],
    "kana": [(0x3040, 0x30FF), (0xFF66, 0xFF9F)],
    "han": [(0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0xF900, 0xFAFF)],
    "han astral": [(0x20000, 0x2A6DF), (0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0x2F800, 0x2FA1F), (0x30000, 0x3134F)],
    "hangul": [(0xAC00, 0xD7A3), (0x1100, 0x11FF)],
    "fullwidth": [(0xFF01, 0xFF5E)],
    "symbols": [(0x2000, 0x2BFF), (0x3000, 0x303F), (0xA0, 0xBF)],
    "astral letters": [(0x10000, 0x11FFF), (0x1E000, 0x1EEFF), (0x1D400, 0x1D7FF)],
    "ascii": [(0x20, 0x7E)],
    "controls": [(0, 0x1F), (0x7F, 0xA0), (0x200B, 0x200F), (0x202A, 0x202E), (0xFFF9, 0xFFFD), (0xE0001, 0xE007F)],
    "private, unassigned": [(0xE000, 0xE0FF), (0x378, 0x379), (0x40000, 0x40010), (0xFFFFE, 0x100002), (0x10FFFD, 0x10FFFF)],
    "anything": [(0, 0xD7FF), (0xE000, 0x10FFFF)],
}
MARKS = [(0x300, 0x36F), (0x483, 0x489), (0x591, 0x5BD), (0x64B, 0x65F), (0x93C, 0x93C), (0x94D, 0x94D), (0x1AB0, 0x1ACE),
         (0x1DC0, 0x1DFF), (0x20D0, 0x20F0), (0x302A, 0x302F), (0x3099, 0x309A), (0xFE20, 0xFE2F), (0x1D165, 0x1D172), (0x1E000, 0x1E02A)]
EMOJI = ["\U0001F600", "\U0001F469\u200D\U0001F4BB", "\U0001F468\u200D\U0001F469\u200D\U0001F467\u200D\U0001F466", "\U0001F44D\U0001F3FD",
         "\U0001F1E9\U0001F1EA", "1\uFE0F\u20E3", "\u2764\uFE0F", "\U0001F3F4\U000E0067\U000E0062\U000E0073\U000E0063\U000E0074\U000E007F",
         "\U0001FAE8"]
SPACES = [" "] * 12 + ["\t", "\n", "\r\n", "\u00A0", "\u2003", "\u3000", "\u2028", "\u0085", "\u200B", "\u1680", ""]
SPECIALS = ["[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]", "[mask]", "[ SEP ]", "[[SEP]", "[unused1]", "##ing", "[MASK"]
BROKEN = [b"\xFF", b"\xC0\xAF", b"\xE2\x82", b"\xED\xA0\x80", b"\xF0\x9F\x98", b"\xF4\x90\x80\x80", b"\x80\x80", b"\xC3", b"\xF8\x88\x80\x80\x80"]
SCRIPT_LISTS = list(SCRIPTS.values())


def character(rng, ranges):
    return chr(rng.randint(*rng.choice(ranges)))


def word(rng, pieces):
    """A word of one of the kinds above; `pieces` are those of a real vocabulary."""
    kind = rng.random()
    if kind < 0.35:
        made = "".join(rng.choice(pieces) for _ in range(rng.randint(1, 4)))
        return rng.choice([str, str, str.upper, str.title, str.swapcase])(made)
    if kind < 0.80:
        ranges = rng.choice(SCRIPT_LISTS)
        made = "".join(character(rng, ranges) for _ in range(rng.randint(1, 12)))
        return "".join(c + (character(rng, MARKS) * rng.randint(1, 2) if rng.random() < 0.15 else "") for c in made)
    if kind < 0.86:
        return "".join(rng.choice(EMOJI) for _ in range(rng.randint(1, 3)))
    if kind < 0.92:
        return rng.choice(SPECIALS)
    if kind < 0.95:
        return "".join(character(rng, MARKS) for _ in range(rng.randint(1, 20)))
    if kind < 0.98:
        return str(rng.randint(0, 10**9)) + rng.choice([".5", ",", "%", "e-3", "\u00B2", "\u0663"])
    return rng.choice(pieces)[:1] * rng.randint(95, 105) + "".join(character(rng, SCRIPTS["latin"]) for _ in range(rng.choice([0, 1, 200])))


def text(rng, pieces):
    made = b""
    for _ in range(rng.choice([0, 1, 2, 3, 5, 8, 13, 25])):
        made += word(rng, pieces).encode("utf-8")
        if rng.random() < 0.02:
            made += rng.choice(BROKEN)
        made += rng.choice(SPACES).encode("utf-8")
    if made and rng.random() < 0.02:
        made = made[: rng.randrange(len(made))] # may end within a character
    return made


def texts(count, pieces, seed):
    rng = random.Random(seed)
    return [text(rng, pieces) for _ in range(count)]
