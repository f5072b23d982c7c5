"""The end of the demo: the recommendation, and what other policies would have spent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lynceus.demo.compare import BASELINE_BUDGETS, NEAR_OPTIMUM, Summary
from lynceus.demo.job import Job
from lynceus.demo.plot import NAMES
from lynceus.demo.trajectory import Trajectory
from lynceus.demo.trial_lines import LONG, Tally
from lynceus.policy.recommendation import Recommendation
from lynceus.problem.units import format_duration, format_money
from lynceus.study.study import Study
from lynceus.trial.trial import STATES


@dataclass(frozen=True)
class Result:
    """All results of the demo."""

    job: Job
    study: Study
    answer: Recommendation | None
    tally: Tally
    trajectory: Trajectory
    summaries: tuple[Summary, ...] = ()
    """Empty without a comparison."""

    @property
    def distance(self) -> float:
        """Cost of the recommendation divided by that of the optimum."""
        return math.inf if self.answer is None else self.answer.cost_usd / self.job.optimum_usd

    @property
    def near(self) -> float:
        """The distance at which policies are compared, see `near_of`."""
        return near_of(self.distance)


def near_of(distance: float) -> float:
    """Within 10 % of the optimum, or the distance that the demo's own search reached if that is larger."""
    return max(NEAR_OPTIMUM, distance) if math.isfinite(distance) else NEAR_OPTIMUM


def recommendation(result: Result) -> RenderableType:
    """The recommendation as text."""
    job, answer, tally = result.job, result.answer, result.tally
    if answer is None:
        money = format_money(tally.spent_usd)
        return Text(f"No run met the deadline for {money}; try a larger --budget.", "bold yellow")
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    grid.add_row("use", Text(LONG.format(**answer.params), "bold green"))
    deadline = format_duration(job.problem.deadline_s)
    per_run = f"{format_money(answer.cost_usd)} and {format_duration(answer.seconds)} (deadline {deadline})"
    grid.add_row("per run", per_run)
    grid.add_row("optimum", _against_optimum(result))
    runs = f"{len(tally.lines)} runs for {format_money(tally.spent_usd)} of {format_money(job.problem.budget.usd)}"
    stopped = f"{tally.stopped} stopped early, saving {format_money(tally.saved_usd)}"
    grid.add_row("search", f"{runs}; {stopped}")
    grid.add_row("ended because", result.study.reason or "")
    return Group(Text("Recommendation", "bold"), Padding(grid, (0, 0, 0, 2)))


def _against_optimum(result: Result) -> str:
    optimum = format_money(result.job.optimum_usd)
    above = result.distance - 1
    if above < 5e-4:
        return f"this is the optimum: no cheaper one of all {len(result.job.problem.space)} configurations meets the deadline"
    return f"{above:.1%} above the true optimum, {optimum} (known because the job is synthetic)"


def comparison(result: Result) -> RenderableType:
    """One line per policy, and a sentence."""
    near, budget = result.near, result.job.problem.budget.usd
    table = Table(box=SIMPLE_HEAD, padding=(0, 2, 0, 0), pad_edge=False, show_edge=False, header_style="dim")
    table.add_column("policy", no_wrap=True)
    table.add_column(f"within {near - 1:.0%} after", justify="right", no_wrap=True)
    table.add_column("seeds", justify="right", no_wrap=True)
    table.add_column(f"best at {format_money(budget)}", justify="right", no_wrap=True)
    for one in result.summaries:
        final = f"{one.final_distance:.2f} × optimum" if math.isfinite(one.final_distance) else "none in time"
        table.add_row(NAMES.get(one.policy, one.policy), _until(one), f"{one.reached} of {one.seeds}", final)
    title = Text.assemble(("The same job with other policies", "bold"), ("  medians over seeds", "dim"))
    note = f"The baselines may spend {BASELINE_BUDGETS:g} times the budget, to show what they need."
    text = Group(table, Text(), Text(verdict(result.summaries)), Text(note, "dim"))
    return Group(title, Padding(text, (0, 0, 0, 2)))


def _until(one: Summary) -> str:
    return (
        format_money(one.usd_until_near) if math.isfinite(one.usd_until_near) else f"> {format_money(one.budget_usd)}"
    )


def verdict(summaries: Sequence[Summary]) -> str:
    """How much the baselines spent compared with the first policy."""
    own, *others = summaries
    name = NAMES.get(own.policy, own.policy)
    if math.isinf(own.usd_until_near):
        return f"Most seeds of {name} did not get there within {format_money(own.budget_usd)}; try a larger --budget."
    clauses = []
    for one in others:
        reached = math.isfinite(one.usd_until_near)
        times = (one.usd_until_near if reached else one.budget_usd) / own.usd_until_near
        clauses.append(f"{NAMES.get(one.policy, one.policy)} {'' if reached else 'more than '}{times:.1f} times")
    sentence = f"{', '.join(clauses)} what {name} spent to get there."
    return sentence[0].upper() + sentence[1:] if clauses else ""


def as_record(result: Result) -> dict[str, object]:
    """The result as JSON values; infinite numbers are null."""
    job, answer, tally, problem = result.job, result.answer, result.tally, result.job.problem
    return {
        "job": {
            "configurations": len(problem.space),
            "deadline_s": problem.deadline_s,
            "budget_usd": problem.budget.usd,
            "seed": job.seed,
            "optimum": {"params": dict(problem.space.point(job.optimum_row)), "cost_usd": job.optimum_usd},
        },
        "policy": result.trajectory.policy,
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
        "trials": [_trial(result, place) for place in range(len(result.study.observations))],
        "comparison": [_finite(asdict(one)) for one in result.summaries] if result.summaries else None,
        "compared_at": result.near if result.summaries else None,
    }


def _trial(result: Result, place: int) -> dict[str, object]:
    seen = result.study.observations[place]
    return _finite(
        {
            "number": seen.order.number,
            "params": dict(result.job.problem.space.point(seen.row)),
            "timeout_s": seen.order.timeout_s,
            "state": str(STATES[seen.outcome.end]),
            "seconds": seen.outcome.seconds,
            "charged_usd": seen.outcome.charged_usd,
            "best_usd": result.tally.bests[place],
        }
    )


def _finite(record: dict[str, object]) -> dict[str, object]:
    """Null in place of infinity, which JSON does not have."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in record.items()
    }
