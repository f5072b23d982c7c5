"""Names of runs on a cluster. The name alone says which study and trial a run belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

PREFIX = "lynceus:"


class ParsedName(NamedTuple):
    """The parts of a name."""

    study: str
    identity: str
    number: int | None
    """None for what belongs to the study as a whole."""


def run_name(request: Mapping[str, Any]) -> str:
    """The name of a run. Its random part makes it unique, even if a study of this identity was deleted.

    >>> run_name({"study": "nightly sort", "identity": "3f", "number": 4, "run": "a1"})
    'lynceus:nightly%20sort:3f:4:a1'
    """
    return f"{study_prefix(request)}{request['number']}:{request['run']}"


def study_prefix(request: Mapping[str, Any]) -> str:
    """How the names of all runs of a study start."""
    return f"{PREFIX}{quote(request['study'], safe='')}:{quote(request['identity'], safe='')}:"


def parse_name(name: str) -> ParsedName:
    """The parts of the name of a run, or of the key of a copied folder.

    >>> parse_name("lynceus:nightly%20sort:3f:4:a1")
    ParsedName(study='nightly sort', identity='3f', number=4)
    """
    study, identity, number, *_ = name.removeprefix(PREFIX).partition("/")[0].split(":")
    return ParsedName(unquote(study), unquote(identity), int(number) if number.isdigit() else None)
