"""Which code and which table a trace was made with: a fingerprint of all sources that can change a decision, and of no others.

Sources are followed through their imports, from the parts of a policy and from the replay itself. Comments, docstrings and layout do not
count, and neither do parts that the policy does not have: work on one policy leaves the traces of all others valid.
"""

from __future__ import annotations

import ast
import dataclasses
import datetime
import hashlib
import importlib.util
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

from lynceus.errors import InputError
from lynceus.jobfile.yaml.document import Document
from lynceus.policy.policy_file import compose
from lynceus.replay.job import job_path
from lynceus.replay.job_file import ReplaySpec
from lynceus.replay.tables import find_table
from lynceus.version import __version__
from lynceus_lab.peers.catalog import peer_named
from lynceus_lab.peers.server import LIBRARIES

_SOURCES = Path(__file__).resolve().parents[1]
_OWN = ("lynceus", "lynceus_lab")
_REPLAY = ("lynceus.replay.run", "lynceus_lab.worlds")
"""What every replay runs through, besides the parts of its policy."""
_PEER = "lynceus_lab.peers.replay"
_CANNOT_DECIDE = (
    *(
        "lynceus.errors",
        "lynceus.storage.sql",
        "lynceus.prices",
        "lynceus.jobfile",
        "lynceus.analysis",
        "lynceus.library",
    ),
    *("lynceus.notify", "lynceus.reports", "lynceus.client", "lynceus.server", "lynceus.demo", "lynceus.cli"),
)
"""Packages and modules that are not followed: they read files, print and store, and cannot change which run comes next."""
_TEXT_FIELDS = ("description", "source", "name")
"""Fields of a job file that are only for readers."""
_DIGITS = 12


def code_fingerprint(policy: str, job: str) -> str:
    """A short hash of the code and the data that a policy's traces on a job depend on.

    `policy` is that of a setting: the parts as JSON, or `peer:NAME`.
    """
    return _short([_code_of(policy), _data_of(job)])


@lru_cache(maxsize=1024)
def _code_of(policy: str) -> str:
    if policy.startswith("peer:"):
        server = (_SOURCES / "lynceus_lab" / "peers" / "server.py").read_text(encoding="utf-8")
        library = peer_named(policy.removeprefix("peer:")).library
        return _short([_hash_of(modules([_PEER])), _of_library(server, library)])
    return _hash_of(modules_of(policy))


def modules_of(policy: str) -> list[str]:
    """The modules that can change a decision of a policy, given as JSON."""
    starts = {type(part).__module__ for part in parts(compose(json.loads(policy)))}
    return modules([*sorted(starts), *_REPLAY])


def _of_library(server: str, library: str) -> str:
    """The server of the peers without its classes for other libraries."""
    others = {kind.__name__ for name, kind in LIBRARIES.items() if name != library}
    tree = ast.parse(server)
    tree.body = [node for node in tree.body if not (isinstance(node, ast.ClassDef) and node.name in others)]
    return _without_comments(ast.unparse(tree))


def parts(value: Any) -> Iterator[Any]:
    """A dataclass and every dataclass inside it."""
    if isinstance(value, tuple):
        for item in value:
            yield from parts(item)
    elif dataclasses.is_dataclass(value):
        yield value
        for field in dataclasses.fields(value):
            yield from parts(getattr(value, field.name))


def modules(starts: Iterable[str]) -> list[str]:
    """Modules and all that they import from the project or from their own packages, without those that cannot decide."""
    starts = list(starts)
    packages = {*_OWN, *(name.split(".")[0] for name in starts)}
    found, waiting = set[str](), starts
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [
                other for other in _imports(name) if other.split(".")[0] in packages and not _cannot_decide(other)
            ]
    return sorted(found)


def _cannot_decide(module: str) -> bool:
    return any(module == one or module.startswith(f"{one}.") for one in _CANNOT_DECIDE)


def _hash_of(names: Iterable[str]) -> str:
    return _short([name + _text(name) for name in names])


@lru_cache(maxsize=1024)
def _text(module: str) -> str:
    """The code of a module without comments; of the kernel, also its C sources."""
    text = _without_comments(_file(module).read_text(encoding="utf-8"))
    if module == "lynceus.models._kernel.native":
        sources = sorted(path for ending in ("*.c", "*.h") for path in _file(module).parent.glob(ending))
        text += "".join(_c_without_comments(path.read_text(encoding="utf-8")) for path in sources)
    return text


def _without_comments(source: str) -> str:
    """Python without comments, layout and docstrings.

    >>> _without_comments("x = 1  # why") == _without_comments("x   =   1")
    True
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            kept = [each for each in body if not _is_docstring(each)]
            node.body = kept or [ast.Pass()]  # type: ignore[attr-defined]
    return ast.unparse(tree)


def _is_docstring(statement: ast.AST) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _c_without_comments(source: str) -> str:
    """C without comments and layout."""
    return " ".join(re.sub(r"/\*.*?\*/|//[^\n]*", " ", source, flags=re.DOTALL).split())


@lru_cache(maxsize=1024)
def _imports(module: str) -> tuple[str, ...]:
    """Modules with source files that a module imports at run time; names that packages re-export are resolved to their module."""
    found: list[str] = []
    waiting: list[ast.AST] = [ast.parse(_file(module).read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and (origin := _origin(module, node)) is not None:
            found += [_defining_module(origin, alias.name) for alias in node.names]
        waiting += ast.iter_child_nodes(node)
    packages = {*_OWN, module.split(".")[0]}
    own = (name for name in found if name.split(".")[0] in packages and name not in packages)
    return tuple(dict.fromkeys(name for name in own if _file(name).is_file()))


def _origin(module: str, node: ast.ImportFrom) -> str | None:
    """The module that a `from` names, with dots resolved; None outside the project and the module's own package."""
    if not node.level:
        inside = (node.module or "").split(".")[0] in {*_OWN, module.split(".")[0]}
        return node.module if inside else None
    steps = module.split(".")
    package = steps if _file(module).name == "__init__.py" else steps[:-1]
    return ".".join([*package[: len(package) - node.level + 1], *([node.module] if node.module else [])])


def _defining_module(module: str, name: str) -> str:
    """The module in which `from module import name` ends."""
    if _file(f"{module}.{name}").is_file():
        return f"{module}.{name}"
    path = _file(module)
    if path.name == "__init__.py" and path.is_file():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and (origin := _origin(module, node)) is not None:
                for alias in node.names:
                    if name in (alias.asname, alias.name):
                        return _defining_module(origin, alias.name)
    return module


@lru_cache(maxsize=4096)
def _file(module: str) -> Path:
    """The source of a module or package; it need not exist."""
    top, *rest = module.split(".")
    place = (_SOURCES / top if top in _OWN else _installed(top)).joinpath(*rest)
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


def _installed(package: str) -> Path:
    """The folder of a package that offers policies as a plugin, or its module without the suffix."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return _SOURCES / package
    origin = Path(spec.origin)
    return origin.parent if origin.name == "__init__.py" else origin.with_suffix("")


@lru_cache(maxsize=256)
def _data_of(job: str) -> str:
    """The hash of a job file and of its tables; the name of a table stands for one that is missing."""
    path = job_path(job)
    document = Document.read(path)
    spec = document.check(ReplaySpec)
    tables = [spec.table, *(further.table for further in (spec.details, spec.past) if further is not None)]
    fields = spec.model_dump_json(exclude=set(_TEXT_FIELDS))
    return _short([fields, *(_hash_of_table(document, path, table) for table in tables)])


def _hash_of_table(document: Document, path: Path, table: str) -> str:
    try:
        return hashlib.sha256(find_table(document, path, table).read_bytes()).hexdigest()
    except InputError:
        return table


@lru_cache(maxsize=1)
def commit() -> str | None:
    """The commit of the sources, with a plus when they differ from it; None outside a repository."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(_SOURCES), *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        return git("rev-parse", "--short", "HEAD") + ("+" if git("status", "--porcelain", "--", ".") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def provenance() -> dict[str, Any]:
    """Date, versions and machine of this process, stored with every trace."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "lynceus": __version__,
        "commit": commit(),
        "python": platform.python_version(),
        "numpy": metadata.version("numpy"),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }


def _short(texts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:_DIGITS]
