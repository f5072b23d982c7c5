"""Why the next trial: what runs next, the best candidates, which parameters matter, and whether data samples rank alike."""

from __future__ import annotations

from dataclasses import dataclass

from lynceus.analysis.at_input import InputChoice, curve_over_size
from lynceus.analysis.candidates import Candidate, candidates
from lynceus.analysis.importance import Importance, importance
from lynceus.analysis.infeasibility import Infeasibility, infeasibility
from lynceus.analysis.ordered_run import OrderedRun, ordered_run
from lynceus.analysis.past_jobs import PastJobs, past_jobs
from lynceus.analysis.predictions import explaining_policy
from lynceus.analysis.rank_agreement import RankAgreement, rank_agreements
from lynceus.analysis.shortfall import shortfall_text
from lynceus.analysis.study_context import StudyContext
from lynceus.policy.recommendation import recommend
from lynceus.trial.stop import Stopped


@dataclass(frozen=True)
class NextStep:
    """What `ask` would do now."""

    trial: OrderedRun | None
    """The next trial."""
    reason: str | None
    """Why there is none now."""


@dataclass(frozen=True)
class Explanation:
    """What models say about a study besides its answer."""

    study: str
    settled: int
    """Settled trials that it rests on."""
    approximate: str | None
    """A sentence when another model than the policy's own explains."""
    next: NextStep
    candidates: list[Candidate]
    importance: list[Importance]
    rank_agreement: list[RankAgreement]
    infeasible: Infeasibility | None
    """Which limit fails and by how much, when no configuration is known to meet every one; None when one is."""
    shortfall: str | None
    """A sentence when one is known, but meets the constraints with less confidence than they demand; see `Answer`."""
    over_input_size: list[InputChoice]
    """The predicted answer over the size of the input; empty where the job does not say how much runs read."""
    history: PastJobs | None
    """What earlier jobs told; None without a history."""


def explain(context: StudyContext, most: int = 5) -> Explanation:
    """Explain a study; `most` bounds the number of candidates."""
    study, known, policy = context.study, context.known, explaining_policy(context.study)
    count, approximate = len(study.observations), None
    found = recommend(study.problem, policy, known, seed=study.seed)
    short = None
    if found is not None and not found.reaches_confidence:
        short = shortfall_text(study.problem, found.row, found.probability)
    if policy != study.policy:
        approximate = f"Explained with regression trees: {count:,} runs are too many for the policy's own model."
    return Explanation(
        study.name,
        count,
        approximate,
        next_step(context),
        best_candidates(context, most),
        param_importance(context),
        rank_agreements(study.problem, known),
        infeasibility(context) if found is None else None,
        short,
        curve_over_size(study),
        past_jobs(context),
    )


def best_candidates(context: StudyContext, most: int = 5) -> list[Candidate]:
    """The most promising open configurations of a study."""
    study, policy = context.study, explaining_policy(context.study)
    problem = study.problem.with_budget(study.budget_usd)
    return candidates(problem, policy, context.known, study.record, seed=study.seed, most=most)


def param_importance(context: StudyContext) -> list[Importance]:
    """The parameters of a study, most important first."""
    study = context.study
    return importance(study.problem, explaining_policy(study), context.known, seed=study.seed)


def next_step(context: StudyContext) -> NextStep:
    """The next trial of a study, or why there is none now."""
    study = context.study
    decision = study.next_step(explaining_policy(study)).decision
    if isinstance(decision, Stopped):
        return NextStep(None, decision.reason)
    return NextStep(ordered_run(study.problem, decision), None)
