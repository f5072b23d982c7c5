"""Policies from plain data, and back: any combination of parts can be written in YAML.

A part is written as a mapping with its `kind`, the class's name in kebab case, and the fields that differ from their defaults;
a part without such fields may be written as its kind alone. The annotations of the classes define the fields, so a new part needs
only one entry in `lynceus.policy.part_table`.

>>> policy = compose({"name": "mine", "choose": [{"kind": "latin-hypercube", "share": 0.05}, "by-price"], "timeout": "capped"})
>>> policy.choose.choosers[0].amount.share
0.05
>>> compose(describe(policy)) == policy
True
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Literal

from lynceus.errors import InputError, hint, shown
from lynceus.policy.part_table import IMPLIED, LISTS, PARTS, all_kinds, kind_of, kinds
from lynceus.policy.planners.simple import FirstOf
from lynceus.policy.plugins import FormerFields, policy_plugins
from lynceus.policy.policy import Policy
from lynceus.policy.timeouts.by_name import TIMEOUTS, all_timeouts
from lynceus.policy.timeouts.timeout import Timeout

FORMER_NAMES: Mapping[str, str] = MappingProxyType(
    {
        # kinds
        "along-price": "price-trend",
        "foresee": "information-planner",
        "foresighted-trees": "joint-trees",
        "incumbent-cap": "incumbent-timeout",
        "knowing-the-best": "entropy-search",
        "knowing-the-best-allowed": "constrained-entropy-search",
        "no-cap": "no-timeout",
        "nothing": "discard",
        "rollout": "lookahead",
        "small-gain": "small-improvement",
        # fields
        "cap": "rule",
        "fill": "censored",
        "gain": "acquisition",
        "same_luck": "shared_randomness",
        "sure": "confidence",
        "within_limits": "constrained",
        "worths": "utilities",
    }
)
"""Kinds and fields as policies of version 0.1 name them, in files and in storages: old → current."""

FORMER_FIELDS: FormerFields = MappingProxyType(
    {
        ("lookahead", "real_money", False): {},
        ("lookahead", "rule", "gauss-hermite"): {},
        ("gauss-hermite", "rule", "gauss-hermite"): {},
        ("trees", "zero_spread", 0.0): {},
        ("incumbent-timeout", "measure", "cost"): {},
        ("incumbent-timeout", "measure", "time"): {"kind": "fastest-timeout"},
    }
)
"""Fields of earlier versions that no longer exist, at the value at which they can be left out, or what replaces them."""

At = Callable[..., str]
"""From a path (keys and positions) to its place in words, such as `policy.yaml:4: choose.1.acquisition`."""
Path = tuple[str | int, ...]


def compose(data: Mapping[str, Any], *, at: At | None = None, default_name: str = "policy") -> Policy:
    """A policy from plain data; `at` turns a path into a place for messages."""
    where = at or _dotted
    if not isinstance(data, Mapping):
        raise InputError(f"{where()}: got {shown(data)}; expected a mapping with 'choose'.")
    policy = _Reader(where).fields(Policy, {"name": default_name, **data}, ())
    return typing.cast(Policy, policy)


def describe(policy: Policy) -> dict[str, Any]:
    """Plain data from which `compose` makes an equal policy; fields at their defaults are left out."""
    return _written(policy, Policy)


def _dotted(*path: str | int) -> str:
    return ".".join(["policy", *map(str, path)])


@dataclasses.dataclass(frozen=True)
class _Reader:
    """Plain data → parts, guided by the annotations of the dataclasses."""

    at: At

    def value(self, data: Any, kind: Any, path: Path) -> Any:
        """`data` as the annotation `kind` says."""
        options = typing.get_args(kind) if isinstance(kind, types.UnionType) else ()
        if options:
            if data is None and type(None) in options:
                return None
            return self.value(data, next(option for option in options if option is not type(None)), path)
        if kind in PARTS:
            return self.part(data, kind, path)
        if typing.get_origin(kind) is tuple:
            if not isinstance(data, list | tuple):
                raise self._unexpected(data, "a list", path)
            inner = typing.get_args(kind)[0]
            return tuple(self.value(item, inner, (*path, place)) for place, item in enumerate(data))
        if typing.get_origin(kind) is Literal:
            return self._name(data, typing.get_args(kind), path)
        if kind is Timeout and isinstance(data, str):
            known = TIMEOUTS if data in TIMEOUTS else all_timeouts()
            return known[self._name(data, known, path)]
        if dataclasses.is_dataclass(kind):
            if not isinstance(data, Mapping):
                raise self._unexpected(data, f"a mapping with {', '.join(_fields(kind))}", path)
            return self.fields(kind, data, path)
        return self._scalar(data, kind, path)

    def part(self, data: Any, interface: Any, path: Path) -> Any:
        """A part of an interface: a mapping with its kind, its kind alone, or a list of parts."""
        if isinstance(data, list | tuple) and interface in LISTS:
            parts = tuple(self.part(item, interface, (*path, i)) for i, item in enumerate(data))
            return self._made(LISTS[interface], [parts], path)
        if isinstance(data, str):
            data = {"kind": data}
        if not isinstance(data, Mapping):
            raise self._unexpected(data, f"a part with a kind ({', '.join(all_kinds(interface))})", path)
        if "kind" not in data and interface in IMPLIED:
            data = {"kind": kind_of(IMPLIED[interface]), **data}
        if "kind" not in data:
            raise InputError(f"{self.at(*path)}: the part has no kind; add one of {', '.join(all_kinds(interface))}.")
        cls = self._class(data["kind"], interface, (*path, "kind"))
        try:
            return self.fields(cls, {key: item for key, item in data.items() if key != "kind"}, path)
        except InputError:
            rewritten = _rewritten(cls, data)
            if rewritten is None:
                raise
            return self.part(rewritten, interface, path)

    def _class(self, kind: Any, interface: Any, path: Path) -> type:
        known = kinds(interface)
        name = _current(kind, known, FORMER_NAMES)
        if name in known:
            return known[name]
        known = all_kinds(interface)
        for plugin in policy_plugins():
            name = _current(name, known, plugin.former_names)
        return known[self._name(name, known, path)]

    def fields(self, cls: Any, data: Mapping[str, Any], path: Path) -> Any:
        """A dataclass from a mapping of its fields; the fields of a value inside it (an amount, say) may be written beside them."""
        own, inside = _fields(cls), _inside(cls)
        nested: dict[str, dict[str, Any]] = {}
        values: dict[str, Any] = {}
        for key, item in ((_current(key, own, FORMER_NAMES), item) for key, item in data.items()):
            if key in own:
                values[key] = self.value(item, own[key], (*path, key))
            elif key in inside:
                nested.setdefault(inside[key], {})[key] = item
            else:
                raise InputError(f"{self.at(*path, key)}: there is no field '{key}'{hint(key, [*own, *inside])}")
        for field, items in nested.items():
            if field in values:
                raise InputError(
                    f"{self.at(*path, field)}: '{next(iter(items))}' belongs to '{field}', which is given too; write it there."
                )
            values[field] = self.fields(_value_class(own[field]), items, path)
        for needed in dataclasses.fields(cls):
            if needed.name not in values and _required(needed):
                raise InputError(f"{self.at(*path, needed.name)}: the field '{needed.name}' is missing; add it.")
        return self._made(cls, values, path)

    def _made(self, cls: Any, values: Any, path: Path) -> Any:
        try:
            return cls(**values) if isinstance(values, dict) else cls(*values)
        except (ValueError, InputError) as error:
            raise InputError(f"{self.at(*path)}: {str(error).rstrip('.')}.") from None

    def _name(self, data: Any, known: Iterable[Any], path: Path) -> Any:
        names = list(known)
        if data in names:
            return data
        raise InputError(f"{self.at(*path)}: got {shown(data)}{hint(str(data), map(str, names))}")

    def _scalar(self, data: Any, kind: Any, path: Path) -> Any:
        number = isinstance(data, int | float) and not isinstance(data, bool)
        if kind is float and number:
            return float(data)
        if kind is int and number and data == int(data):
            return int(data)
        if kind in (bool, str) and isinstance(data, kind):
            return data
        expected = {float: "a number", int: "a whole number", bool: "true or false", str: "a string"}
        raise self._unexpected(data, expected[kind], path)

    def _unexpected(self, data: Any, expected: str, path: Path) -> InputError:
        return InputError(f"{self.at(*path)}: got {shown(data)}; expected {expected}.")


def _current(name: Any, known: Collection[str], former: Mapping[str, str]) -> Any:
    """The name that replaced a former one; a known name stays."""
    return name if name in known or not isinstance(name, str) else former.get(name, name)


def _rewritten(cls: type, data: Mapping[str, Any]) -> dict[str, Any] | None:
    """A part as version 0.1 wrote it, in the current form; None if it has no former field."""
    own, kind = _fields(cls), kind_of(cls)
    given = {_current(key, own, FORMER_NAMES): item for key, item in data.items()} | {"kind": kind}
    changes: dict[str, Any] = {}
    found = False
    for table in (FORMER_FIELDS, *(plugin.former_fields for plugin in policy_plugins())):
        for (of, field, value), replacement in table.items():
            if of == kind and field in given and given[field] == value:
                del given[field]
                changes |= replacement
                found = True
    return given | changes if found else None


def _written(value: Any, cls: Any) -> dict[str, Any]:
    """The fields of a dataclass that differ from their defaults, with the fields of a value inside it beside them."""
    data: dict[str, Any] = {}
    inner = set(_inside(cls).values())
    for field in dataclasses.fields(cls):
        item = getattr(value, field.name)
        if not _required(field) and item == _default(field):
            continue
        if field.name in inner and type(item) is _value_class(_fields(cls)[field.name]):
            fields = _written(item, type(item))
            data |= fields or {field.name: {}}
        else:
            data[field.name] = _plain(item)
    return data


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Timeout):
        return {"rule": _plain(value.rule), "censored": _plain(value.censored)}
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


def _value_class(annotation: Any) -> Any:
    """The dataclass whose fields may be written beside those of the part that holds it; None for any other annotation."""
    if dataclasses.is_dataclass(annotation):
        return annotation
    return IMPLIED.get(annotation) if isinstance(annotation, type) else None


def _inside(cls: Any) -> dict[str, str]:
    """Fields of the values inside a part → the part's field that holds the value."""
    if cls is Policy or cls is Timeout:
        return {}
    own = _fields(cls)
    return {
        name: field
        for field, annotation in own.items()
        if (held := _value_class(annotation)) is not None
        for name in _fields(held)
        if name not in own
    }


def _required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
