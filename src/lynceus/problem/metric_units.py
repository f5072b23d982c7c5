"""Units of reported metrics: `ms`, `tokens/s`, `MB`, `%`, `USD/million tokens`. Words that are no known unit count things.

>>> Unit.parse("tokens/min").scale * 60, Unit.parse("ms").powers
(1.0, (('s', 1.0),))
>>> in_unit("0.5 s", "ms")
500.0
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from lynceus.errors import InputError, shown

USD, SECOND = "USD", "s"

_KNOWN: Mapping[str, tuple[str, float]] = {
    **dict.fromkeys(("ns",), (SECOND, 1e-09)),
    **dict.fromkeys(("us", "µs", "μs"), (SECOND, 1e-06)),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), (SECOND, 0.001)),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), (SECOND, 1.0)),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), (SECOND, 60.0)),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), (SECOND, 3600.0)),
    **dict.fromkeys(("d", "day", "days"), (SECOND, 86400.0)),
    **dict.fromkeys(("USD", "usd", "$", "dollar", "dollars"), (USD, 1.0)),
    **{f"{prefix}B": ("B", 1000.0**power) for power, prefix in enumerate(("", "K", "M", "G", "T"))},
    **{f"{prefix}iB": ("B", 1024.0**power) for power, prefix in enumerate(("K", "M", "G", "T"), start=1)},
    "kB": ("B", 1000.0),
    **{f"{prefix}J": ("J", 1000.0**power) for power, prefix in enumerate(("", "k", "M", "G"))},
    **{f"{prefix}Wh": ("J", 3600.0 * 1000.0**power) for power, prefix in enumerate(("", "k", "M"))},
    **{f"{prefix}Hz": ("cycle/s", 1000.0**power) for power, prefix in enumerate(("", "k", "M", "G"))},
    "%": ("", 0.01),
}
"""Unit → what it measures, and how many of the base unit it is; watts are joules per second."""
_WATTS = {f"{prefix}W": 1000.0**power for power, prefix in enumerate(("", "k", "M"))} | {"mW": 1e-3}
_FACTOR = re.compile(r"[^\W\d][\w ]*|[%$]")
_AMOUNT = re.compile(r"\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*(.*?)\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Unit:
    """A product of powers of base units."""

    scale: float = 1.0
    """How many base units it is: 0.001 for ms."""
    powers: tuple[tuple[str, float], ...] = ()
    """Base unit → power, none of them 0, by name."""

    @classmethod
    def parse(cls, text: str) -> Unit:
        """Read `ms`, `tokens/s`, `USD per million tokens`."""
        first, *below = re.split(r"/|\bper\b", text.strip())
        unit = cls.of_word(first, text) if first.strip() not in ("", "1") else cls()
        for word in below:
            unit = unit * cls.of_word(word, text) ** -1.0
        return unit

    @classmethod
    def of_word(cls, word: str, text: str) -> Unit:
        """One factor of a unit: a known one, or what is counted."""
        word = " ".join(word.split())
        if word in _WATTS:
            return cls(_WATTS[word], (("J", 1.0), (SECOND, -1.0)))
        if word in _KNOWN:
            base, scale = _KNOWN[word]
            return cls(scale, ((base, 1.0),) if base else ())
        if not _FACTOR.fullmatch(word):
            raise InputError(f"the unit {shown(text)} cannot be read; write for example ms, tokens/s, MB or %.")
        return cls(1.0, ((_singular(word), 1.0),))

    def __mul__(self, other: Unit) -> Unit:
        powers = dict(self.powers)
        for base, power in other.powers:
            powers[base] = powers.get(base, 0.0) + power
        return Unit(self.scale * other.scale, tuple(sorted((base, power) for base, power in powers.items() if power)))

    def __pow__(self, power: float) -> Unit:
        return Unit(self.scale**power, tuple((base, each * power) for base, each in self.powers if each * power))


def in_unit(amount: str, unit: str) -> float | None:
    """A number with or without a unit, in another unit; None when it is no number, or its unit measures something else."""
    matched = _AMOUNT.fullmatch(amount)
    if matched is None:
        return None
    if not matched[2]:
        return float(matched[1])
    try:
        own, wanted = Unit.parse(matched[2]), Unit.parse(unit)
    except InputError:
        return None
    if own.powers != wanted.powers:
        return None
    return float(f"{float(matched[1]) * own.scale / wanted.scale:.15g}")


def has_unit(amount: str) -> bool:
    """Whether an amount is a number with a unit that everybody knows.

    >>> has_unit("500ms"), has_unit("12 tokens/s"), has_unit("3.75 Mb"), has_unit("5")
    (True, True, False, False)
    """
    matched = _AMOUNT.fullmatch(amount)
    words = [] if matched is None else [word.strip() for word in re.split(r"/|\bper\b", matched[2])]
    return any(word in _KNOWN or word in _WATTS for word in words)


def with_unit(number: str, unit: str) -> str:
    """A number with its unit as it is read: `500ms`, `12 tokens/s`."""
    return f"{number}{unit}" if unit in _KNOWN or unit in _WATTS else f"{number} {unit}".strip()


def _singular(word: str) -> str:
    """What is counted, as one of them: `million tokens` → `million token`."""
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 2 else word
