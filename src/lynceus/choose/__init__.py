"""Who is run next: initial designs, planners with and without look-ahead, and ways to combine them."""

from lynceus.choose.designs import Amount, CheapFirst, LatinHypercube, QuasiRandom, UniformRows
from lynceus.choose.imagine import Quadrature
from lynceus.choose.rollout import Rollout
from lynceus.choose.shortlist import LocalSearch, RandomRows, TopRows
from lynceus.choose.simple import ByPrice, FirstOf, Uniform, Within

__all__ = [
    "Amount",
    "ByPrice",
    "CheapFirst",
    "FirstOf",
    "LatinHypercube",
    "LocalSearch",
    "Quadrature",
    "QuasiRandom",
    "RandomRows",
    "Rollout",
    "TopRows",
    "Uniform",
    "UniformRows",
    "Within",
]
