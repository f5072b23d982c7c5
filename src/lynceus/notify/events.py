"""The events of a study that users are notified of. Pure: the same record gives the same events."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from lynceus.analysis.documents.json import to_json
from lynceus.errors import InputError, counted
from lynceus.problem.units import format_money
from lynceus.study.view import StudyView
from lynceus.trial.stop import StopReason
from lynceus.trial.text import clean_line, clean_text

BUDGET_SHARE = 0.8
"""Share of the budget after which users are notified."""
_CALL = re.compile(r"(?<=@)(?=\w)|(?<=<)(?=[!@#\w])|(?<=\])(?=\()")
"""Where chats find mentions and links: `@all`, `<!channel>`, `<http://…|text>`, `[text](…)`. An invisible space there ends them."""


@dataclass(frozen=True)
class Event:
    """Something that users are notified of, once."""

    kind: str
    """`end`, `pause` or `budget` of a study; `change`, `drift`, `late` or `suggestion` of a recurring job."""
    key: str
    """Events with the same key are sent once: a study that is resumed and ends again without another trial has no new event."""
    title: str
    text: str
    """A few sentences."""
    facts: dict[str, Any]
    """The same as JSON values, for programs."""


def events(study: StudyView) -> list[Event]:
    """All events of a study so far, sent or not."""
    found = []
    # The stop that is written down: while trials are open, a study may only seem to be at its end.
    budget, spent, stopped = study.budget_usd, study.spent_usd, study.record.stopped
    if math.isfinite(budget) and budget > 0 and spent >= BUDGET_SHARE * budget:
        title = f"{study.name}: {spent / budget:.0%} of the budget is spent".replace("%", " %")
        found.append(_event(study, "budget", f"budget {budget:.9g}", title))
    if stopped is not None and not study.pending:
        settled = len(study.observations)
        if stopped.kind.pauses:
            # Without money, no trial tells one pause from the next.
            key = f"pause {settled}" + (f" {stopped.reason}" if stopped.kind is StopReason.SHARED_BUDGET else "")
            found.append(_event(study, "pause", key, f"{study.name} is paused", stopped.reason))
        else:
            key = f"end {stopped.kind} {settled}"
            found.append(_event(study, "end", key, f"{study.name} has ended", stopped.reason))
    return found


def quiet(text: str) -> str:
    r"""Text of a job or a storage in a message: nothing in it calls people, hides a link or steers a terminal.

    >>> quiet("@everyone <!channel> [here](http://x) a@b\x1b").replace("\u200b", "|")
    '@|everyone <|!channel> [here]|(http://x) a@|b�'
    """
    return _CALL.sub("\u200b", clean_text(text))


def _event(study: StudyView, kind: str, key: str, title: str, reason: str = "") -> Event:
    stopped_for = None if study.record.stopped is None else study.record.stopped.kind
    best, title, reason = _best(study), quiet(clean_line(title)), quiet(clean_line(reason))
    lines = [f"{reason[:1].upper()}{reason[1:]}."] if reason else []
    budget = f" of {format_money(study.budget_usd)}" if math.isfinite(study.budget_usd) else ""
    lines.append(f"Spent {format_money(study.spent_usd)}{budget} on {counted(len(study.observations), 'trial')}.")
    if best is None:
        lines.append("No configuration is known to keep every constraint.")
    else:
        params = ", ".join(f"{name}={value}" for name, value in best["params"].items())
        lines.append(quiet(clean_line(f"Best so far: {params} ({study.problem.objective}: {best['value']:.6g}).")))
    if kind == "pause":
        failures = stopped_for is StopReason.PAUSED
        first = "Check the failures, then continue" if failures else "When there is money again, continue"
        lines.append(f"{first} with: lynceus resume {quiet(clean_line(study.name))}")
    facts = {
        "study": study.name,
        "event": kind,
        "title": title,
        "text": "\n".join([title, *lines]),
        "reason": reason or None,
        "spent_usd": study.spent_usd,
        "budget_usd": study.budget_usd,
        "trials": len(study.observations),
        "best": best,
    }
    return Event(kind, key, title, "\n".join(lines), to_json(facts))


def _best(study: StudyView) -> dict[str, Any] | None:
    try:
        return {"params": dict(study.best_params), "value": study.best_value}
    except InputError:
        return None
