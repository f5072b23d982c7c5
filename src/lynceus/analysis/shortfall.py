"""The sentence about a best configuration that does not meet the constraints with the confidence that they demand."""

from __future__ import annotations

import math

from lynceus.problem.problem import Problem


def shortfall_text(problem: Problem, row: int, chance: float) -> str:
    """What is demanded, that no configuration reaches it, and which comes nearest; NaN for a chance that is not known."""
    demanded = sorted({each.confidence for each in problem.constraints if each.confidence is not None})
    wanted = (
        f"none reaches {' and '.join(f'{100 * each:.3g} %' for each in demanded)}"
        if demanded
        else "none meets every constraint in most of its runs"
    )
    params = " ".join(f"{name}={value}" for name, value in problem.space.point(row).items())
    return f"{wanted}; the nearest is {params}" + ("" if math.isnan(chance) else f" with {_percent(chance)}")


def _percent(share: float) -> str:
    """Rounded down, so that a chance below a confidence never reads as if it reached it."""
    return f"{math.floor(100 * share + 1e-9):d} %"
