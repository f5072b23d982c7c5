"""Which code and which table a trace was made with: a fingerprint of everything that decides, and of nothing else.

Sources are followed from the parts of a policy and from the replay itself through their imports, as far as the rooms go that think or
pretend to run. Comments, docstrings and layout do not count, and neither does a part that the policy does not have: work on one policy
leaves the traces of all others valid.
"""

from __future__ import annotations

import ast
import dataclasses
import datetime
import hashlib
import json
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from lynceus.document import Document
from lynceus.errors import InputError
from lynceus.lab.peers import peer_named
from lynceus.lab.peers.server import LIBRARIES
from lynceus.policy.compose import compose
from lynceus.replay.job import job_path
from lynceus.replay.spec import ReplaySpec
from lynceus.replay.tables import find_table

_PACKAGE = Path(__file__).resolve().parents[1]
_THINKING = frozenset(
    {
        *("space", "fraction", "problem", "history", "situation", "distribution", "randomness"),
        *("surrogate", "acquisition", "choose", "timeout", "stopping", "policy", "executor", "replay"),
    }
)
"""Rooms whose sources count. Ledgers, command lines and pages do not decide."""
_ALWAYS = ("lynceus.replay.run", "lynceus.policy.decide", "lynceus.policy.recommend", "lynceus.executor.table")
_PEERS = "lynceus.lab.peers"
_WORDS = ("description", "source", "name")
"""What a job's file says to people."""
_DIGITS = 12


def fingerprint(policy: str, job: str) -> str:
    """A short name of the code and the data that a policy's traces on a job depend on.

    `policy` is what a setting carries: the parts as JSON, or `peer:NAME`.
    """
    return _short([_code_of(policy), _data_of(job)])


@lru_cache(maxsize=1024)
def _code_of(policy: str) -> str:
    if policy.startswith("peer:"):
        source = (_PACKAGE / "lab" / "peers" / "server.py").read_text(encoding="utf-8")
        return _short([_sources([_PEERS]), _of_library(source, peer_named(policy.removeprefix("peer:")).library)])
    modules = {type(part).__module__ for part in parts(compose(json.loads(policy)))}
    return _sources([*sorted(modules), *_ALWAYS])


def _of_library(server: str, library: str) -> str:
    """The peers' server without what it does for other libraries."""
    others = {kind.__name__ for name, kind in LIBRARIES.items() if name != library}
    tree = ast.parse(server)
    tree.body = [node for node in tree.body if not (isinstance(node, ast.ClassDef) and node.name in others)]
    return _bare(ast.unparse(tree))


def parts(value: Any) -> Iterator[Any]:
    """A record and every record inside it."""
    if isinstance(value, tuple):
        for item in value:
            yield from parts(item)
    elif dataclasses.is_dataclass(value):
        yield value
        for field in dataclasses.fields(value):
            yield from parts(getattr(value, field.name))


def _sources(start: Iterable[str]) -> str:
    """The hash of modules and of all that they import within the thinking rooms."""
    found, waiting = set[str](), list(start)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [other for other in _imports(name) if other.split(".")[1] in _THINKING]
    return _short([name + _text(name) for name in sorted(found)])


@lru_cache(maxsize=1024)
def _text(module: str) -> str:
    """What a module does, without what it says; the kernel with its C sources."""
    text = _bare(_file(module).read_text(encoding="utf-8"))
    if module == "lynceus.surrogate._kernel.native":
        sources = sorted(path for ending in ("*.c", "*.h") for path in _file(module).parent.glob(ending))
        text += "".join(_without_comments(path.read_text(encoding="utf-8")) for path in sources)
    return text


def _bare(source: str) -> str:
    """Python without comments, layout and docstrings.

    >>> _bare("x = 1  # why") == _bare("x   =   1")
    True
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            kept = [each for each in body if not _is_text(each)]
            node.body = kept or [ast.Pass()]  # type: ignore[attr-defined]
    return ast.unparse(tree)


def _is_text(statement: ast.AST) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _without_comments(source: str) -> str:
    """C without comments and layout."""
    return " ".join(re.sub(r"/\*.*?\*/|//[^\n]*", " ", source, flags=re.DOTALL).split())


@lru_cache(maxsize=1024)
def _imports(module: str) -> tuple[str, ...]:
    """Modules of the project that a module needs when it runs, names that packages hand on resolved to where they are defined."""
    found: list[str] = []
    waiting: list[ast.AST] = [ast.parse(_file(module).read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.startswith("lynceus.")]
        elif isinstance(node, ast.ImportFrom) and (origin := _origin(module, node)) is not None:
            found += [_home(origin, alias.name) for alias in node.names]
        waiting += ast.iter_child_nodes(node)
    return tuple(dict.fromkeys(name for name in found if _file(name).is_file()))


def _origin(module: str, node: ast.ImportFrom) -> str | None:
    """The module of the project that a `from` names, dots resolved; nothing for others."""
    if not node.level:
        return node.module if (node.module or "").startswith("lynceus.") else None
    steps = module.split(".")
    package = steps if _file(module).name == "__init__.py" else steps[:-1]
    return ".".join([*package[: len(package) - node.level + 1], *([node.module] if node.module else [])])


def _home(module: str, name: str) -> str:
    """Where `from module import name` finds it in the end."""
    if _file(f"{module}.{name}").is_file():
        return f"{module}.{name}"
    path = _file(module)
    if path.name == "__init__.py":
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and (origin := _origin(module, node)) is not None:
                for alias in node.names:
                    if name in (alias.asname, alias.name):
                        return _home(origin, alias.name)
    return module


def _file(module: str) -> Path:
    """The source of a module or package; it need not exist."""
    place = _PACKAGE.joinpath(*module.split(".")[1:])
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


@lru_cache(maxsize=256)
def _data_of(job: str) -> str:
    """The hash of a job's file and of its tables; of a table that is not there, of its name."""
    path = job_path(job)
    document = Document.read(path)
    model = document.check(ReplaySpec)
    tables = [model.table, *(further.table for further in (model.details, model.past) if further is not None)]
    told = model.model_dump_json(exclude=set(_WORDS))
    return _short([told, *(_bytes_of(document, path, table) for table in tables)])


def _bytes_of(document: Document, path: Path, table: str) -> str:
    try:
        return hashlib.sha256(find_table(document, path, table).read_bytes()).hexdigest()
    except InputError:
        return table


@lru_cache(maxsize=1)
def commit() -> str | None:
    """The commit of the sources, with a plus when they differ from it; nothing outside a repository."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(_PACKAGE), *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        return git("rev-parse", "--short", "HEAD") + ("+" if git("status", "--porcelain", "--", ".") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def provenance() -> dict[str, Any]:
    """When, with what and where, as it is in the process that asks: kept with every trace."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "lynceus": metadata.version("lynceus"),
        "commit": commit(),
        "python": platform.python_version(),
        "numpy": metadata.version("numpy"),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }


def _short(texts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:_DIGITS]
