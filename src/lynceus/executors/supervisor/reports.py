"""What a job reports: JSON lines in a file, marked lines in its output, or, for jobs that cannot be changed, matches of expressions."""

from __future__ import annotations

import json
import math
import re

MARK = b"::lynceus "
_MAX_LINE_BYTES = 65536
_MAX_POINTS = 4096
_READ_BYTES = 1 << 20
"""How much of the result file is read at a time."""


class Reports:
    """Metrics (the last value counts) and progress over time, collected while the job runs. Invalid lines are noted but not fatal."""

    def __init__(self, result_file: str, patterns: dict[str, str]) -> None:
        self._result_file, self._position, self._rest = result_file, 0, b""
        self._lines: dict[str, bytes] = {}
        self._patterns = {name: re.compile(pattern.encode()) for name, pattern in patterns.items()}
        self.metrics: dict[str, float] = {}
        self.trace: list[tuple[float, float]] = []
        self.problem = ""
        """The first report that could not be read, and why."""

    def add_output(self, stream: str, data: bytes, seconds: float) -> None:
        """Read some bytes of a stream."""
        *lines, rest = (self._lines.get(stream, b"") + data).split(b"\n")
        self._lines[stream] = rest[-_MAX_LINE_BYTES:]
        for line in lines:
            self._add_line(line, seconds)

    def read_file(self, seconds: float) -> None:
        """Read what is new in the result file."""
        try:
            with open(self._result_file, "rb") as file:
                file.seek(self._position)
                while data := file.read(_READ_BYTES):
                    self._position += len(data)
                    *lines, rest = (self._rest + data).split(b"\n")
                    self._rest = rest[-_MAX_LINE_BYTES:]
                    for line in lines:
                        self._add_json(line, seconds)
        except FileNotFoundError:
            return
        except OSError as error:
            self._ignored(f"the result file could not be read: {error.strerror}")

    def finish(self, seconds: float) -> None:
        """Read the last lines, which may lack a newline."""
        self.read_file(seconds)
        self._add_json(self._rest, seconds)
        for rest in self._lines.values():
            self._add_line(rest, seconds)
        self._rest, self._lines = b"", {}

    def _add_line(self, line: bytes, seconds: float) -> None:
        line = line.rstrip(b"\r")
        if line.startswith(MARK):
            self._add_json(line[len(MARK) :], seconds)
        for name, pattern in self._patterns.items():
            if (match := pattern.search(line)) is not None:
                self._add(name, match.group(1).decode("utf-8", "replace"), seconds)

    def _add_json(self, line: bytes, seconds: float) -> None:
        if not line.strip():
            return
        try:
            values = json.loads(line)
            if not isinstance(values, dict):
                raise ValueError
        except (ValueError, RecursionError):
            self._ignored(f"not a JSON object: {line[:80].decode('utf-8', 'replace')}")
            return
        for name, value in values.items():
            self._add(name, value, seconds)

    def _add(self, name: str, value: object, seconds: float) -> None:
        try:
            number = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            self._ignored(f"{name} is {str(value)[:40]!r}, not a finite number")
        elif name != "progress":
            self.metrics[name] = number
        else:
            self.trace.append((seconds, number))
            if len(self.trace) > _MAX_POINTS:
                self.trace = self.trace[::2]

    def _ignored(self, why: str) -> None:
        self.problem = self.problem or f"one report was ignored ({why})"
