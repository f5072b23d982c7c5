"""The space of configurations: parameters, derived columns, expressions, prices, and the table they make."""

from lynceus.space.catalog import load_catalog
from lynceus.space.column import BoolArray, Cell, Column, FloatArray, IntArray, Scalar
from lynceus.space.derived import Computed, Derived, Joined, Mapped
from lynceus.space.encode import Kind
from lynceus.space.enumeration import MOST_COMBINATIONS
from lynceus.space.expression import Expression
from lynceus.space.parameter import Categorical, Float, Integer, Ordinal, Parameter
from lynceus.space.table import Space

__all__ = [
    "MOST_COMBINATIONS",
    "BoolArray",
    "Categorical",
    "Cell",
    "Column",
    "Computed",
    "Derived",
    "Expression",
    "Float",
    "FloatArray",
    "IntArray",
    "Integer",
    "Joined",
    "Kind",
    "Mapped",
    "Ordinal",
    "Parameter",
    "Scalar",
    "Space",
    "load_catalog",
]
