"""Why a measurement failed: one sentence for the user, and the exit code of the runner."""

from __future__ import annotations

FAILED = 70
"""EX_SOFTWARE of sysexits.h: the server or the load failed; the last line of standard error says how."""
TRY_AGAIN = 75
"""EX_TEMPFAIL: this machine is the reason; the run may be repeated."""
PASSED_ON = frozenset({75, 85})
"""Exit codes of a server that ask the study for a retry: the runner ends with the same."""


class MeasurementError(Exception):
    """The sentence that becomes the detail of the failed trial."""

    def __init__(self, sentence: str, code: int = FAILED) -> None:
        super().__init__(sentence)
        self.code = code


class AnswerError(Exception):
    """An HTTP answer that cannot be used: a short clause such as `HTTP 500` or `not JSON`."""
