"""Text that a line must contain if a regular expression matches it: looking for it is much faster than matching every line."""

from __future__ import annotations

import re

_SHORTEST = 3
"""Shorter texts are in too many lines."""
_TOKEN = re.compile(rb"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{\d*,?\d*\}|.", re.DOTALL)


def required_text(expression: bytes) -> bytes | None:
    r"""The longest text that every match contains; None if it is short, or cannot be told easily.

    >>> required_text(rb"^accuracy[:=]\s*([0-9.]+)"), required_text(rb"took ([0-9]+)(?:s| seconds)"), required_text(rb"(\d+)")
    (b'accuracy', None, None)
    """
    if b"(?" in expression or b"|" in expression:
        return None
    runs, run = [b""], b""
    for match in _TOKEN.finditer(expression):
        token, following = match[0], expression[match.end() : match.end() + 1]
        optional = following in (b"*", b"?", b"{")
        if token == b")" and optional:
            return None
        plain = token[1:] if token[:1] == b"\\" and not token[1:2].isalnum() else token
        if (
            len(plain) != 1
            or (plain.isspace() and plain != b" ")
            or (plain == token and token in b".^$*+?()[]{}")
            or optional
        ):
            runs.append(run)
            run = b""
        else:
            run += plain
            if following == b"+":
                runs.append(run)
                run = b""
    longest = max([*runs, run], key=len)
    return longest if len(longest) >= _SHORTEST else None
