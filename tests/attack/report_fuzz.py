"""What a job may write as its report: bytes of every kind, in pieces of every size."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

from hypothesis import strategies as st

from lynceus.executors.supervisor.masking import Secrets
from lynceus.executors.supervisor.reports import MARK, Reports

SECRET = "s3cret-value"
SLOWEST_S = 2.0
"""Processor seconds that the reports of one example may take; expressions that backtrack use most of it, then are given up."""
PATTERNS = {"plain": r"loss=([0-9.eE+-]+)", "backtracks": "(a+)+$", "optional": "x(y)?", "bytes": "[\\x80-\\xff](.)"}

_numbers = st.one_of(
    st.floats(),
    st.integers(),
    st.sampled_from([10**400, -(10**400), 0.1, True, None, "1e400", "nan", "Infinity", "١٢", ""]),
)
_names = st.one_of(
    st.text(max_size=20), st.sampled_from(["loss", "progress", "constructor", SECRET, f"x{SECRET}y", "\0", "\ud800"])
)
_values = st.recursive(
    _numbers | st.text(max_size=30) | st.just(SECRET),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_names, inner, max_size=4),
    max_leaves=12,
)
_objects = st.dictionaries(_names, _values, max_size=6).map(
    lambda value: json.dumps(value, ensure_ascii=len(value) % 2 == 0)
)
_lines = st.one_of(
    _objects.map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.binary(max_size=200),
    _values.map(lambda value: json.dumps(value).encode()),
    st.sampled_from(
        [b"{", b"}", b"[" * 5000, b'{"a":' * 3000, b'{"a": 1, "a": 2}', b"\xff\xfe{", b"\xef\xbb\xbf{}", b"null"]
    ),
    st.sampled_from(
        [
            b"a" * 40 + b"!",
            b"loss=1e999",
            b"loss=3",
            b"loss=--",
            b"x",
            b"\xffz",
            b"a" * 70000,
            b"9" * 5000,
            b" " * 66000,
        ]
    ),
    st.integers(1, 30).map(lambda count: b'{"loss": %d}' % count + b" " * 5000 * count),
)
reports = st.lists(st.tuples(_lines, st.sampled_from([b"\n", b"\n", b"\r\n", b"", b"\n\n"])), max_size=12)
expressions = st.sampled_from([[], ["plain"], ["plain", "optional", "bytes"], list(PATTERNS)])
pieces = st.lists(st.integers(1, 70000), max_size=5)


def check_report(
    folder: Path, lines: list[tuple[bytes, bytes]], sizes: list[int], *, marked: bool, expressions: list[str]
) -> None:
    """Read a report as a supervisor does. Whatever it is, what comes out is finite, short, clean and without secrets, and comes soon."""
    file = folder / "result.jsonl"
    data = b"".join(line + end for line, end in lines)
    file.write_bytes(b"")
    reader = Reports(str(file), {name: PATTERNS[name] for name in expressions}, Secrets([SECRET.encode()]))
    began = time.process_time()
    place = 0
    for size in [*sizes, len(data)]:
        piece, place = data[place : place + size], place + size
        with file.open("ab") as opened:
            opened.write(piece)
        reader.read_file(1.0)
        reader.add_output("stdout", (MARK if marked else b"") + piece, 1.0)
    reader.finish(2.0)
    took = time.process_time() - began
    assert took < SLOWEST_S, f"{took} s"
    _check_result(reader)


def _check_result(reader: Reports) -> None:
    assert all(type(value) is float and math.isfinite(value) for value in reader.metrics.values())
    assert all(math.isfinite(number) for pair in reader.trace for number in pair)
    for text in (*reader.metrics, reader.problem):
        text.encode()  # no lone surrogate
        assert not any(character < " " or "\x7f" <= character <= "\x9f" for character in text), repr(text)
        assert SECRET not in text
    assert all(len(name) <= 100 for name in reader.metrics)
    assert len(reader.problem) < 4000
    json.dumps(reader.metrics, allow_nan=False)
