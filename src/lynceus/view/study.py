"""A study as one document: facts only, no model is asked, so that it is quick at any size."""

from __future__ import annotations

import time

from lynceus.history import End, Order
from lynceus.insight.calibration import intervals
from lynceus.ledger import OpenRun
from lynceus.plain import Document, finite
from lynceus.problem import Problem
from lynceus.view.subject import Subject
from lynceus.view.trials import incumbent, trial_columns

VERSION = 1


def study_view(subject: Subject, since: int = 0, now_s: float | None = None) -> Document:
    """Head, open trials, and the settled trials from position `since` on: a page that has some asks only for the rest.

    `since` beyond the end means that the page knows another study of this name: everything is given again, `trials.first` tells.
    """
    study = subject.study
    problem, history = study.problem, study.history
    first = since if 0 <= since <= len(history) else 0
    moment = time.time() if now_s is None else now_s
    document: Document = {
        "v": VERSION,
        "kind": "study",
        "name": study.name,
        "identity": study.identity,
        "now_s": moment,
        "settled": len(history),
        "head": head(subject),
        "open": [open_trial(problem, run) for run in study.open_runs],
        "trials": trial_columns(problem, history, first),
    }
    return document | ({} if first else {"space": space_of(problem)})


def head(subject: Subject) -> Document:
    """How a study stands: money, trials, the incumbent."""
    study = subject.study
    problem, history = study.problem, study.history
    state, reason = subject.standing()
    best = incumbent(problem, history)
    return {
        "state": state,
        "reason": reason,
        "objective": str(problem.goal),
        "goal": {"metric": problem.goal.metric, "maximise": problem.goal.maximise},
        "limits": [str(limit) for limit in problem.limits],
        "deadline_s": finite(problem.deadline_s),
        "budget_usd": finite(study.budget_usd),
        "spent_usd": study.spent_usd,
        "reserved_usd": finite(study.reserved_usd),
        "budget_trials": problem.budget.trials,
        "trials": len(history),
        "stopped_early": sum(one.outcome.end is End.CAPPED for one in history),
        "failed": sum(one.outcome.end is End.FAILED for one in history),
        "configurations": len(problem.space),
        "policy": study.policy.name,
        "seed": study.seed,
        "created_s": subject.created_s,
        "seen_s": subject.seen_s,
        "best": None if best is None else best[1],
        "best_trial": None if best is None else best[0].order.number,
        "best_cost_usd": None if best is None else problem.cost(best[0].row, best[0].outcome.seconds),
    }


def space_of(problem: Problem) -> Document:
    """The parameters with their values, in order; trials name values by their place."""
    return {
        "states": ["COMPLETE", "TIMEOUT", "FAIL"],
        "parameters": [
            {"name": parameter.name, "kind": type(parameter).__name__.lower(), "values": list(parameter.values)}
            for parameter in problem.space.parameters
        ],
    }


def open_trial(problem: Problem, run: OpenRun) -> Document:
    """A trial under way; its page counts down to the moment at which it is stopped."""
    order = run.order
    return ordered(problem, order) | {
        "ordered_s": run.ordered_s,
        "launched_s": run.launched_s,
        "heartbeat_s": run.heartbeat_s,
        "worker": None if run.worker is None else run.worker.split("/")[0],
        "unwanted": run.unwanted,
    }


def ordered(problem: Problem, order: Order) -> Document:
    """An order with what was thought when it was given."""
    plan = order.plan
    low, middle, high = intervals(problem, [order])[0].tolist()
    thought = {
        "why": plan.why,
        "gain": plan.gain,
        "usd": plan.usd,
        "probability": plan.probability,
        "path": [problem.space.point(row) for row in plan.path],
        "low_s": low,
        "middle_s": middle,
        "high_s": high,
    }
    facts: Document = finite(
        {
            "number": order.number,
            "params": problem.space.point(order.row),
            "price_usd_per_hour": float(problem.price[order.row]) * 3600,
            "cap_s": order.cap_s,
            "reserved_usd": order.reserved_usd,
            "plan": thought,
        }
    )
    return facts
