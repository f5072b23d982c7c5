"""Policies from plain data, and back: any combination of parts can be written in YAML.

A part is written as a mapping with its `kind`, the class's name in kebab case, and those fields that differ from their defaults;
a part without such fields may be written as the word alone. The classes themselves say which fields there are and what they hold,
so a new part needs one entry in `PARTS` and nothing else.

>>> policy = compose({"name": "mine", "choose": [{"kind": "latin-hypercube", "share": 0.05}, "by-price"], "timeout": "capped"})
>>> policy.choose.choosers[0].amount.share
0.05
>>> compose(describe(policy)) == policy
True
"""

from __future__ import annotations

import dataclasses
import difflib
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Literal

from lynceus.acquisition.gains import ConstrainedImprovement, Feasibility, Improvement, PandoraIndex
from lynceus.acquisition.information import ConstrainedIncumbent, KnowingTheBest, KnowingTheBestAllowed
from lynceus.choose import (
    AtEveryShare,
    ByBudget,
    ByPrice,
    CheapFirst,
    FirstOf,
    Foresee,
    LatinHypercube,
    LocalSearch,
    OnShares,
    Promising,
    QuasiRandom,
    RandomRows,
    Rollout,
    TopRows,
    TopShare,
    Uniform,
    UniformRows,
    Within,
)
from lynceus.choose.disjoint import Disjoint
from lynceus.choose.scale_out import LowestPredicted, OptimalDesign
from lynceus.errors import InputError
from lynceus.parts import Answer, Cap, Chooser, Fill, Gain, Shortlist, Stop, Surrogate, Worth
from lynceus.policy.answer import BestPredicted, BestSeen
from lynceus.policy.policy import Policy
from lynceus.policy.presets import TIMEOUTS
from lynceus.stopping import (
    AllOf,
    AnyOf,
    FutureUses,
    GittinsStop,
    MaxTrials,
    Never,
    ProteusStop,
    SmallGain,
    TotalBudget,
)
from lynceus.surrogate.fabolas import Fabolas
from lynceus.surrogate.foresighted_trees import ForesightedTrees
from lynceus.surrogate.gaussian_process import GaussianProcess
from lynceus.surrogate.metric_trees import MetricTrees
from lynceus.surrogate.mixture import Mixture
from lynceus.surrogate.past_pairs import PastPairs
from lynceus.surrogate.scale_out import ScaleOut
from lynceus.surrogate.scaling import AlongPrice
from lynceus.surrogate.trees import Trees
from lynceus.timeout import (
    AtMost,
    HighestCost,
    IncumbentCap,
    LinearProgress,
    LowerBound,
    NoCap,
    Nothing,
    PublishedProgram,
    Timeout,
    TruncatedMean,
    WholeRun,
)

PARTS: Mapping[Any, tuple[type, ...]] = MappingProxyType(
    {
        Surrogate: (
            Trees,
            GaussianProcess,
            Mixture,
            AlongPrice,
            Fabolas,
            ForesightedTrees,
            ScaleOut,
            MetricTrees,
            PastPairs,
        ),
        Chooser: (
            LatinHypercube,
            UniformRows,
            QuasiRandom,
            CheapFirst,
            Rollout,
            Uniform,
            ByPrice,
            Within,
            FirstOf,
            AtEveryShare,
            OnShares,
            Promising,
            ByBudget,
            Foresee,
            Disjoint,
            OptimalDesign,
            LowestPredicted,
        ),
        Gain: (ConstrainedImprovement, Improvement, Feasibility, PandoraIndex),
        Shortlist: (TopRows, TopShare, RandomRows, LocalSearch),
        Worth: (KnowingTheBest, KnowingTheBestAllowed, ConstrainedIncumbent),
        Cap: (NoCap, IncumbentCap, AtMost),
        Fill: (LowerBound, TruncatedMean, LinearProgress, HighestCost, Nothing, WholeRun, PublishedProgram),
        Stop: (Never, SmallGain, ProteusStop, FutureUses, TotalBudget, MaxTrials, GittinsStop, AnyOf, AllOf),
        Answer: (BestSeen, BestPredicted),
    }
)
"""Which parts fit where: the interface, and every class that keeps it."""

_LISTS: Mapping[Any, type] = MappingProxyType({Chooser: FirstOf, Stop: AnyOf})
"""What a plain list of parts means."""

At = Callable[..., str]
"""From a path (keys and positions) to its place in words, such as `policy.yaml:4: choose.1.gain`."""


def compose(data: Mapping[str, Any], *, at: At | None = None, default_name: str = "policy") -> Policy:
    """A policy from plain data; `at` says where a value stands, for messages."""
    where = at or _dotted
    if not isinstance(data, Mapping):
        raise InputError(f"{where()}: {_shown(data)} came, but a mapping with 'choose' is needed.")
    policy = _Reader(where).fields(Policy, {"name": default_name, **data}, ())
    return typing.cast(Policy, policy)


def describe(policy: Policy) -> dict[str, Any]:
    """Plain data from which `compose` makes an equal policy; fields that have their default are left out."""
    return _written(policy, Policy)


def kind_of(part: type) -> str:
    """The name of a part in documents.

    >>> kind_of(LatinHypercube)
    'latin-hypercube'
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", part.__name__).lower()


def _dotted(*path: str | int) -> str:
    return ".".join(["policy", *map(str, path)])


Path = tuple[str | int, ...]


@dataclasses.dataclass(frozen=True)
class _Reader:
    """Plain data → parts, guided by the annotations of the dataclasses."""

    at: At

    def value(self, data: Any, kind: Any, path: Path) -> Any:
        """`data` as what the annotation `kind` says."""
        options = typing.get_args(kind) if isinstance(kind, types.UnionType) else ()
        if options:
            if data is None and type(None) in options:
                return None
            return self.value(data, next(option for option in options if option is not type(None)), path)
        if kind in PARTS:
            return self.part(data, kind, path)
        if typing.get_origin(kind) is tuple:
            if not isinstance(data, list | tuple):
                raise self._wrong(data, "a list", path)
            inner = typing.get_args(kind)[0]
            return tuple(self.value(item, inner, (*path, place)) for place, item in enumerate(data))
        if typing.get_origin(kind) is Literal:
            return self._word(data, typing.get_args(kind), path)
        if kind is Timeout and isinstance(data, str):
            return TIMEOUTS[self._word(data, TIMEOUTS, path)]
        if dataclasses.is_dataclass(kind):
            if not isinstance(data, Mapping):
                raise self._wrong(data, f"a mapping with {', '.join(_fields(kind))}", path)
            return self.fields(kind, data, path)
        return self._scalar(data, kind, path)

    def part(self, data: Any, slot: Any, path: Path) -> Any:
        """A part of the slot: a mapping with its kind, its kind alone, or a list of parts."""
        known = {kind_of(cls): cls for cls in PARTS[slot]}
        if isinstance(data, list | tuple) and slot in _LISTS:
            return self._made(
                _LISTS[slot], [tuple(self.part(item, slot, (*path, i)) for i, item in enumerate(data))], path
            )
        if isinstance(data, str):
            data = {"kind": data}
        if not isinstance(data, Mapping):
            raise self._wrong(data, f"a part with a kind ({', '.join(known)})", path)
        if "kind" not in data:
            raise InputError(f"{self.at(*path)}: the part has no kind; add one of {', '.join(known)}.")
        chosen = known[self._word(data["kind"], known, (*path, "kind"))]
        return self.fields(chosen, {key: item for key, item in data.items() if key != "kind"}, path)

    def fields(self, cls: Any, data: Mapping[str, Any], path: Path) -> Any:
        """A dataclass from a mapping of its fields; those of a value inside it (an amount, say) may stand beside them."""
        own, inside = _fields(cls), _inside(cls)
        hoisted: dict[str, dict[str, Any]] = {}
        values: dict[str, Any] = {}
        for key, item in data.items():
            if key in own:
                values[key] = self.value(item, own[key], (*path, key))
            elif key in inside:
                hoisted.setdefault(inside[key], {})[key] = item
            else:
                raise InputError(f"{self.at(*path, key)}: there is no field '{key}'{_meant(key, [*own, *inside])}")
        for field, items in hoisted.items():
            if field in values:
                raise InputError(
                    f"{self.at(*path, field)}: '{next(iter(items))}' belongs to '{field}', which is given too; write it there."
                )
            values[field] = self.fields(own[field], items, path)
        for needed in dataclasses.fields(cls):
            if needed.name not in values and _required(needed):
                raise InputError(f"{self.at(*path, needed.name)}: the field '{needed.name}' is missing; add it.")
        return self._made(cls, values, path)

    def _made(self, cls: Any, values: Any, path: Path) -> Any:
        try:
            return cls(**values) if isinstance(values, dict) else cls(*values)
        except (ValueError, InputError) as error:
            raise InputError(f"{self.at(*path)}: {str(error).rstrip('.')}.") from None

    def _word(self, data: Any, known: Iterable[Any], path: Path) -> Any:
        words = list(known)
        if data in words:
            return data
        raise InputError(f"{self.at(*path)}: {_shown(data)} is not known{_meant(str(data), words)}")

    def _scalar(self, data: Any, kind: Any, path: Path) -> Any:
        number = isinstance(data, int | float) and not isinstance(data, bool)
        if kind is float and number:
            return float(data)
        if kind is int and number and data == int(data):
            return int(data)
        if kind in (bool, str) and isinstance(data, kind):
            return data
        expected = {float: "a number", int: "a whole number", bool: "true or false", str: "a text"}
        raise self._wrong(data, expected[kind], path)

    def _wrong(self, data: Any, expected: str, path: Path) -> InputError:
        return InputError(f"{self.at(*path)}: {_shown(data)} came, but {expected} is needed.")


def _written(value: Any, cls: Any) -> dict[str, Any]:
    """The fields of a dataclass that differ from their defaults, values inside it written beside them."""
    data: dict[str, Any] = {}
    inner = set(_inside(cls).values())
    for field in dataclasses.fields(cls):
        item = getattr(value, field.name)
        if not _required(field) and item == _default(field):
            continue
        if field.name in inner:
            fields = _written(item, type(item))
            data |= fields or {field.name: {}}
        else:
            data[field.name] = _plain(item)
    return data


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Timeout):
        return {"cap": _plain(value.cap), "fill": _plain(value.fill)}
    if isinstance(value, FirstOf):
        return _plain(value.choosers)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = _written(value, type(value))
        return {"kind": kind_of(type(value)), **fields} if fields else kind_of(type(value))
    return value


def _fields(cls: Any) -> dict[str, Any]:
    """Name → annotation."""
    hints = typing.get_type_hints(cls)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls)}


def _inside(cls: Any) -> dict[str, str]:
    """Fields of the plain values inside a part → the part's field that holds the value."""
    if cls is Policy or cls is Timeout:
        return {}
    own = _fields(cls)
    return {
        name: field
        for field, kind in own.items()
        if dataclasses.is_dataclass(kind)
        for name in _fields(kind)
        if name not in own
    }


def _required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def _meant(word: str, known: Iterable[str]) -> str:
    words = list(dict.fromkeys(map(str, known)))
    close = difflib.get_close_matches(word, words, n=1, cutoff=0.6)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; known are {', '.join(words)}." if words else "; it has no fields."


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    return (
        "nothing" if value is None else ("true" if value else "false") if isinstance(value, bool) else repr(value)[:60]
    )
