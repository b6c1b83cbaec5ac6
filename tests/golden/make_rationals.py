#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/text/rationals.jsonl: pairs of answers in random spellings, and whether Python's fractions says that
they are one number. No numerator or denominator, and no product on the way, has more than the 38 digits that we hold.

    python3 tests/golden/make_rationals.py            (standard library only)
    python3 tests/golden/make_rationals.py --check    compares, writes nothing
"""
import json
import random
import sys
from fractions import Fraction
from pathlib import Path

FILE = Path(__file__).resolve().parent / "text" / "rationals.jsonl"
PAIRS = 1500


def decimal(value: Fraction, rng: random.Random) -> str | None:
    """With all its digits, if they end."""
    places = 0
    while (value * 10**places).denominator != 1:
        places += 1
        if places > 30:
            return None
    places += rng.choice([0, 0, 1, 2])
    digits = str(abs(value.numerator * 10**places // value.denominator)).rjust(places + 1, "0")
    whole, rest = (digits[:-places], digits[-places:]) if places else (digits, "")
    if whole == "0" and rest and rng.random() < 0.3:
        whole = ""
    elif len(whole) > 3 and rng.random() < 0.5:
        whole = f"{int(whole):,}".replace(",", rng.choice([",", "{,}"]))
    return whole + ("." + rest if rest else "")


def ratio(value: Fraction, rng: random.Random) -> str:
    factor = rng.choice([1, 1, 2, 3, 10, rng.randrange(1, 10**9)])
    a, b = abs(value.numerator) * factor, value.denominator * factor
    if a < 10 and b < 10 and rng.random() < 0.5:
        return rng.choice([f"\\frac{a}{b}", f"\\dfrac{a}{{{b}}}", f"\\frac{{{a}}}{b}"])
    return rng.choice([f"{a}/{b}", f"{a} / {b}", f"\\frac{{{a}}}{{{b}}}", f"\\tfrac{{ {a} }}{{{b}}}"])


def mixed(value: Fraction, rng: random.Random) -> str | None:
    whole, part = divmod(abs(value), 1)
    if whole == 0 or part == 0:
        return None
    a, b = part.numerator, part.denominator
    return rng.choice([f"{whole}\\frac{{{a}}}{{{b}}}", f"{whole} {a}/{b}", f"{whole} \\dfrac{{{a}}}{{{b}}}"])


def spell(value: Fraction, rng: random.Random) -> str:
    """Not as percent: those have two readings."""
    text = None
    while text is None:
        text = rng.choice([decimal, ratio, ratio, mixed])(value, rng)
    sign = rng.choice(["-", "- ", "\u2212"]) if value < 0 else rng.choice(["", "", "", "+"])
    return rng.choice(["", "", " ", "x=", "$"]).replace("$", "\\$") + sign + text + rng.choice(["", "", " ", "^\\circ"])


def draw(rng: random.Random) -> Fraction:
    size = rng.choice([5, 12, 100, 10**6, 10**12])
    bottom = rng.choice([1, 2, 4, 5, 8, 10, 100, rng.randrange(1, size + 1)])
    return Fraction(rng.randrange(-size, size + 1), bottom)


def lines():
    rng = random.Random(20)
    for _ in range(PAIRS):
        a = draw(rng)
        b = rng.choice([a, a, -a, a + Fraction(1, 10**10), draw(rng)])
        yield json.dumps({"a": spell(a, rng), "b": spell(b, rng), "same": a == b})


def main():
    text = "".join(line + "\n" for line in lines())
    if "--check" in sys.argv:
        sys.exit(0 if FILE.read_text() == text else f"{FILE} is not what this script writes")
    FILE.write_text(text)


main()
