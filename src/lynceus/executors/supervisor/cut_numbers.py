r"""Patterns of metrics that take a part of a number: `(\d+)` reads 0 from `error: 0.93`, and nothing would look wrong.

A pattern may take a part on purpose: `(\d+)\.` names the point that it leaves out.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_NUMBER = r"[-+]?\d*\.?\d+(?:[eE][-+]?\d+)?"
"""Every number that a program prints, without separators of thousands."""
_MOST_CHARACTERS = 40
"""How much of a line beside a number is looked at."""
_SAMPLE = b"0.93"
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?P<\w+>|\(\?|.", re.DOTALL)
_NAMES_MORE = r"(?:\\[.,d]|,|\[(?:[.,]|0-9|\\d)+\])"
"""A pattern that says itself what stands beside its group: a point, a comma, further digits."""
_ENDS_WITH_MORE = re.compile(_NAMES_MORE + r"[*+?]*\Z")
_STARTS_WITH_MORE = re.compile(_NAMES_MORE)
_ANYTHING = re.compile(r"(?<!\\)\.[*+]\??\Z")
_BEFORE = re.compile(rb"(?:\d[.,]?|\d[eE][-+]?|(?<![\w.])\.|(?<![\w.)\]-])-)\Z")
_BEFORE_SIGN = re.compile(rb"\d[eE]\Z")
_AFTER = re.compile(rb"\d|[.,]\d|[eE][-+]?\d")
_REST_BEFORE = re.compile(rb"[-+]?[\d.,]*(?:\d[eE][-+]?)?\Z")
_REST_AFTER = re.compile(rb"[\d.,]*(?:[eE][-+]?\d+)?")


class _Parts(NamedTuple):
    before: str
    group: str
    after: str


class MetricPattern:
    r"""A regular expression with one group, around the number of a metric.

    >>> MetricPattern(r"accuracy.*(\d+)").cut_sample()
    "takes 3 of 0.93; write 'accuracy.*?([-+]?\\d*\\.?\\d+(?:[eE][-+]?\\d+)?)'"
    """

    def __init__(self, pattern: str) -> None:
        self._parts = parts = _split(pattern)
        self._more_before = _ENDS_WITH_MORE.search(parts.before) is not None
        self._more_after = _STARTS_WITH_MORE.match(parts.after) is not None

    def cut(self, line: bytes, match: re.Match[bytes]) -> str:
        """What it takes of which number, and what to write instead; empty if it takes a whole one, or names what it leaves out."""
        start, end = match.span(1)
        taken = line[max(start, 0) : max(end, 0)]
        if not _is_number(taken):
            return ""
        before, after = line[max(start - _MOST_CHARACTERS, 0) : start], line[end : end + _MOST_CHARACTERS]
        is_cut_before = (_BEFORE_SIGN if taken[:1] in (b"-", b"+") else _BEFORE).search(before) is not None
        is_cut_after = _AFTER.match(after) is not None
        if not (is_cut_before and not self._more_before) and not (is_cut_after and not self._more_after):
            return ""
        first, last = _REST_BEFORE.search(before), _REST_AFTER.match(after)
        whole = (first[0] if first else b"") + taken + (last[0].rstrip(b".,") if last else b"")
        remedy = f"write '{self._better()}'" if b"," not in whole else "print numbers without commas"
        return f"takes {taken.decode()} of {whole.decode()}; {remedy}"

    def cut_sample(self) -> str:
        """The same for a decimal number, as far as what surrounds the group does not depend on the line."""
        before, group, after = self._parts
        anything = _ANYTHING.search(before)
        lead = anything[0] if anything else r"\A" if before else ""
        try:
            found = re.search(f"{lead}({group}){after}".encode(), _SAMPLE)
        except re.error:  # the group stands inside another one
            return ""
        return "" if found is None or self._more_before else self.cut(_SAMPLE, found)

    def _better(self) -> str:
        """The same pattern with a group that takes numbers of every form."""
        before, _, after = self._parts
        greedy = _ANYTHING.search(before) is not None and not before.endswith("?")
        return f"{before}{'?' if greedy else ''}({_NUMBER}){after}"


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _split(pattern: str) -> _Parts:
    """What stands before, in and behind its one group."""
    depth, begin = 0, None
    for token in _TOKEN.finditer(pattern):
        if token[0] == "(" or token[0].startswith("(?P<"):
            begin, depth = token.span(), 1
        elif token[0].startswith("("):
            depth += 1
        elif token[0] == ")":
            depth -= 1
            if begin is not None and not depth:
                return _Parts(pattern[: begin[0]], pattern[begin[1] : token.start()], pattern[token.end() :])
    return _Parts(pattern, "", "")
