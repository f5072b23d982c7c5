"""`--constraint` and `--deadline`: other limits for a study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from lynceus.problem.objective import Constraint
    from lynceus.study.view import StudyView

ConstraintOption = Annotated[
    list[str] | None,
    typer.Option(
        "--constraint",
        help="Another limit, as in the job file: 'bytes <= 4.3MB', 'runtime <= 45m @ 0.95'. It takes the place of the one on that "
        "quantity. May be repeated.",
    ),
]


def given_limits(
    study: StudyView, constraints: Sequence[str] | None, deadline: str | None = None, *, together: bool = True
) -> list[Constraint]:
    """The limits of both options, checked against what trials of the study report; a deadline keeps the confidence of the present one.

    Not `together`: several limits on one quantity are alternatives.
    """
    from lynceus.errors import InputError
    from lynceus.problem.objective import Constraint
    from lynceus.problem.units import parse_duration
    from lynceus.study.changed_limits import new_limits

    found = []
    if deadline is not None:
        present = (one.confidence for one in study.problem.constraints if one.metric == "time")
        found.append(
            Constraint("time", _positive(parse_duration(deadline, "--deadline")), confidence=next(present, None))
        )
    try:
        found += [Constraint.parse(text, study.problem.units) for text in constraints or ()]
        for some in [found] if together else [[one] for one in found]:
            new_limits(study, some)
    except InputError as error:
        raise InputError(f"--constraint: {str(error).removeprefix('constraints: ')}") from None
    return found


def _positive(seconds: float) -> float:
    from lynceus.errors import InputError

    if seconds <= 0:
        raise InputError("--deadline: got 0 seconds; give a duration above 0, such as 45m.")
    return seconds
