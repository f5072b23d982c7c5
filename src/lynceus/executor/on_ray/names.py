"""Names of runs on a cluster: from the name alone one can tell whose run it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

PREFIX = "lynceus:"


class Named(NamedTuple):
    """What a name says."""

    study: str
    identity: str
    number: int | None


def run_name(request: Mapping[str, Any]) -> str:
    """The name of a run. Its own random word keeps it apart from every other, even if a study of this identity was deleted.

    >>> run_name({"study": "nightly sort", "identity": "3f", "number": 4, "run": "a1"})
    'lynceus:nightly%20sort:3f:4:a1'
    """
    return f"{study_name(request)}{request['number']}:{request['run']}"


def study_name(request: Mapping[str, Any]) -> str:
    """How the names of all runs of a study begin."""
    return f"{PREFIX}{quote(request['study'], safe='')}:{quote(request['identity'], safe='')}:"


def named(name: str) -> Named:
    """The other way round; shipped folders belong to a study as a whole.

    >>> named("lynceus:nightly%20sort:3f:4:a1")
    Named(study='nightly sort', identity='3f', number=4)
    """
    study, identity, number, *_ = name.removeprefix(PREFIX).partition("/")[0].split(":")
    return Named(unquote(study), unquote(identity), int(number) if number.isdigit() else None)
