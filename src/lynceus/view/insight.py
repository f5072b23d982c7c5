"""What models make of a study: the answer, the next run and why, which parameters matter. Slower than facts, so a document of its own."""

from __future__ import annotations

from dataclasses import replace

from lynceus.insight import candidates, deadline_limits, importance, rank_agreements, verdict
from lynceus.insight import whatif as ask
from lynceus.plain import Document, finite
from lynceus.policy import Policy, Stopped, decide
from lynceus.surrogate.trees import Trees
from lynceus.units import format_duration
from lynceus.view.study import VERSION, ordered
from lynceus.view.subject import Subject

MANY = 1000
"""Runs from which on trees explain, whatever model the policy has: a Gaussian process would take minutes for a page."""


def explaining(subject: Subject) -> Policy:
    """The policy that answers questions: the study's own, with a quicker model where there are many runs."""
    policy = subject.study.policy
    if policy.surrogate is None or len(subject.study.history) <= MANY:
        return policy
    return replace(policy, surrogate=Trees())


def insight_view(subject: Subject, most: int = 5) -> Document:
    """Answer, next suggestion with its rivals, importance of parameters."""
    study, known = subject.study, subject.known
    problem = study.problem.with_budget(study.budget_usd)
    pending, policy, seed = study.pending, explaining(subject), study.seed
    facts: Document = finite(
        {
            "v": VERSION,
            "kind": "insight",
            "name": study.name,
            "settled": len(study.history),
            "approximate": None
            if policy == study.policy
            else f"Explained with regression trees: {len(study.history):,} runs are too many for the policy's own model.",
            "verdict": answer(subject),
            "next": next_step(subject),
            "candidates": candidates(problem, policy, known, pending, seed=seed, most=most),
            "importance": importance(problem, policy, known, seed=seed),
            "ranks": [
                {"text": one.warning, "correlation": one.correlation, "share": one.share, "against": one.against}
                for one in rank_agreements(problem, known)
            ],
        }
    )
    return facts


def next_step(subject: Subject) -> Document:
    """What would be run next, and why; or why nothing."""
    study = subject.study
    if study.stopped is not None:
        return {"stop": study.stopped.reason}
    problem = study.problem.with_budget(study.budget_usd)
    step = decide(problem, explaining(subject), subject.known, study.pending, seed=study.seed)
    return {"stop": step.reason} if isinstance(step, Stopped) else ordered(problem, step)


def answer(subject: Subject) -> Document | None:
    """The recommendation with its command line, its cost and what it saves; nothing while none keeps the limits."""
    study = subject.study
    found = verdict(
        study.problem,
        explaining(subject),
        subject.known,
        all_runs=study.history,
        baseline=subject.baseline,
        seed=study.seed,
    )
    if found is None:
        return None
    advice = found.recommendation
    facts: Document = finite(
        {
            "params": dict(advice.params),
            "command": None if subject.command is None else subject.command(advice.params),
            "measured": advice.measured,
            "value": advice.value,
            "runtime_s": advice.seconds,
            "cost_usd": advice.cost_usd,
            "cost_basis": found.cost_basis,
            "runs": found.runs,
            "kept": found.kept,
            "probability": advice.probability,
            "has_baseline": subject.baseline is not None,
            "baseline": None if subject.baseline is None else study.problem.space.point(subject.baseline),
            "baseline_usd": found.baseline_usd,
            "baseline_measured": found.baseline_measured,
            "saving": found.saving,
            "pays_back_after": found.pays_back_after,
            "spent_usd": advice.spent_usd,
        }
    )
    return facts


def whatif_view(subject: Subject, deadline_s: float) -> Document:
    """The answer under another deadline, from runs that are already paid for."""
    study = subject.study
    changed = deadline_limits(study.problem, deadline_s)
    found = ask(changed, explaining(subject), subject.known, label=format_duration(deadline_s), seed=study.seed)
    facts: Document = finite(
        {
            "v": VERSION,
            "kind": "what-if",
            "name": study.name,
            "deadline_s": deadline_s,
            "measured": found.measured,
            "predicted": found.predicted,
            "undecided": found.undecided,
        }
    )
    return facts
