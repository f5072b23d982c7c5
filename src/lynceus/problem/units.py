"""Parse and format durations and money as users write them. Inside Lynceus time is seconds and money is dollars, as floats."""

import math
import numbers
import re
from typing import TypeGuard

from lynceus.errors import InputError

_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_UNITS = {
    **dict.fromkeys(["d", "day", "days"], "d"),
    **dict.fromkeys(["h", "hr", "hrs", "hour", "hours"], "h"),
    **dict.fromkeys(["m", "min", "mins", "minute", "minutes"], "m"),
    **dict.fromkeys(["s", "sec", "secs", "second", "seconds"], "s"),
    "ms": "ms",
}
_NUMBER = r"(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?"
_PART = re.compile(rf"\s*({_NUMBER})\s*([a-z]+)", re.IGNORECASE | re.ASCII)
_MONEY = re.compile(
    rf"(?:\$\s*|USD\s*)?((?:\d{{1,3}}(?:,\d{{3}})+(?:\.\d*)?)|{_NUMBER})(?:\s*(?:\$|USD|dollars?))?",
    re.IGNORECASE | re.ASCII,
)
_BYTES = re.compile(rf"\s*([+-]?(?i:{_NUMBER}))\s*(?:([KMGTkmgt])([iI]?)B|([kmgt])(i?)b|B)\s*", re.ASCII)
"""`B`, `MB`, `MiB` or carelessly `mb`; not `Mb` or `b`, which mean bits."""
_OTHER_CURRENCY = re.compile(r"[€£¥]|\b(?:EUR|GBP|JPY|CNY|CHF|cents?)\b", re.IGNORECASE)


def parse_duration(value: object, where: str = "A duration") -> float:
    """Seconds, from a number of seconds or a text such as ``"1h30m"``.

    >>> parse_duration("1h30m"), parse_duration("45m"), parse_duration("90s"), parse_duration(90)
    (5400.0, 2700.0, 90.0, 90.0)
    """
    if _is_number(value):
        return _amount(float(value), value, where)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{where} is {value!r}, but a duration such as '45m', '1h30m' or 90 (seconds) is needed.")
    text = value.strip()
    if re.fullmatch(_NUMBER, text, re.IGNORECASE | re.ASCII):
        return _amount(float(text), value, where)
    seconds, place, last = 0.0, 0, math.inf
    while place < len(text):
        part = _PART.match(text, place)
        unit = _UNITS.get(part[2].lower()) if part else None
        if part is None or unit is None:
            raise InputError(
                f"{where} is {_short(value)}, of which {_short(text[place:])} is not understood: "
                "write numbers with d, h, m, s or ms, such as '1h30m'."
            )
        if _SECONDS[unit] >= last:
            raise InputError(f"{where} is {_short(value)}: write each unit once, the largest first, such as '1h30m'.")
        seconds, place, last = seconds + float(part[1]) * _SECONDS[unit], part.end(), _SECONDS[unit]
    return _amount(seconds, value, where)


def parse_money(value: object, where: str = "An amount of money") -> float:
    """Dollars, from a number or a text such as ``"25 USD"``.

    >>> parse_money("25 USD"), parse_money("$1,250.50"), parse_money(25)
    (25.0, 1250.5, 25.0)
    """
    if _is_number(value):
        return _amount(float(value), value, where)
    if not isinstance(value, str):
        raise InputError(f"{where} is {value!r}, but dollars such as '25 USD', '$25' or 25 are needed.")
    matched = _MONEY.fullmatch(value.strip())
    if matched is None:
        other = " Only US dollars are known; convert the amount." if _OTHER_CURRENCY.search(value) else ""
        raise InputError(f"{where} is {_short(value)}, but dollars such as '25 USD', '$25' or 25 are needed.{other}")
    return _amount(float(matched[1].replace(",", "")), value, where)


def parse_quantity(text: str) -> float | None:
    """A number, which may be an amount of bytes such as `4.3MB` (powers of 1000) or `2 MiB` (powers of 1024); None when it is neither.

    >>> parse_quantity("0.85"), parse_quantity("4.3MB"), parse_quantity("2 MiB"), parse_quantity("many"), parse_quantity("3 B")
    (0.85, 4300000.0, 2097152.0, None, 3.0)
    """
    if (matched := _BYTES.fullmatch(text)) is not None:
        prefix, binary = matched[2] or matched[4], matched[3] or matched[5]
        factor = 1.0 if prefix is None else (1024.0 if binary else 1000.0) ** ("KMGT".index(prefix.upper()) + 1)
        return float(f"{float(matched[1]) * factor:.15g}")
    try:
        return float(text)
    except ValueError:
        return None


def format_duration(seconds: float) -> str:
    """Seconds as a short text that `parse_duration` reads, with the two largest units.

    >>> [format_duration(value) for value in (0.0042, 1.5, 90, 5400, 200000)]
    ['4.2ms', '1.5s', '1m30s', '1h30m', '2d8h']
    """
    if not math.isfinite(seconds):
        return "forever" if seconds > 0 else str(seconds)
    if seconds < 0:
        return "-" + format_duration(-seconds)
    if seconds == 0:
        return "0s"
    if seconds < 0.9995:
        return f"{float(f'{seconds * 1000:.3g}'):g}ms"
    if seconds < 59.95:
        return f"{float(f'{seconds:.3g}'):g}s"
    for large, small, most in (("m", "s", 3600), ("h", "m", 86400), ("d", "h", math.inf)):
        parts, unit = round(seconds / _SECONDS[small]), round(_SECONDS[large] / _SECONDS[small])
        if parts * _SECONDS[small] < most:
            break
    whole, rest = divmod(parts, unit)
    return f"{whole}{large}{rest}{small}" if rest else f"{whole}{large}"


def format_bytes(amount: float) -> str:
    """Bytes in powers of 1000, with three digits.

    >>> [format_bytes(value) for value in (0, 999, 2_147_483_648, 754e9)]
    ['0 B', '999 B', '2.15 GB', '754 GB']
    """
    power = min(max(int(math.log10(max(amount, 1.0)) / 3 + 1e-12), 0), 5)
    return f"{float(f'{amount / 1000**power:.3g}'):g} {('B', 'kB', 'MB', 'GB', 'TB', 'PB')[power]}"


def format_money(dollars: float) -> str:
    """Dollars with as many digits as matter.

    >>> [format_money(value) for value in (0, 0.0041, 0.05, 0.25, 1.234, 1234.4, -3)]
    ['$0', '$0.0041', '$0.05', '$0.25', '$1.23', '$1,234', '-$3.00']
    """
    if math.isnan(dollars):
        return "unknown"
    if dollars < 0:
        return "-" + format_money(-dollars)
    if math.isinf(dollars):
        return "unlimited"
    if dollars == 0:
        return "$0"
    if dollars >= 999.995:
        return f"${dollars:,.0f}"
    if dollars >= 0.995:
        return f"${dollars:.2f}"
    digits = min(1 - math.floor(math.log10(dollars)), 12)  # two that are not leading zeros
    text = f"{dollars:.{digits}f}"
    if not float(text):
        return f"${dollars:.2g}"
    whole, cents = text.split(".")
    return f"${whole}.{cents.rstrip('0').ljust(2, '0')}"


def format_number(value: float) -> str:
    """A number that `float` reads back, without an exponent where it stays readable.

    >>> [format_number(value) for value in (0.85, 2.5e6, 100, 1234567.25, 1e-7, 3e20)]
    ['0.85', '2500000', '100', '1234567.25', '1e-07', '3e+20']
    """
    number = float(value)
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


def format_metric(value: float) -> str:
    """A metric for a table: six digits, and every digit before the point. JSON and CSV have them all.

    >>> [format_metric(value) for value in (4312345.0, 0.123456789, 1234567.89, 2.5e-9, 3e20)]
    ['4312345', '0.123457', '1234568', '2.5e-09', '3e+20']
    """
    return f"{value:.0f}" if 1e5 <= abs(value) < 1e15 else f"{value:.6g}"


def _is_number(value: object) -> TypeGuard[numbers.Real]:
    """Whether this is a number of any library; booleans are not."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _amount(amount: float, given: object, where: str) -> float:
    if not math.isfinite(amount) or amount < 0:
        raise InputError(f"{where} is {_short(given)}, but a finite amount of at least 0 is needed.")
    return amount


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
