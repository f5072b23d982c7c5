"""Who is run next: initial designs, planners with and without look-ahead, and ways to combine them."""

from lynceus.choose.designs import Amount, CheapFirst, LatinHypercube, QuasiRandom, UniformRows
from lynceus.choose.foresee import Foresee
from lynceus.choose.imagine import Quadrature
from lynceus.choose.promising import Promising
from lynceus.choose.rollout import Rollout
from lynceus.choose.scarce import ByBudget
from lynceus.choose.shares import AtEveryShare, OnShares
from lynceus.choose.shortlist import LocalSearch, RandomRows, TopRows, TopShare
from lynceus.choose.simple import ByPrice, FirstOf, Uniform, Within

__all__ = [
    "Amount",
    "AtEveryShare",
    "ByBudget",
    "ByPrice",
    "CheapFirst",
    "FirstOf",
    "Foresee",
    "LatinHypercube",
    "LocalSearch",
    "OnShares",
    "Promising",
    "Quadrature",
    "QuasiRandom",
    "RandomRows",
    "Rollout",
    "TopRows",
    "TopShare",
    "Uniform",
    "UniformRows",
    "Within",
]
