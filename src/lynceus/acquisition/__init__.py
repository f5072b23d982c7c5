"""Acquisition functions: how much a run of each configuration is expected to help. Higher is better.

`improvement` and `gittins` have the closed forms on arrays, `functions` and `entropy_search` the parts that a policy is made of.
"""

from lynceus.acquisition.gittins import gittins_index
from lynceus.acquisition.improvement import billed_improvement, expected_improvement, truncated_improvement

__all__ = ["billed_improvement", "expected_improvement", "gittins_index", "truncated_improvement"]
