"""Texts that nobody would write: job files and expressions for tests that demand an answer, or one sentence, in bounded time and memory."""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from lynceus.errors import InputError
from lynceus.jobfile.command_line import command_line
from lynceus.jobfile.job import Job
from lynceus.jobfile.prepared_study import prepare
from lynceus.space.expression import Expression

MOST_S = 5.0
"""Of processor time: about a second on an idle machine."""
MOST_BYTES = 500 << 20

JOB: dict[str, Any] = {
    "name": "fuzzed",
    "run": ["train", "--threads=${threads}", "${vm}"],
    "envs": {"WORKERS": "${threads}"},
    "secrets": {"TOKEN": "env:TOKEN"},
    "space": {
        "threads": {"int": [1, 8], "step": 1},
        "vm": ["small", "large"],
        "rate": {"float": [0.1, 0.9], "steps": 3},
        "codec": {"choice": ["a", "b"], "when": "threads > 2"},
    },
    "derived": {
        "cores": "threads * 2",
        "memory": {"map": "vm", "values": {"small": 2, "large": 8}},
    },
    "forbid": ["vm == 'small' and threads > 4"],
    "resources": {"cpus": "threads", "memory": "512 MB"},
    "price": "0.05 * cores",
    "billing": {"granularity": "1m", "minimum": "1m", "boot": "90s"},
    "objective": "cost",
    "constraints": ["runtime <= 45m @ 0.95", "accuracy >= 0.92"],
    "metrics": {"accuracy": "accuracy=([0-9.]+)"},
    "budget": {"cost": "25 USD", "wall_clock": "12h", "max_trials": 40},
    "trial": {"timeout": "auto", "max_duration": "1h", "parallel": 2, "grace": "10s"},
    "policy": "lynceus",
    "seed": 0,
    "baseline": {"config": {"threads": 1, "vm": "small", "rate": 0.1}, "runtime": "41m", "measure": False},
    "future": {"per_month": 30, "months": 6},
    "executor": {"kind": "local", "run_directory": ".lynceus"},
    "notify": {"webhook": "env:HOOK", "mail": {"to": "a@example.org"}},
    "storage": "sqlite:///lynceus.db",
}
"""A valid job file; fuzzing replaces parts of it."""

_ODD_TEXTS = [
    "",
    " ",
    "~",
    "${",
    "${a${threads}}",
    "$threads",
    "${" * 50,
    "9**9**9",
    "threads**threads**99",
    "'a' * 10**9",
    "(" * 300,
    "[" * 300,
    "not " * 200 + "1",
    "-" * 3000 + "1",
    "1 if 1 else " * 60 + "1",
    "x." * 200 + "y",
    "range(10**9)",
    "exp(exp(exp(9)))",
    "10**400",
    "1e400",
    "(a+)+$",
    "(" * 200 + "a" + ")" * 200,
    "(a{0,65535}){0,65535}",
    "(?P<a>x)(?P<a>y)",
    "(a{9999999999})",
    "[^",
    "(" * 6000,
    "((" + "a|" * 500 + "b))",
    "runtime <= 1e308h",
    "runtime <= 45m @ 1e9",
    "0 <= runtime",
    "maximize",
    "cost cost cost",
    "nan",
    "-inf",
    "1e-320 USD",
    "99999999999999999999999999999 h",
    "~nobody-has-this-name/x",
    "../" * 500,
    "/dev/zero",
    "/dev/stdin",
    "\ud800",
    "a\u202eb",
    "\x1b[2J",
    "=HYPERLINK()",
    "[/bold]",
    "a" * 5000,
    "\0",
    "env:",
    "file:/dev/zero",
    "file:" + "x" * 5000,
    "postgresql://u:p@h:99999999/x",
    "sqlite:////dev/zero",
    "://",
    "12:30",
    "2024-01-01",
    "0x" + "f" * 400,
]
_NUMBERS = [
    0,
    -1,
    1,
    2,
    3,
    1000,
    10**6,
    10**9,
    2**31,
    2**53,
    2**63 - 1,
    2**63,
    10**30,
    10**400,
    0.0,
    -0.0,
    1e-320,
    1e308,
    1.5,
    0.1,
]
_NAMES = st.sampled_from(
    ["threads", "vm", "cores", "rate", "codec", "missing", "PATH", "int", "a-b", "a.b", "__class__", "price", "é", ""]
)


def expressions() -> st.SearchStrategy[str]:
    """Expressions of the job file's language, and texts that almost are."""
    atoms = (
        _NAMES
        | st.sampled_from([repr(one) for one in _NUMBERS])
        | st.sampled_from(["'small'", "None", "True", "''", "[1, 2]", "()", "1j", "b''", "...", "'x' * 9"])
    )
    operators = st.sampled_from(
        [
            "+",
            "-",
            "*",
            "/",
            "//",
            "%",
            "**",
            "<",
            "<=",
            "==",
            "!=",
            "in",
            "not in",
            "is",
            "and",
            "or",
            "&",
            "@",
            "<<",
            ":=",
        ]
    )
    functions = st.sampled_from(
        ["min", "max", "abs", "log", "exp", "round", "int", "float", "str", "len", "range", "eval"]
    )

    def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return (
            st.tuples(inner, operators, inner).map(" ".join)
            | st.tuples(functions, st.lists(inner, max_size=3)).map(lambda call: f"{call[0]}({', '.join(call[1])})")
            | st.tuples(inner, inner, inner).map(lambda three: f"({three[0]} if {three[1]} else {three[2]})")
            | inner.map(lambda one: f"({one})")
            | inner.map(lambda one: f"not -{one}")
        )

    return st.recursive(atoms, larger, max_leaves=30) | st.text(max_size=60) | st.sampled_from(_ODD_TEXTS)


def _values() -> st.SearchStrategy[Any]:
    scalars = (
        st.none()
        | st.booleans()
        | st.sampled_from(_NUMBERS)
        | st.integers()
        | st.floats()
        | st.sampled_from(_ODD_TEXTS)
        | expressions()
        | st.text(max_size=20)
    )
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_NAMES | st.text(max_size=8), inner, max_size=4),
        max_leaves=12,
    )


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return found + [below for key, one in inner for below in _paths(one, (*path, key))]


_PLACES = _paths(JOB)


def _changed(changes: list[tuple[tuple[Any, ...], str, Any]]) -> dict[str, Any]:
    job: dict[str, Any] = json.loads(json.dumps(JOB))
    for path, how, value in changes:
        parent: Any = job
        for step in path[:-1]:
            parent = parent[step] if isinstance(parent, dict | list) and _has(parent, step) else None
        if not isinstance(parent, dict | list) or not _has(parent, path[-1]):
            continue
        if how == "replace":
            parent[path[-1]] = value
        elif how == "remove":
            del parent[path[-1]]
        elif isinstance(parent, dict):
            parent[str(value)[:60]] = parent[path[-1]]
        else:
            parent.append(value)
    return job


def _has(parent: Any, step: Any) -> bool:
    return step in parent if isinstance(parent, dict) else isinstance(step, int) and step < len(parent)


def jobs() -> st.SearchStrategy[str]:
    """Job files: a valid one with parts replaced, as JSON, which is YAML, too; sometimes with a piece of text cut out or added."""
    changes = st.lists(
        st.tuples(st.sampled_from(_PLACES), st.sampled_from(["replace", "replace", "remove", "rename"]), _values()),
        min_size=1,
        max_size=3,
    )
    whole = changes.map(_changed).map(lambda job: json.dumps(job, ensure_ascii=False, indent=1))
    pieces = st.text(max_size=12) | st.sampled_from(
        ["&a ", "*a", "<<: *a", "!!python/object:os.system ", "\t", "---", "- ", "? ", ": ", "#", "|", ">"]
    )
    spliced = st.tuples(whole, st.integers(0, 4000), st.integers(0, 40), pieces).map(
        lambda cut: cut[0][: cut[1]] + cut[3] + cut[0][cut[1] + cut[2] :]
    )
    return whole | whole | spliced | st.text(max_size=300)


def read_job(text: str) -> None:
    """Everything that reading a job file leads to, short of running it."""
    job = Job.parse(text)
    prepared = prepare(job)
    assert all(isinstance(note, str) for note in prepared.notes)
    for row in {0, len(prepared.problem.space) - 1}:
        command_line(prepared.job, prepared.problem.space.point(row))
    prepare(Job.from_stored(prepared.job.stored()), to_run=False)


COLUMNS = {
    "threads": [1, 2, 4, 8],
    "vm": ["small", "large", "small", "large"],
    "cores": [0.5, 1.0, 2.0, 4.0],
    "codec": [None, None, "a", "b"],
}


def evaluate(text: str) -> None:
    """Both uses of an expression."""
    found = Expression.parse(text)
    found.evaluate(COLUMNS)
    found.mask(COLUMNS)


def demand_an_answer(use: Callable[[str], None], text: str) -> None:
    """Fail unless `use` returns or raises an `InputError` of one line, soon and in little memory."""
    before, began_s = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    try:
        use(text)
    except InputError as error:
        message = str(error)
    else:
        message = ""
    took_s = time.process_time() - began_s
    assert "\n" not in message, message
    message.encode()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert took_s < MOST_S, f"{took_s:.1f} s of processor time"
    assert grown < MOST_BYTES, f"{grown >> 20} MiB more"
