"""The table of noisy claims: per noise, outliers and limit, what was claimed against what was true, and the money against a reference."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lynceus.errors import InputError
from lynceus_lab.noisy_claims import Claimed

Key = tuple[float, float, float | None]
"""Outliers, spread and confidence: a line of the table."""


@dataclass(frozen=True, slots=True)
class Line:
    """All studies of one noise and limit."""

    key: Key
    studies: int
    unanswered: int
    """Studies without a recommendation; all other fields are about the rest."""
    claimed: tuple[float, float, float]
    """Claimed over true cost: geometric mean, and its 95 % interval."""
    stated: float
    """Mean stated chance to keep the limit."""
    stated_error: float
    """Half of the 95 % interval of its mean difference to the true chance."""
    kept: float
    """Mean true chance."""
    covered: float
    """Share of studies whose 80 % interval holds the true cost; NaN without intervals."""
    money: float
    """Money spent over that of the reference, geometric mean over the problems; NaN without a reference."""
    regret: float
    """True cost over that of the best configuration, geometric mean."""
    repeats: float
    """Repeated runs of a study."""


def lines(claims: Iterable[Claimed], reference: Iterable[Claimed] = ()) -> list[Line]:
    """The lines of the table, calm first."""
    by_key: dict[Key, list[Claimed]] = {}
    for one in claims:
        by_key.setdefault(_key(one), []).append(one)
    spent = {(_key(one), one.problem, one.seed): one.spent_usd for one in reference}
    ordered = sorted(by_key, key=lambda key: (key[0], key[2] or 0.0, key[1]))
    return [_line(key, by_key[key], spent) for key in ordered]


def paired(reference: Iterable[Claimed], claims: Iterable[Claimed]) -> list[Claimed]:
    """The studies of a reference that were made of the same problems, noise, limits and seeds as `claims`."""
    made = {(_key(one), one.problem, one.seed) for one in claims}
    return [one for one in reference if (_key(one), one.problem, one.seed) in made]


def markdown(table: Sequence[Line], before: Sequence[Line] = ()) -> str:
    """The table as Markdown; `before` are the lines of the reference, whose values stand in parentheses."""
    known = {line.key: line for line in before}
    head = (
        "| noise | slow runs | limit | studies | claimed / true cost | stated − true chance | true chance | 80 % interval holds "
        "| money | regret | repeats |"
    )
    rows = [head, "|--|--|--|--|--|--|--|--|--|--|--|"]
    for line in table:
        outliers, spread, confidence = line.key
        value, low, high = line.claimed
        was = known.get(line.key)
        rows.append(
            f"| {spread:.0%} | {outliers:.0%} | {'plain' if confidence is None else f'@ {confidence:g}'} | {line.studies} "
            f"| {value:.3f} [{low:.3f}, {high:.3f}]{_was(was, lambda one: f'{one.claimed[0]:.2f}')} "
            f"| {_points(line)}{_was(was, _points)} | {line.kept:.2f}{_was(was, lambda one: f'{one.kept:.2f}')} "
            f"| {_shown(line.covered, '.0%')} | {_shown(line.money, '.2f')} "
            f"| {_shown(line.regret, '.2f')}{_was(was, lambda one: _shown(one.regret, '.2f'))} | {line.repeats:.1f} |"
        )
    return "\n".join(rows) + "\n"


def write(claims: Iterable[Claimed], path: Path) -> None:
    """Write one study per line, as JSON."""
    path.write_text("".join(json.dumps(one.written()) + "\n" for one in claims), encoding="utf-8")


def read(path: Path) -> list[Claimed]:
    """The studies of a file."""
    try:
        return [Claimed(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    except OSError as error:
        raise InputError(f"{path}: the claims cannot be read: {error.strerror}.") from None
    except (ValueError, TypeError):
        raise InputError(
            f"{path}: this is no file of claims; give one that 'lynceus lab calibrate --out' wrote."
        ) from None


def _key(one: Claimed) -> Key:
    return one.outliers, one.spread, one.confidence


def _line(key: Key, claims: list[Claimed], spent: Mapping[tuple[Key, str, int], float]) -> Line:
    answered = [one for one in claims if not math.isnan(one.claimed_usd)]
    logs = np.log([one.claimed_usd / one.true_usd for one in answered])
    error, middle = _half_interval(logs), _mean(logs)
    stated_error = _half_interval(np.array([one.stated - one.kept for one in answered]))
    inside = [one.low_usd * (1 - 1e-9) <= one.true_usd <= one.high_usd * (1 + 1e-9) for one in answered]
    known = [one for one in answered if not math.isnan(one.low_usd)]
    regrets = [math.log(one.regret) for one in answered if not math.isnan(one.regret)]
    return Line(
        key, len(claims), len(claims) - len(answered),
        (math.exp(middle), math.exp(middle - error), math.exp(middle + error)),
        _mean([one.stated for one in answered]), stated_error, _mean([one.kept for one in answered]),
        sum(inside) / len(known) if known else math.nan,
        _money(key, claims, spent), math.exp(_mean(regrets)), _mean([one.repeats for one in claims]),
    )  # fmt: skip


def _money(key: Key, claims: list[Claimed], spent: Mapping[tuple[Key, str, int], float]) -> float:
    """Of the studies that the reference has, too."""
    logs = []
    for problem in sorted({one.problem for one in claims}):
        both = [one for one in claims if one.problem == problem and (key, problem, one.seed) in spent]
        if both:
            before = sum(spent[key, problem, one.seed] for one in both)
            logs.append(math.log(sum(one.spent_usd for one in both) / before))
    return math.exp(_mean(logs))


def _half_interval(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """Half of the 95 % interval of a mean."""
    return 1.96 * float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan


def _mean(values: Sequence[float] | np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    return float(np.mean(values)) if len(values) else math.nan


def _points(line: Line) -> str:
    """How far the stated chance is off, in points, with half of its 95 % interval."""
    return f"{100 * (line.stated - line.kept):+.1f} ± {100 * line.stated_error:.1f}"


def _was(line: Line | None, shown: Callable[[Line], str]) -> str:
    return "" if line is None else f" ({shown(line)})"


def _shown(value: float, form: str) -> str:
    return "–" if math.isnan(value) else f"{value:{form}}"
