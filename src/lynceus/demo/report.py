"""What the demo says at the end: the recommendation, and what other policies would have spent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lynceus.demo.compare import NEAR, PURSE, Summary
from lynceus.demo.course import Course
from lynceus.demo.job import Job
from lynceus.demo.picture import NAMES
from lynceus.demo.words import LONG, Tally
from lynceus.policy import Recommendation
from lynceus.study import Study
from lynceus.units import format_duration, format_money


@dataclass(frozen=True)
class Result:
    """Everything that the demo found out."""

    job: Job
    study: Study
    answer: Recommendation | None
    tally: Tally
    course: Course
    summaries: tuple[Summary, ...] = ()
    """Nothing when no comparison was asked for."""

    @property
    def distance(self) -> float:
        """What the recommendation costs over what the optimum costs."""
        return math.inf if self.answer is None else self.answer.cost_usd / self.job.optimum_usd

    @property
    def near(self) -> float:
        """The distance that policies are compared at, see `near_of`."""
        return near_of(self.distance)


def near_of(distance: float) -> float:
    """Within 10 %; if the demo's own run did not get there, as near as it did."""
    return max(NEAR, distance) if math.isfinite(distance) else NEAR


def recommendation(result: Result) -> RenderableType:
    """The answer in words."""
    job, answer, tally = result.job, result.answer, result.tally
    if answer is None:
        money = format_money(tally.spent_usd)
        return Text(f"No run was on time for {money}; try a larger --budget.", "bold yellow")
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    grid.add_row("use", Text(LONG.format(**answer.params), "bold green"))
    deadline = format_duration(job.problem.deadline_s)
    per_run = f"{format_money(answer.cost_usd)} and {format_duration(answer.seconds)} (deadline {deadline})"
    grid.add_row("per run", per_run)
    grid.add_row("optimum", _against_optimum(result))
    explored = f"{len(tally.lines)} runs for {format_money(tally.spent_usd)} of {format_money(job.problem.budget.usd)}"
    kept = f"{tally.stopped} stopped early, saving {format_money(tally.saved_usd)}"
    grid.add_row("explored", f"{explored}; {kept}")
    grid.add_row("ended", f"because {result.study.reason}")
    return Group(Text("Recommendation", "bold"), Padding(grid, (0, 0, 0, 2)))


def _against_optimum(result: Result) -> str:
    optimum = format_money(result.job.optimum_usd)
    above = result.distance - 1
    if above < 5e-4:
        return f"this is it: of all {len(result.job.problem.space)} configurations none is cheaper in time"
    return f"{above:.1%} above the true optimum, {optimum} (the demo made the job and knows it)"


def comparison(result: Result) -> RenderableType:
    """One line per policy, and a sentence."""
    near, budget = result.near, result.job.problem.budget.usd
    table = Table(box=SIMPLE_HEAD, padding=(0, 2, 0, 0), pad_edge=False, show_edge=False, header_style="dim")
    table.add_column("policy", no_wrap=True)
    table.add_column(f"within {near - 1:.0%} after", justify="right", no_wrap=True)
    table.add_column("seeds", justify="right", no_wrap=True)
    table.add_column(f"best at {format_money(budget)}", justify="right", no_wrap=True)
    for one in result.summaries:
        final = f"{one.final:.2f} × optimum" if math.isfinite(one.final) else "nothing on time"
        table.add_row(NAMES.get(one.policy, one.policy), _until(one), f"{one.arrived} of {one.seeds}", final)
    title = Text.assemble(("The same job with other policies", "bold"), ("  medians over seeds", "dim"))
    note = f"The baselines may spend {PURSE:g} times the budget here, to see what they need."
    words = Group(table, Text(), Text(verdict(result.summaries)), Text(note, "dim"))
    return Group(title, Padding(words, (0, 0, 0, 2)))


def _until(one: Summary) -> str:
    return format_money(one.usd_until_near) if math.isfinite(one.usd_until_near) else f"> {format_money(one.most_usd)}"


def verdict(summaries: Sequence[Summary]) -> str:
    """How much more or less the baselines spent than the first line's policy."""
    own, *others = summaries
    name = NAMES.get(own.policy, own.policy)
    if math.isinf(own.usd_until_near):
        return f"Most seeds of {name} did not get there within {format_money(own.most_usd)}; try a larger --budget."
    clauses = []
    for one in others:
        arrived = math.isfinite(one.usd_until_near)
        times = (one.usd_until_near if arrived else one.most_usd) / own.usd_until_near
        clauses.append(f"{NAMES.get(one.policy, one.policy)} {'' if arrived else 'more than '}{times:.1f} times")
    sentence = f"{', '.join(clauses)} what {name} spent to get there."
    return sentence[0].upper() + sentence[1:] if clauses else ""


def as_record(result: Result) -> dict[str, object]:
    """The result as plain data for JSON; what never happened is null."""
    job, answer, tally, problem = result.job, result.answer, result.tally, result.job.problem
    return {
        "job": {
            "configurations": len(problem.space),
            "deadline_s": problem.deadline_s,
            "budget_usd": problem.budget.usd,
            "seed": job.seed,
            "optimum": {"params": dict(problem.space.point(job.optimum_row)), "cost_usd": job.optimum_usd},
        },
        "policy": result.course.policy,
        "spent_usd": tally.spent_usd,
        "saved_by_stopping_usd": tally.saved_usd,
        "stopped_early": tally.stopped,
        "reason": result.study.reason,
        "recommendation": None
        if answer is None
        else {
            "params": dict(answer.params),
            "seconds": answer.seconds,
            "cost_usd": answer.cost_usd,
            "cost_over_optimum": result.distance,
        },
        "trials": [_trial(result, place) for place in range(len(result.study.history))],
        "comparison": [_finite(asdict(one)) for one in result.summaries] if result.summaries else None,
        "compared_at": result.near if result.summaries else None,
    }


def _trial(result: Result, place: int) -> dict[str, object]:
    seen = result.study.history[place]
    return _finite(
        {
            "number": seen.order.number,
            "params": dict(result.job.problem.space.point(seen.row)),
            "cap_s": seen.order.cap_s,
            "end": str(seen.outcome.end),
            "seconds": seen.outcome.seconds,
            "charged_usd": seen.outcome.charged_usd,
            "best_usd": result.tally.bests[place],
        }
    )


def _finite(record: dict[str, object]) -> dict[str, object]:
    """JSON knows no infinity."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in record.items()
    }
