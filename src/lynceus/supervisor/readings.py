"""What a job reports: JSON lines in a file, marked lines on its output, or regular expressions for jobs that cannot be changed."""

from __future__ import annotations

import json
import math
import re

MARK = b"::lynceus "
_LONGEST_LINE = 65536
_MOST_POINTS = 4096
_MOST_READ = 1 << 20
"""Bytes of the result file that are read at a time."""


class Readings:
    """Metrics (the last value counts) and progress over time, gathered while the job runs. Odd lines are noted, never fatal."""

    def __init__(self, result: str, patterns: dict[str, str]) -> None:
        self._result, self._at, self._rest = result, 0, b""
        self._lines: dict[str, bytes] = {}
        self._patterns = {name: re.compile(pattern.encode()) for name, pattern in patterns.items()}
        self.metrics: dict[str, float] = {}
        self.trace: list[tuple[float, float]] = []
        self.note = ""
        """What could not be read, the first time."""

    def output(self, stream: str, data: bytes, seconds: float) -> None:
        """Some bytes of a stream."""
        *lines, rest = (self._lines.get(stream, b"") + data).split(b"\n")
        self._lines[stream] = rest[-_LONGEST_LINE:]
        for line in lines:
            self._line(line, seconds)

    def file(self, seconds: float) -> None:
        """What is new in the result file."""
        try:
            with open(self._result, "rb") as file:
                file.seek(self._at)
                while data := file.read(_MOST_READ):
                    self._at += len(data)
                    *lines, rest = (self._rest + data).split(b"\n")
                    self._rest = rest[-_LONGEST_LINE:]
                    for line in lines:
                        self._json(line, seconds)
        except FileNotFoundError:
            return
        except OSError as error:
            self._odd(f"the result file could not be read: {error.strerror}")

    def finish(self, seconds: float) -> None:
        """The last lines, which may lack their end."""
        self.file(seconds)
        self._json(self._rest, seconds)
        for rest in self._lines.values():
            self._line(rest, seconds)
        self._rest, self._lines = b"", {}

    def _line(self, line: bytes, seconds: float) -> None:
        line = line.rstrip(b"\r")
        if line.startswith(MARK):
            self._json(line[len(MARK) :], seconds)
        for name, pattern in self._patterns.items():
            if (match := pattern.search(line)) is not None:
                self._number(name, match.group(1).decode("utf-8", "replace"), seconds)

    def _json(self, line: bytes, seconds: float) -> None:
        if not line.strip():
            return
        try:
            values = json.loads(line)
            if not isinstance(values, dict):
                raise ValueError
        except (ValueError, RecursionError):
            self._odd(f"not a JSON object: {line[:80].decode('utf-8', 'replace')}")
            return
        for name, value in values.items():
            self._number(name, value, seconds)

    def _number(self, name: str, value: object, seconds: float) -> None:
        try:
            number = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            self._odd(f"{name} is {str(value)[:40]!r}, not a finite number")
        elif name != "progress":
            self.metrics[name] = number
        else:
            self.trace.append((seconds, number))
            if len(self.trace) > _MOST_POINTS:
                self.trace = self.trace[::2]

    def _odd(self, what: str) -> None:
        self.note = self.note or f"one report was ignored ({what})"
