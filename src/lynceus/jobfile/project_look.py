"""What kind of project lies in a folder, and which job file fits it: Spark, PyTorch, dbt, a Makefile, or a Python program with options.

Files are read, never run. What is proposed is a start: `lynceus init` shows it, and every answer can be changed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lynceus.jobfile.init_template import Answers

_MOST_FILES = 200
_MOST_BYTES = 1_000_000
_SKIPPED = frozenset({"node_modules", "site-packages", "build", "dist", "venv", "env", "__pycache__", "tests", "test"})
_TARGETS = ("run", "train", "job", "bench", "benchmark", "all", "build")
"""Targets of a Makefile that may be the job, the likeliest first."""
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
_PRICED = ("devices", "nproc_per_node", "workers", "threads", "num_threads", "processes", "jobs")
"""Options that count what is paid for."""


@dataclass(frozen=True)
class Proposal:
    """A job file that fits a folder."""

    found: str
    """What was seen there, in a few words."""
    answers: Answers


@dataclass(frozen=True)
class _Program:
    """A Python file: what it imports, and its command-line options."""

    path: str
    imports: frozenset[str]
    options: tuple[str, ...]
    is_script: bool


def look(folder: Path) -> Proposal | None:
    """The proposal for a folder; None if nothing there is recognized.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "Makefile").write_text("all: report.pdf\\n\\ntrain:\\n\\tpython train.py\\n")
    ...     print(look(Path(folder)).answers.command)
    make train --jobs ${jobs}
    """
    programs = list(_programs(folder))
    kinds: tuple[Callable[[Path, list[_Program]], Proposal | None], ...] = (_dbt, _spark, _torch, _makefile, _script)
    return next((found for kind in kinds if (found := kind(folder, programs)) is not None), None)


def _dbt(folder: Path, programs: list[_Program]) -> Proposal | None:
    if not any((folder / name).is_file() for name in ("dbt_project.yml", "dbt_project.yaml")):
        return None
    return Proposal(
        "a dbt project (dbt_project.yml)",
        Answers(_name(folder), "dbt run --threads ${threads}", {"threads": "1, 2, 4, 8, 16"}, "0.05 * threads"),
    )


def _spark(folder: Path, programs: list[_Program]) -> Proposal | None:
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


def _torch(folder: Path, programs: list[_Program]) -> Proposal | None:
    program = _first(programs, "torch") or _first(programs, "lightning")
    if program is None:
        return None
    return _with_options(folder, program, "a PyTorch training", "1h", "20 USD")


def _makefile(folder: Path, programs: list[_Program]) -> Proposal | None:
    file = next((folder / name for name in ("GNUmakefile", "makefile", "Makefile") if (folder / name).is_file()), None)
    targets = re.findall(r"^([\w.-]+)\s*:(?!=)", _text(file), re.MULTILINE) if file is not None else []
    target = next((one for one in _TARGETS if one in targets), None)
    if file is None or target is None:
        return None
    answers = Answers(_name(folder), f"make {target} --jobs ${{jobs}}", {"jobs": "1, 2, 4, 8"}, "0.05 * jobs")
    return Proposal(f"a {file.name} with the target {target}", answers)


def _script(folder: Path, programs: list[_Program]) -> Proposal | None:
    known = [one for one in programs if one.is_script and _tunable(one)]
    return _with_options(folder, known[0], "a Python program", "10m", "1 USD") if known else None


def _with_options(folder: Path, program: _Program, kind: str, deadline: str, budget: str) -> Proposal:
    """A program with those of its options that are worth tuning; without any, its environment has them."""
    options = _tunable(program) or {"--batch-size": "batch_size"}
    space = {name: _KNOWN_OPTIONS[name] for name in options.values()}
    command = " ".join(["python3", program.path, *(f"{option} ${{{name}}}" for option, name in options.items())])
    counted = next((name for name in _PRICED if name in space), None)
    price = "1.00" if counted is None else f"0.10 + 0.05 * {counted}"
    seen = f"{kind} ({program.path}{' with ' + ', '.join(_tunable(program)) if _tunable(program) else ''})"
    return Proposal(seen, Answers(_name(folder), command, space, price, deadline, budget))


def _tunable(program: _Program) -> dict[str, str]:
    """Options that are known to matter: as written, and as the name of a parameter; at most four."""
    named = {option: option.lstrip("-").replace("-", "_") for option in program.options}
    return dict([one for one in named.items() if one[1] in _KNOWN_OPTIONS][:4])


def _first(programs: list[_Program], package: str) -> _Program | None:
    """The likeliest entry point that imports a package: a script, with options, high up in the tree."""
    users = [one for one in programs if package in one.imports]
    return min(users, key=lambda one: (not one.is_script, not one.options, one.path.count("/"), one.path), default=None)


def _programs(folder: Path) -> Iterator[_Program]:
    files = (file for pattern in ("*.py", "*/*.py", "*/*/*.py") for file in sorted(folder.glob(pattern)))
    shown = (file for file in files if not _SKIPPED & set(file.relative_to(folder).parts) and file.is_file())
    for _, file in zip(range(_MOST_FILES), shown, strict=False):
        if any(part.startswith(".") for part in file.relative_to(folder).parts):
            continue
        try:
            tree = ast.parse(_text(file))
        except (SyntaxError, ValueError, RecursionError):
            continue
        yield _program(file.relative_to(folder).as_posix(), tree)


def _program(path: str, tree: ast.Module) -> _Program:
    imports: set[str] = set()
    options: list[str] = []
    is_script = False
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            imports.add((node.module or "").partition(".")[0])
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", None) in ("add_argument", "option"):
            given = [one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            options += [text for text in given if text.startswith("--")][:1]
        elif isinstance(node, ast.Compare) and isinstance(node.left, ast.Name):
            is_script = is_script or node.left.id == "__name__"
    return _Program(path, frozenset(imports), tuple(options), is_script)


def _text(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(_MOST_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return ""


def _name(folder: Path) -> str:
    """The folder's name as the name of a study."""
    return re.sub(r"[^\w.-]+", "-", folder.resolve().name).strip("-.") or "my-job"
