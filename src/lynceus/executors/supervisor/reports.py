"""What a job reports: JSON lines in a file, marked lines in its output, or, for jobs that cannot be changed, matches of expressions.

A job can write anything, at any rate. So everything here is bounded, text is masked and cleaned where it enters, and what is not
understood is noted and left out.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
import time
from collections.abc import Iterator

from lynceus.executors.supervisor.cut_numbers import MetricPattern
from lynceus.executors.supervisor.learning_curve import LearningCurve
from lynceus.executors.supervisor.masking import Secrets
from lynceus.executors.supervisor.required_text import required_text
from lynceus.executors.supervisor.streams import Streams
from lynceus.executors.supervisor.time_limit import OutOfTimeError, time_limit
from lynceus.trial.text import clean_line, clean_name

MARK = b"::lynceus "
_NEWLINE = ord("\n")
_MAX_LINE_BYTES = 65536
_MAX_POINTS = 4096
_MAX_METRICS = 1000
_MAX_NOTES = 8
_READ_BYTES = 65536
"""How much of the result file is read at a time."""
_READ_S = 0.025
"""How long the result file is read before something else has its turn; the rest is read later."""
_LAST_BYTES = 1 << 20
"""How much of what was not yet read is read at the end. The last values count, so it is the end of the file."""
_SEARCH_S = 0.25
"""Processor time that one expression may use for one piece of output (64 KiB), which should take milliseconds."""


class _RepeatedError(ValueError):
    """A JSON object that has the same name twice."""


class Reports:
    """Metrics (the last value counts) and progress over time, collected while the job runs. Invalid lines are noted but not fatal."""

    def __init__(
        self,
        result_file: str,
        patterns: dict[str, str],
        secrets: Secrets | None = None,
        streams: Streams | None = None,
    ) -> None:
        self._result_file, self._position, self._rest = result_file, 0, b""
        self._cut = False
        """Whether the beginning of the current line was dropped."""
        self._lines: dict[str, bytes] = {}
        self._patterns = {name: re.compile(pattern.encode()) for name, pattern in patterns.items()}
        self._metric_patterns = {name: MetricPattern(pattern) for name, pattern in patterns.items()}
        self._required = {name: required_text(pattern.encode()) for name, pattern in patterns.items()}
        """What a line must contain if its expression matches."""
        self._secrets = secrets or Secrets()
        self._notes: dict[str, str] = {}
        """The first note of each kind."""
        self.metrics: dict[str, float] = {}
        self.trace: list[tuple[float, float]] = []
        self.streams = streams or Streams([])
        """What becomes of values that are limited by a statistic of all of them."""
        self.curves: list[LearningCurve] = []
        """What else wants to know every value."""

    @property
    def problem(self) -> str:
        """What was left out, and why; empty if nothing was."""
        return "; ".join(self._notes.values())

    def add_output(self, stream: str, data: bytes, seconds: float) -> None:
        """Read some bytes of a stream."""
        begun, end = self._lines.get(stream, b""), data.rfind(b"\n")
        if end < 0:
            self._lines[stream] = (begun + data)[-_MAX_LINE_BYTES:]
            return
        self._lines[stream] = data[max(end + 1, len(data) - _MAX_LINE_BYTES) :]
        self._add_lines(begun + data[:end] if begun else data[:end], seconds)

    def read_file(self, seconds: float, *, at_end: bool = False) -> None:
        """Read what is new in the result file, for a moment; at the end all that is left, up to a limit."""
        try:
            descriptor = os.open(self._result_file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        except FileNotFoundError:
            return
        except OSError as error:  # a symbolic link, among others
            self._note("file", f"reports were ignored (the result file could not be read: {error.strerror})")
            return
        try:
            found = os.fstat(descriptor)
            if stat.S_ISREG(found.st_mode):
                self._read_new(descriptor, found.st_size, seconds, at_end=at_end)
            else:
                self._note("file", "reports were ignored (the result file is not a regular file)")
        except OSError as error:
            self._note("file", f"reports were ignored (the result file could not be read: {error.strerror})")
        finally:
            os.close(descriptor)

    def _read_new(self, descriptor: int, size: int, seconds: float, *, at_end: bool) -> None:
        if size < self._position:  # the job wrote it anew
            self._position, self._rest, self._cut = 0, b"", False
        if at_end and size - self._position > _LAST_BYTES:
            left_out = size - self._position - _LAST_BYTES
            self._note("left out", f"{left_out} bytes of reports were left out, because there were too many")
            self._position, self._rest, self._cut = size - _LAST_BYTES, b"", True
        os.lseek(descriptor, self._position, os.SEEK_SET)
        until = time.monotonic() + _READ_S
        # At most what there was when we began: a process that could not be killed may still write.
        while self._position < size and (at_end or time.monotonic() < until):
            data = os.read(descriptor, min(_READ_BYTES, size - self._position))
            if not data:
                return
            self._position += len(data)
            *lines, rest = (self._rest + data).split(b"\n")
            if lines and self._cut:
                lines[0], self._cut = b"", False
            if len(rest) > _MAX_LINE_BYTES:
                rest, self._cut = b"", True
                self._ignored("a line of more than 64 KiB")
            self._rest = rest
            for line in lines:
                self._add_json(line, seconds)

    def finish(self, seconds: float) -> None:
        """Read the last lines, which may lack a newline."""
        self.read_file(seconds, at_end=True)
        if not self._cut:
            self._add_json(self._rest, seconds)
        for rest in self._lines.values():
            self._add_lines(rest, seconds)
        self._rest, self._lines = b"", {}
        self.metrics.update(self.streams.statistics())

    def _add_lines(self, text: bytes, seconds: float) -> None:
        """Read complete lines. The text as a whole is searched first: most lines hold nothing for us, and there may be millions."""
        at = text.find(MARK)
        while at >= 0:
            end = _line_end(text, at)
            if at == 0 or text[at - 1] == _NEWLINE:
                self._add_json(text[at + len(MARK) : end].rstrip(b"\r"), seconds)
            at = text.find(MARK, end)
        for name in list(self._patterns):
            self._search(name, text, seconds)

    def _search(self, name: str, text: bytes, seconds: float) -> None:
        """Read a metric from complete lines; its expression is given up if it is slow or takes parts of numbers."""
        pattern, required = self._patterns[name], self._required[name]
        every = name == "progress" or name in self.streams.metrics
        try:
            with time_limit(_SEARCH_S):
                for line in _lines_with(required, text, backwards=not every):
                    match = pattern.search(line.rstrip(b"\r"))
                    if match is None:
                        continue
                    if cut := self._metric_patterns[name].cut(match.string, match):
                        self._give_up(name, f"{name} was not read, because its pattern {self._quoted(cut, 200)}")
                        return
                    number = (match.group(1) or b"").decode("utf-8", "replace")
                    if self._add(name, number, seconds) and not every:
                        return  # the last one counts
        except OutOfTimeError:
            del self._patterns[name]
            self._note(name, f"the expression of {name} was given up, because it took too long on some output")

    def _give_up(self, name: str, why: str) -> None:
        """Drop what an expression has read: numbers of which some are wrong would mislead the search."""
        del self._patterns[name]
        self.metrics.pop(name, None)
        self.streams.forget(name)
        self._note(name, why)

    def _add_json(self, line: bytes, seconds: float) -> None:
        if not line.strip():
            return
        try:
            values = json.loads(line, object_pairs_hook=_once)
            if not isinstance(values, dict):
                raise ValueError
        except _RepeatedError:
            self._ignored("the same name twice in one JSON object")
        except (ValueError, RecursionError):
            self._ignored(f"not a JSON object: {self._quoted(line.decode('utf-8', 'replace'), 80)}")
        else:
            for name, value in sorted(
                values.items(), key=lambda one: one[0] != "progress"
            ):  # the others are of that moment
                self._add(clean_name(self._secrets.masked_text(name)), value, seconds)

    def _add(self, name: str, value: object, seconds: float) -> bool:
        """Take a value; false if it is not a finite number."""
        try:
            number = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            shown = "several values" if isinstance(value, (dict, list)) else repr(self._quoted(str(value), 40))
            self._ignored(f"{name} is {shown}, not a finite number")
            return False
        self.streams.add(name, number)
        for curve in self.curves:
            curve.add(name, number, seconds)
        if name == "progress":
            self.trace.append((seconds, number))
            if len(self.trace) > _MAX_POINTS:
                self.trace = self.trace[::2]
        elif name in self.metrics or name in self._patterns or len(self.metrics) < _MAX_METRICS:
            self.metrics[name] = number
        else:
            self._note("metrics", f"only the first {_MAX_METRICS} metrics were kept")
        return True

    def _quoted(self, text: str, longest: int) -> str:
        """Masked first, because a part of a secret is not recognised."""
        return clean_line(self._secrets.masked_text(text), longest)

    def _ignored(self, why: str) -> None:
        self._note("report", f"one report was ignored ({why})")

    def _note(self, kind: str, note: str) -> None:
        if len(self._notes) < _MAX_NOTES:
            self._notes.setdefault(kind, note)


def _line_end(text: bytes, at: int) -> int:
    end = text.find(b"\n", at)
    return len(text) if end < 0 else end


def _lines_with(required: bytes | None, text: bytes, *, backwards: bool) -> Iterator[bytes]:
    """The lines of a text that contain another one, in this order or the other; all lines if it is None."""
    if required is None:
        lines = text.split(b"\n")
        yield from reversed(lines) if backwards else lines
        return
    at = text.rfind(required) if backwards else text.find(required)
    while at >= 0:
        start, end = text.rfind(b"\n", 0, at) + 1, _line_end(text, at)
        yield text[start:end]
        at = text.rfind(required, 0, start) if backwards else text.find(required, end)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _RepeatedError
    return found
