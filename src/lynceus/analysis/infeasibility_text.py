"""Sentences about a study without an answer: what fails, and what to do."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from lynceus.errors import counted
from lynceus.problem.metric_units import with_unit
from lynceus.problem.objective import Constraint, bound_text
from lynceus.problem.units import format_bytes, format_duration, format_metric, format_money
from lynceus.trial.outcome import End, Observations
from lynceus.trial.stop import StopReason

if TYPE_CHECKING:
    from lynceus.analysis.infeasibility import Cause, LimitFacts, LimitValue
    from lynceus.study.view import StudyView

_MOST = 3
"""Limits in one sentence."""
Likeliest = tuple[Mapping[str, object] | None, float, float]
"""A configuration, its chance to meet every limit, and what a run of it is expected to be charged."""


def summary(cause: Cause, limits: Sequence[LimitFacts], observations: Observations) -> str:
    """What fails, and by how much."""
    if cause == "no trials":
        return "no trial has ended yet"
    if cause == "failed":
        last = observations[-1].outcome
        count = "the only trial" if len(observations) == 1 else f"all {len(observations)} trials"
        return f"{count} failed, so nothing is known of the limits; the last: {last.detail or last.reason}"
    failing = [one for one in limits if one.fails]
    if cause == "together":
        closest = "; ".join(_kept(one) for one in limits[:_MOST])
        return f"each limit is met by some run, but no run meets all of them: {closest}"
    if not failing:
        return "no run has met every limit yet"
    return "; ".join(_missed(one, observations) for one in failing[:_MOST])


def advice(
    cause: Cause,
    limits: Sequence[LimitFacts],
    study: StudyView,
    likeliest: Likeliest,
    nearest: tuple[LimitFacts, LimitValue] | None = None,
    asked: Sequence[Constraint] = (),
) -> str:
    """What to do; `nearest` is the one limit that would have to change least, and the run that would then meet all of them.

    `asked` are limits that are not those of the study, but were asked about: the advice brings them along.
    """
    name, (params, chance, usd) = study.name, likeliest
    also = asked_options(asked)
    likely = ""
    if params is not None:
        likely = f"{_params(params)} meets every limit with a chance of {chance:.0%}, for about {format_money(usd)}"
    if cause == "no trials":
        return f"wait for trials, or start them with: lynceus resume {name}"
    if cause == "failed":
        last = study.observations[-1].order.number
        return f"look at what it printed with: lynceus logs {name} {last}, mend the job, then: lynceus resume {name}"
    if cause == "open":
        how = f" with: lynceus resume {name}{also};" if also else ":"
        return f"let the search go on{how} {likely or 'too little is known yet'}"
    if cause == "timeout":
        longest = max(seen.outcome.seconds for seen in study.observations if seen.outcome.end is End.TIMEOUT)
        return (
            f"raise trial.max_duration, which stopped trials after {format_duration(longest)}, before their limits; "
            "then start the job under another name"
        )
    if cause == "budget":
        more = "" if math.isnan(usd) else f"{math.ceil(max(usd, 0.01) * 100) / 100:.2f} USD"
        why = likely or "the money left stopped trials before their limits"
        if study.stopped is not None and study.stopped.kind is StopReason.TRIALS:
            return f"allow more trials with: lynceus resume {name} --add-trials 20{also}" + (
                f"; {likely}" if likely else ""
            )
        if study.stopped is not None and study.stopped.kind is StopReason.WALL_CLOCK:
            return "start the job under another name with a longer budget.wall_clock, and import these trials"
        return f"add money with: lynceus resume {name} --add-budget '{more or '5 USD'}'{also}; {why}"
    if cause == "together" and nearest is not None:
        limit, value = nearest
        option = f"--constraint '{_constraint_for(limit, value.value)}'{asked_options(asked, {limit.metric})}"
        return (
            f"allow more with: lynceus resume {name} {option}, which trial {value.trial} meets ({_params(value.params)}; "
            f"lynceus whatif {name} {option} answers first, for free)"
        )
    return _other_limit(limits, name, asked)


def asked_options(asked: Sequence[Constraint], given: Collection[str] = ()) -> str:
    """Options of `lynceus resume` and `whatif` for limits that were asked about, after a space; none for quantities that have one.

    >>> asked_options([Constraint("time", 60.0), Constraint("bytes", 1e8, unit="B")], {"bytes"})
    " --constraint 'runtime <= 1m'"
    """
    texts = [str(one) for one in asked if one.metric not in given]
    return "".join(f" --constraint '{'run' if text.startswith('time ') else ''}{text}'" for text in texts)


def _other_limit(limits: Sequence[LimitFacts], name: str, asked: Sequence[Constraint]) -> str:
    """Which limits would do, by what is known."""
    wanted, changed = [], set()
    for one in limits:
        best = one.measured if one.measured is not None else one.believed
        if one.believed is not None and best is not None and one.believed.misses_by < best.misses_by:
            best = one.believed
        if one.fails and best is not None and best.misses_by > 0:
            wanted.append(_constraint_for(one, best.value))
            changed.add(one.metric)
    if not wanted:
        other = [one for one in limits if one.fails and one.measured is not None][:1] or limits[:1]
        if not other:
            return ""
        (one,) = other
        text = one.constraint if one.measured is None or not one.fails else _constraint_for(one, one.measured.value)
        also = asked_options(asked, {one.metric})
        return f"see what other limits would give: lynceus whatif {name} --constraint '{text}'{also}"
    options = " ".join(f"--constraint '{text}'" for text in wanted) + asked_options(asked, changed)
    return f"allow more with: lynceus resume {name} {options} (lynceus whatif {name} {options} answers first, for free)"


def _constraint_for(limit: LimitFacts, value: float) -> str:
    """The limit with a bound that this value meets, with two digits to spare."""
    digits = 2 - math.floor(math.log10(abs(value))) if value else 0
    scale = 10.0 ** (digits - 1)
    bound = (math.floor if limit.at_least else math.ceil)(value * scale) / scale
    bound = float(f"{bound:.12g}")
    shown = bound_text(bound, limit.unit)
    if limit.metric in ("time", "cost"):
        shown = format_duration(bound) if limit.metric == "time" else format_money(bound)
    confidence = limit.constraint.partition(" @ ")[2]
    name = "runtime" if limit.metric == "time" else limit.metric
    return f"{name} {'>=' if limit.at_least else '<='} {shown}" + (f" @ {confidence}" if confidence else "")


def _missed(limit: LimitFacts, observations: Observations) -> str:
    """How far the best run and the best configuration are from a limit that no run meets."""
    best, believed, word = limit.measured, limit.believed, _best_word(limit)
    if best is None:
        stopped = sum(seen.outcome.end is End.TIMEOUT for seen in observations)
        said = f"{limit.constraint} fails: no run has finished" + (f", {stopped} were stopped" if stopped else "")
    else:
        said = f"{limit.constraint} fails: the {word} of {counted(limit.finished, 'finished run')} has {_shown(limit, best)}"
    if believed is None:
        return said
    if best is not None and believed.misses_by >= best.misses_by * (1 - 1e-9):
        return f"{said}, and no configuration is expected to be better"
    return f"{said}; the {word} believed of all configurations is {_shown(limit, believed)}"


def _kept(limit: LimitFacts) -> str:
    return f"{limit.constraint} by {limit.kept} of {limit.finished}"


def _shown(limit: LimitFacts, best: LimitValue) -> str:
    how = "predicted" if best.trial is None else f"trial {best.trial}"
    side = "under" if limit.at_least else "over"
    off = ""
    if best.misses_by > 0 and math.isfinite(best.misses_by_share):
        off = f", {_quantity(limit, best.misses_by)} {side} it ({best.misses_by_share:.2g} × the limit)"
        if best.misses_by_share < 1:
            off = f", {_quantity(limit, best.misses_by)} {side} it ({best.misses_by_share:.1%})"
    return f"{_quantity(limit, best.value)} ({_params(best.params)}; {how}){off}"


def _quantity(limit: LimitFacts, value: float) -> str:
    if limit.metric == "time":
        return format_duration(value)
    if limit.metric == "cost":
        return format_money(value)
    return format_bytes(value) if limit.unit == "B" else with_unit(format_metric(value), limit.unit)


def _best_word(limit: LimitFacts) -> str:
    if limit.at_least:
        return "largest"
    return {"time": "fastest", "cost": "cheapest"}.get(limit.metric, "smallest")


def _params(params: Mapping[str, object]) -> str:
    return " ".join(f"{name}={value}" for name, value in params.items())
