"""Facts as JSON: the documented shape in which a database keeps orders and outcomes.

Version 1. A field that is absent or null has no value (a number that is not known); the text "inf" is infinity. Nothing but facts:
no class names, no pickles. A reader of a later version reads every earlier one.

    order    {"v": 1, "number", "row", "cap_s", "reserved_usd", "boots", "input": {…}, "plan": {"row", "why", "stoppable", "score", "gain",
              "best_gain", "best_rate", "chance_rate", "probability", "usd", "path": […], "expected": {"form", "mean": […], "std": […]}}}
    outcome  {"v": 1, "end", "seconds", "charged_usd", "metrics": {…}, "trace": [[seconds, progress], …], "reason", "detail",
              "usage": {"peak_memory_bytes", "cpu_s", "read_bytes", "written_bytes"}, "oracle_s"}
    told     {"v": 1, "seconds", "metrics": {…}, "censored", "bound_s"}
    limits   [{"v": 1, "started", "before": [{"metric", "bound", "at_least", "confidence"}, …], "after": […]}, …]
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from lynceus.errors import InfrastructureError, InputError
from lynceus.problem.job_input import JobInput
from lynceus.problem.objective import Constraint
from lynceus.trial.limit_change import LimitChange
from lynceus.trial.order import Expected, Order, Plan, Purpose
from lynceus.trial.outcome import End, FailureReason, Outcome, TrainingTarget
from lynceus.trial.text import REPLACEMENT
from lynceus.trial.usage import Usage

VERSION = 1

Json = dict[str, Any]

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
"""What PostgreSQL cannot keep, and UTF-8 cannot write."""

_PLAN_NUMBERS = ("score", "gain", "best_gain", "best_rate", "chance_rate", "probability", "usd")


class DamagedJson(str):
    """The text of a column that should hold JSON and does not."""


class DamagedRecordError(InfrastructureError):
    """A row of a storage makes no sense; other rows may."""

    see = "durability.md#backups"


def storable(value: Any) -> Any:
    r"""A text, or a JSON value with all its texts, without characters that no database can keep.

    >>> storable({"detail": "boom \0", "trace": [[1.0, 0.5]]})
    {'detail': 'boom �', 'trace': [[1.0, 0.5]]}
    """
    if isinstance(value, str):
        return _UNSTORABLE.sub(REPLACEMENT, value)
    if isinstance(value, Mapping):
        return {storable(name): storable(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [storable(one) for one in value]
    return value


def check_seed(seed: int) -> None:
    """Refuse a seed that databases cannot keep."""
    if not 0 <= seed < 2**63:
        raise InputError(f"seed is {str(seed)[:40]}, but a whole number from 0 to 2**63 - 1 is needed.")


def to_json_text(value: Any) -> str:
    """What a database keeps of a JSON value: the one place where facts become text."""
    text = json.dumps(value)
    return json.dumps(storable(value)) if _suspicious(text) else text


def of_json_text(text: str | bytes) -> Any:
    """The JSON value of a column; a text that is none is returned as `DamagedJson`, so that other rows can be read."""
    try:
        value = json.loads(text)
        return storable(value) if _suspicious(str(text)) else value
    except (TypeError, ValueError, RecursionError):
        return DamagedJson(text)


def _suspicious(text: str) -> bool:
    """Whether a JSON text may hold a NUL or a surrogate: quick, and right for all but a few."""
    return "\\u0000" in text or "\\ud" in text.lower()


@contextmanager
def reading(what: str, shown_url: str) -> Iterator[None]:
    """Turn every error in the values of a row into one sentence that names `what` is damaged."""
    try:
        yield
    except InfrastructureError:
        raise
    except (AttributeError, LookupError, TypeError, ValueError, ArithmeticError) as error:
        raise DamagedRecordError(
            f"{what} in storage {shown_url} is damaged ({_short(error)}); something else than Lynceus changed it, "
            "restore the storage from a backup."
        ) from None


def _short(error: Exception) -> str:
    said = f"no field {error}" if isinstance(error, KeyError) else str(error)
    return " ".join(said.split())[:100] or type(error).__name__


def order_record(order: Order) -> Json:
    """An order as JSON."""
    plan = order.plan
    thought: Json = {"row": plan.row, "why": plan.why, "stoppable": plan.stoppable}
    thought |= {name: _out(getattr(plan, name)) for name in _PLAN_NUMBERS if not math.isnan(getattr(plan, name))}
    if plan.purpose is not Purpose.SEARCH:
        thought["purpose"] = str(plan.purpose)
    if plan.path:
        thought["path"] = list(plan.path)
    if plan.expected is not None:
        prediction = plan.expected
        thought["expected"] = {
            "form": prediction.form,
            "mean": [_out(value) for value in prediction.mean],
            "std": [_out(value) for value in prediction.std],
        } | ({"logs": list(prediction.logs)} if any(prediction.logs) else {})
    return {
        "v": VERSION,
        "number": order.number,
        "row": order.row,
        "cap_s": _out(order.timeout_s),
        "reserved_usd": _out(order.reserved_usd),
        "boots": order.boots,
        **({} if order.input is None else {"input": order.input.record()}),
        "plan": thought,
    }


def order_of(record: Mapping[str, Any]) -> Order:
    """The order that a record tells of."""
    _check(record, "an order")
    thought = record["plan"]
    expected = None
    if (prediction := thought.get("expected")) is not None:
        mean, std = (tuple(map(_in, prediction[name])) for name in ("mean", "std"))
        expected = Expected(prediction["form"], mean, std, tuple(map(bool, prediction.get("logs", ()))))
    plan = Plan(
        thought["row"],
        thought["why"],
        thought["stoppable"],
        **{name: _in(thought[name]) for name in _PLAN_NUMBERS if name in thought},
        expected=expected,
        path=tuple(thought.get("path", ())),
        purpose=_purpose(thought),
    )
    number, row = _whole(record["number"]), _whole(record["row"])
    timeout_s, reserved_usd, boots = _in(record["cap_s"]), _in(record["reserved_usd"]), bool(record["boots"])
    return Order(number, row, timeout_s, reserved_usd, plan, boots, JobInput.of_record(record.get("input")))


_FORMER_PURPOSES = {
    "asked for by the user": Purpose.QUEUE,
    "confirms the best": Purpose.CONFIRM,
    "moved to on-demand machines": Purpose.MOVE,
    "imported": Purpose.IMPORT,
}
"""How the reason of an order begins in records of version 0.1, which do not name the purpose."""


def _purpose(plan: Mapping[str, Any]) -> Purpose:
    if "purpose" in plan:
        return Purpose(plan["purpose"])
    return next((purpose for text, purpose in _FORMER_PURPOSES.items() if plan["why"].startswith(text)), Purpose.SEARCH)


def outcome_record(outcome: Outcome) -> Json:
    """An outcome as JSON."""
    record: Json = {
        "v": VERSION,
        "end": str(outcome.end),
        "seconds": outcome.seconds,
        "charged_usd": outcome.charged_usd,
    }
    if outcome.metrics:
        record["metrics"] = {name: _out(value) for name, value in outcome.metrics.items()}
    if outcome.trace:
        record["trace"] = [[_out(moment), _out(progress)] for moment, progress in outcome.trace]
    if outcome.reason is not None:
        record["reason"] = str(outcome.reason)
    if outcome.detail:
        record["detail"] = outcome.detail
    if outcome.usage is not None:
        record["usage"] = asdict(outcome.usage)
    if outcome.oracle_s is not None:
        record["oracle_s"] = _out(outcome.oracle_s)
    return record


def outcome_of(record: Mapping[str, Any]) -> Outcome:
    """The outcome that a record tells of."""
    _check(record, "an outcome")
    reason = record.get("reason")
    return Outcome(
        End(record["end"]),
        record["seconds"],
        record["charged_usd"],
        {name: _in(value) for name, value in record.get("metrics", {}).items()},
        tuple((_in(moment), _in(progress)) for moment, progress in record.get("trace", ())),
        None if reason is None else FailureReason(reason),
        record.get("detail", ""),
        None if "oracle_s" not in record else _in(record["oracle_s"]),
        usage=Usage.read(record.get("usage")),
    )


def target_record(target: TrainingTarget | None) -> Json | None:
    """What the model hears, as JSON."""
    if target is None:
        return None
    record: Json = {"v": VERSION, "seconds": _out(target.seconds)}
    if target.metrics:
        record["metrics"] = {name: _out(value) for name, value in target.metrics.items()}
    if target.censored:
        record |= {"censored": True, "bound_s": _out(target.bound_s)}
    return record


def target_of(record: Mapping[str, Any] | None) -> TrainingTarget | None:
    """What the model heard."""
    if record is None:
        return None
    _check(record, "a training target")
    metrics = {name: _in(value) for name, value in record.get("metrics", {}).items()}
    return TrainingTarget(_in(record["seconds"]), metrics, record.get("censored", False), _in(record.get("bound_s")))


def limits_record(changes: Sequence[LimitChange]) -> list[Json]:
    """Changes of the constraints as JSON."""
    return [
        {
            "v": VERSION,
            "started": change.started,
            "before": [asdict(constraint) for constraint in change.before],
            "after": [asdict(constraint) for constraint in change.after],
        }
        for change in changes
    ]


def limits_of(record: Sequence[Mapping[str, Any]] | None) -> tuple[LimitChange, ...]:
    """The changes of the constraints that a record tells of."""
    changes = []
    for one in record or ():
        _check(one, "a change of constraints")
        before, after = (tuple(Constraint(**each) for each in one[name]) for name in ("before", "after"))
        changes.append(LimitChange(_whole(one["started"]), before, after))
    return tuple(changes)


def _out(value: float) -> float | str | None:
    number = float(value)
    if math.isnan(number):
        return None
    return ("inf" if number > 0 else "-inf") if math.isinf(number) else number


def _in(value: float | str | None) -> float:
    return math.nan if value is None else float(value)


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{value!r} where a whole number was expected")
    return value


def _check(record: Mapping[str, Any], what: str) -> None:
    version = record.get("v")
    if not isinstance(version, int) or not 1 <= version <= VERSION:
        raise InfrastructureError(
            f"The storage holds {what} in format {version!r}; this version of Lynceus reads formats 1 to {VERSION}, use a newer one."
        )
