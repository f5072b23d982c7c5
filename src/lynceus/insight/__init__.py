"""What a study teaches beyond its answer: pure functions of the problem, the policy and the history."""

from lynceus.insight.alternatives import Candidate, candidates
from lynceus.insight.calibration import Calibration, Prediction, calibration
from lynceus.insight.forecast import Forecast, forecast
from lynceus.insight.importance import Importance, importance
from lynceus.insight.pareto import Point, finished_points, pareto_front
from lynceus.insight.progress import Step, steps
from lynceus.insight.ranks import RankAgreement, rank_agreements
from lynceus.insight.verdict import Verdict, verdict
from lynceus.insight.whatif import Choice, WhatIf, deadline_limits, repriced, whatif

__all__ = [
    "Calibration",
    "Candidate",
    "Choice",
    "Forecast",
    "Importance",
    "Point",
    "Prediction",
    "RankAgreement",
    "Step",
    "Verdict",
    "WhatIf",
    "calibration",
    "candidates",
    "deadline_limits",
    "finished_points",
    "forecast",
    "importance",
    "pareto_front",
    "rank_agreements",
    "repriced",
    "steps",
    "verdict",
    "whatif",
]
