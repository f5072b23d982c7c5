"""The contour of two parameters against the predictions that it is made of."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from lynceus.analysis import contour as module
from lynceus.analysis.contour import contour
from lynceus.analysis.predictions import explaining_policy, predict, predicted_objective
from lynceus.errors import InputError
from lynceus.library.study_context import study_context
from sample_studies import sample_study


def test_each_cell_is_the_best_prediction_of_its_configurations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = study_context(sample_study(tmp_path, "own", 9))
    study = context.study
    space = study.problem.space
    prediction = predict(study.problem, explaining_policy(study), context.known, study.seed)
    assert prediction is not None
    values = predicted_objective(prediction, study.problem)
    points = [space.point(row) for row in range(len(space))]
    found = contour(context, "nodes", "memory")
    assert found.x is not None
    assert found.y is not None
    for up, [memory] in enumerate(found.y.steps):
        for across, [nodes] in enumerate(found.x.steps):
            own = [row for row, point in enumerate(points) if (point["nodes"], point["memory"]) == (nodes, memory)]
            assert found.value[up][across] == min(values[own])
            assert (
                found.probability[up][across] == prediction.feasible(study.problem)[0][own[int(np.argmin(values[own]))]]
            )
    monkeypatch.setattr(module, "MOST_STEPS", 3)
    coarse = contour(context, "nodes", "memory")
    assert coarse.x is not None
    assert [len(step) for step in coarse.x.steps] == [3, 2, 3], "neighbouring values share a step"
    assert np.nanmin(coarse.value) == np.nanmin(found.value)


def test_too_few_runs_and_wrong_names(tmp_path: Path) -> None:
    context = study_context(sample_study(tmp_path, "own", 0))
    assert (contour(context).x, contour(context).value) == (None, [])
    with pytest.raises(InputError, match="choose from: machine, nodes"):
        contour(context, "cores")
    assert not math.isnan(contour(context).settled)
