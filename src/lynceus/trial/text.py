"""Text that a job, a user or another machine wrote, made safe to store and to show.

Such text is data: a NUL byte fails in PostgreSQL, a lone surrogate fails in UTF-8, an escape sequence rewrites a terminal, and a
right-to-left mark reorders a line. It is cleaned once, where it enters (reports of jobs, `tell`, the API); whatever shows it still
escapes it for its own medium (markup, HTML, CSV).

Standard library only, for every Python from 3.8 on: supervisors on nodes use it, too.
"""

from __future__ import annotations

import re

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_LONGEST_LINE = 500
_LONGEST_NAME = 100

_UNPRINTABLE = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but for tab and newline
    "\ud800-\udfff"  # lone surrogates, which cannot be encoded
    "\u2028\u2029"  # separators that some readers take for line ends
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # marks that change the direction of what follows
    "\ufeff\ufff9-\ufffb\ufffe\uffff"
)
_UNSAFE = re.compile(f"[{_UNPRINTABLE}]")
_HINT = re.compile(r"\s*(?:try|use|run|see|type|for)\b.*(?:--help|\s-h\b)", re.IGNORECASE)
"""A line that only says where more is told: `Try 'sleep --help' for more information.`"""


def clean_text(text: str) -> str:
    r"""Text of several lines, with a replacement character for each one that is unsafe to store or show.

    >>> clean_text("50%\r\n\x1b[2Jdone\x00")
    '50%\n�[2Jdone�'
    """
    return _UNSAFE.sub(REPLACEMENT, text.replace("\r\n", "\n"))


def escaped_text(text: str) -> str:
    r"""Text with a code such as `\u001b` in place of each unsafe character: exact inside a JSON document, and harmless to show.

    >>> escaped_text('{"name": "\x9b2J"}')
    '{"name": "\\u009b2J"}'
    """
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def is_text(text: str) -> bool:
    """Whether a string can be encoded: arguments and file names that are not UTF-8 hold lone surrogates.

    >>> is_text("naïve"), is_text("\\udcff")
    (True, False)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def clean_line(text: str, longest: int = _LONGEST_LINE) -> str:
    r"""One line of at most `longest` characters.

    >>> clean_line("first\n  second\x1b[0m")
    'first second�[0m'
    >>> clean_line("a" * 9, longest=5)
    'aaaa…'
    """
    line = " ".join(clean_text(text).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def clean_name(text: str) -> str:
    r"""The name of a metric: one line, short enough for a column.

    >>> clean_name("p99\x00 latency ")
    'p99� latency'
    """
    return clean_line(text, _LONGEST_NAME)


def telling_line(text: str) -> str:
    """The last line that says something; a hint at `--help` only where nothing else was said, and empty if all lines are.

    >>> telling_line("sleep: invalid time interval 'x'\\nTry 'sleep --help' for more information.\\n")
    "sleep: invalid time interval 'x'"
    """
    lines = [line for line in text.split("\n") if line.strip()]
    return next((line for line in reversed(lines) if not _HINT.match(line)), lines[-1] if lines else "")
