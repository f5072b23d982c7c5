"""What kind of project lies in a folder, and which job file fits it: Spark, PyTorch, dbt, a Makefile, or a Python program with options.

What is proposed is a start: `lynceus init` shows it, and every answer can be changed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lynceus.jobfile.init_template import Answers
from lynceus.jobfile.python_programs import Option, Program, programs_in, text_of

_MOST_PARAMETERS = 4
_MOST_CHOICES = 8
_TARGETS = ("run", "train", "job", "bench", "benchmark")
"""Targets of a Makefile that are the job, the likeliest first."""
_OTHER_TARGETS = ("all", "build")
"""Those that are perhaps the job, where nothing else is."""
_CHORES = re.compile(
    "((dist)?clean|(un)?install|tests?|check|lint|format|docs?|help|venv|setup|dist|deps|deploy|publish|release)([-_].*)?"
)
"""Targets that are no job, whatever else a Makefile has."""
_LIKELY_NAMES = ("job", "main", "train", "run", "app", "cli", "__main__")
"""Names of files that are started, the likeliest first; any other name will do."""
_KNOWN_OPTIONS: Mapping[str, str] = {
    "batch_size": "16, 32, 64, 128",
    "lr": "0.0001, 0.001, 0.01",
    "learning_rate": "0.0001, 0.001, 0.01",
    "workers": "1, 2, 4, 8",
    "num_workers": "0, 2, 4, 8",
    "threads": "1, 2, 4, 8",
    "num_threads": "1, 2, 4, 8",
    "processes": "1, 2, 4, 8",
    "jobs": "1, 2, 4, 8",
    "partitions": "50, 100, 200, 400",
    "chunk_size": "1000, 10000, 100000",
    "precision": "float32, bfloat16",
    "devices": "1, 2, 4",
    "nproc_per_node": "1, 2, 4, 8",
}
"""Options that change the speed or the price of programs, with values to begin with."""
_LEVEL = re.compile(r"(.*_)?(level|compression)")
"""Options that count steps of a scale with an end: twice the usual value may be beyond it."""
_LEVELS: Mapping[str, tuple[int, int]] = {
    **dict.fromkeys(("gzip", "zlib", "bz2"), (1, 9)),
    "lzma": (0, 9),
    "brotli": (0, 11),
    **dict.fromkeys(("zstandard", "zstd", "pyzstd"), (1, 19)),
}
"""The levels of what a program compresses with."""
_SPREAD = 4
"""Values that are proposed of a range."""
_NOT_TUNED = re.compile(
    r"(.*_)?(seed|port|rank|world_size|verbosity|verbose|debug|version|timeout|limit|repeats|rows|samples|year|month|day)"
    r"|(log|save)_.*|(.*_)?(epochs|steps|iterations|iter)|cost|price|time|runtime"
)
"""Options that change what a job does, not how fast or how well it does it."""
_PRICED = ("devices", "nproc_per_node", "workers", "threads", "num_threads", "processes", "jobs")
"""Options that count what is paid for."""


@dataclass(frozen=True)
class Proposal:
    """A job file that fits a folder."""

    found: str
    """What was seen there, in a few words."""
    answers: Answers
    to_replace: tuple[str, ...] = ()
    """Words of the command that stand for what only the user knows, such as INPUT."""


def look(folder: Path) -> Proposal | None:
    """The proposal for a folder; None if nothing there is recognized.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "Makefile").write_text("all: report.pdf\\n\\ntrain:\\n\\tpython train.py\\n")
    ...     print(look(Path(folder)).answers.command)
    make train --jobs ${jobs}
    """
    programs = list(programs_in(folder))
    kinds: tuple[Callable[[Path, list[Program]], Proposal | None], ...] = (
        *(_dbt, _spark, _torch, _makefile, _script),
        partial(_makefile, likely=_OTHER_TARGETS),
        partial(_makefile, likely=()),
    )
    return next((found for kind in kinds if (found := kind(folder, programs)) is not None), None)


def _dbt(folder: Path, programs: list[Program]) -> Proposal | None:
    if not any((folder / name).is_file() for name in ("dbt_project.yml", "dbt_project.yaml")):
        return None
    return Proposal(
        "a dbt project (dbt_project.yml)",
        Answers(_name(folder), "dbt run --threads ${threads}", {"threads": "1, 2, 4, 8, 16"}, "0.05 * threads"),
    )


def _spark(folder: Path, programs: list[Program]) -> Proposal | None:
    program = _first(programs, "pyspark")
    if program is None:
        return None
    command = (
        "spark-submit --num-executors ${executors} --executor-cores ${cores} --executor-memory ${memory_gb}g "
        "--conf spark.sql.shuffle.partitions=${partitions} " + program.path
    )
    space = {"executors": "2, 4, 8, 16", "cores": "2, 4", "memory_gb": "4, 8, 16", "partitions": "50, 200, 800"}
    price = "executors * (0.04 * cores + 0.005 * memory_gb)"
    return Proposal(f"a Spark job ({program.path})", Answers(_name(folder), command, space, price, "1h", "20 USD"))


def _torch(folder: Path, programs: list[Program]) -> Proposal | None:
    program = _first(programs, "torch") or _first(programs, "lightning")
    if program is None:
        return None
    return _with_options(folder, program, "a PyTorch training", "1h", "20 USD")


def _makefile(folder: Path, programs: list[Program], likely: tuple[str, ...] = _TARGETS) -> Proposal | None:
    """A target that is `likely` the job; without such names, the first one that is no chore."""
    file = next((folder / name for name in ("GNUmakefile", "makefile", "Makefile") if (folder / name).is_file()), None)
    targets = re.findall(r"^([\w.-]+)\s*:(?!=)", text_of(file), re.MULTILINE) if file is not None else []
    others = (one for one in targets if "." not in one and not _CHORES.fullmatch(one))
    target = next((one for one in likely if one in targets), None) if likely else next(others, None)
    if file is None or target is None:
        return None
    answers = Answers(_name(folder), f"make {target} --jobs ${{jobs}}", {"jobs": "1, 2, 4, 8"}, "0.05 * jobs")
    return Proposal(f"a {file.name} with the target {target}", answers)


def _script(folder: Path, programs: list[Program]) -> Proposal | None:
    program = _first([one for one in programs if _tunable(one)])
    return None if program is None else _with_options(folder, program, "a Python program", "10m", "1 USD")


def _with_options(folder: Path, program: Program, kind: str, deadline: str, budget: str) -> Proposal:
    """A program with those of its options that are worth tuning; without any, it reads a parameter from its environment."""
    tuned = _tunable(program)
    space = {option.name: values for option, values in tuned.items()} or {"batch_size": _KNOWN_OPTIONS["batch_size"]}
    fixed = [one for one in program.options if one.is_required and one not in tuned]
    words = [text for one in fixed for text in (one.flag, one.name.upper()) if text]
    words += [f"{one.flag} ${{{one.name}}}" if one.flag else f"${{{one.name}}}" for one in tuned]
    counted = next((name for name in _PRICED if name in space), None)
    price = "1.00" if counted is None else f"0.10 + 0.05 * {counted}"
    options = ", ".join(one.flag or one.name for one in tuned)
    to_edit = tuple(one.name for one, values in tuned.items() if "," not in values)
    seen = f"{program.path} with {options}" if tuned else f"{program.path}; let it read LYNCEUS_PARAM_BATCH_SIZE"
    command = " ".join(["python3", program.path, *words])
    return Proposal(
        f"{kind} ({seen})",
        Answers(_name(folder), command, space, price, deadline, budget, to_edit),
        tuple(one.name.upper() for one in fixed),
    )


def _tunable(program: Program) -> dict[Option, str]:
    """The options that are worth tuning with values to begin with, those of known names first."""
    values = {option: text for option in program.options if (text := _values(option, _levels(program)))}
    first = sorted(values, key=lambda option: option.name not in _KNOWN_OPTIONS)[:_MOST_PARAMETERS]
    return {option: values[option] for option in program.options if option in first}


def _levels(program: Program) -> tuple[int, int] | None:
    """The levels of the one thing that a program compresses with; None where that is not known."""
    found = {_LEVELS[one] for one in program.imports if one in _LEVELS}
    return found.pop() if len(found) == 1 else None


def _values(option: Option, levels: tuple[int, int] | None = None) -> str:
    """Values to begin with: choices, a range, or numbers around the default; empty if none are known.

    A level of which nobody says how far it goes keeps its default, and the user is asked for more.

    >>> _values(Option("--chunks", "chunks", "int", 8)), _values(Option("--momentum", "momentum", "float", 0.5))
    ('4, 8, 16, 32', '0.25, 0.5, 1')
    >>> _values(Option("--level", "level", "int", 6), (1, 9)), _values(Option("--level", "level", "int", 6))
    ('1, 4, 6, 9', '6')
    """
    if option.kind == "flag" or _NOT_TUNED.fullmatch(option.name) or not option.name.isidentifier():
        return ""
    if 2 <= len(option.choices) <= _MOST_CHOICES:
        return ", ".join(option.choices)
    if option.name in _KNOWN_OPTIONS:
        return _KNOWN_OPTIONS[option.name]
    default = option.default or 0
    if option.kind == "int" and _LEVEL.fullmatch(option.name):
        limits = option.limits or levels
        return _spread(limits, option.default) if limits else "" if option.default is None else str(int(default))
    if option.kind == "int" and default >= 1:
        least, most = option.limits or (1, math.inf)
        around = [max(int(default) // 2, 1), *(int(default) * k for k in (1, 2, 4))]
        return ", ".join(str(value) for value in dict.fromkeys(around) if least <= value <= most)
    return (
        ", ".join(f"{default * factor:g}" for factor in (0.5, 1, 2)) if option.kind == "float" and default > 0 else ""
    )


def _spread(limits: tuple[int, int], default: float | None) -> str:
    """Both ends of a range, what lies evenly between, and the default in the place of its nearest neighbour there."""
    least, most = limits
    places = min(_SPREAD, most - least + 1)
    values = [least + round(place * (most - least) / max(places - 1, 1)) for place in range(places)]
    if default is not None and values[0] < default < values[-1]:
        near = min(range(1, places - 1), key=lambda place: abs(values[place] - default))
        values[near] = int(default)
    return ", ".join(map(str, values))


def _first(programs: list[Program], package: str | None = None) -> Program | None:
    """The likeliest program that is started: with options, high up in the tree, with a telling name."""
    users = [one for one in programs if package is None or package in one.imports]
    likely = {f"{name}.py": place for place, name in enumerate(_LIKELY_NAMES)}

    def rank(one: Program) -> tuple[bool, bool, int, int, str]:
        place = likely.get(one.path.rpartition("/")[2], len(likely))
        return not one.is_script, not one.options, one.path.count("/"), place, one.path

    return min(users, key=rank, default=None)


def _name(folder: Path) -> str:
    """The folder's name as the name of a study."""
    return re.sub(r"[^\w.-]+", "-", folder.resolve().name).strip("-.") or "my-job"
