"""Values with NaN are equal to their copies, whatever the version of Python."""

from __future__ import annotations

import ast
import copy
import math
import pickle

from lynceus.trial.order import Order, Plan
from lynceus.trial.outcome import TrainingTarget
from readers import ROOT


def test_plans_and_targets_are_equal_to_their_copies() -> None:
    order = Order(0, 1, math.inf, 0.5, Plan(1, "cheap start 1 of 1", gain=0.25))
    assert order == copy.copy(order) == Order(0, 1, math.inf, 0.5, Plan(1, "cheap start 1 of 1", gain=0.25))
    assert hash(order.plan) == hash(copy.copy(order.plan))
    assert pickle.loads(pickle.dumps(order.plan)).gain == 0.25
    assert order.plan != Plan(1, "cheap start 1 of 1", gain=0.5)
    assert order.plan != "cheap start 1 of 1"
    assert TrainingTarget(3.0) == TrainingTarget(3.0) != TrainingTarget(3.0, censored=True, bound_s=3.0)


def test_every_class_with_a_default_of_nan_compares_so() -> None:
    """Python 3.13 and later would not find it equal to its copy."""
    checked = 0
    for path in (ROOT / "src" / "lynceus").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                defaults = [ast.unparse(one.value) for one in node.body if isinstance(one, ast.AnnAssign) and one.value]
                if "math.nan" in defaults:
                    checked += 1
                    assert [ast.unparse(base) for base in node.bases] == ["NanEquality"], node.name
                    assert any("eq=False" in ast.unparse(one) for one in node.decorator_list), node.name
    assert checked >= 6
