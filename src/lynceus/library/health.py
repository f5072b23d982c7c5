"""What `lynceus doctor` looks at: what is installed, what is missing, and what that means. Nothing is changed."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from lynceus.errors import LynceusError
from lynceus.executors.registry import executor_plugins
from lynceus.storage.sql.address import parse_address, shown_address
from lynceus.storage.sql.file_system import network_file_system, network_warning
from lynceus.storage.sql.storage import Storage
from lynceus.version import DISTRIBUTION, __version__

OLDEST = (3, 11)
NEWEST = (3, 13)
"""The oldest Python that works, and the newest with which the tests run."""
_FULL_BYTES = 10**9
_FEATURES: Mapping[str, str] = MappingProxyType(
    {
        "web": "dashboard and HTTP API",
        "notify": "messages through apprise",
        "postgres": "studies in PostgreSQL",
        "pandas": "trials as a data frame",
        "plot": "plots of studies, the picture of the demo",
        "parquet": "Parquet tables and exports",
        "ray": "trials on a Ray cluster",
        "tune": "Lynceus inside Ray Tune",
        "lab": "experiments of the papers",
        "spark": "the Spark example",
        "optuna": "sampler for Optuna, import and export of its studies",
        "kubernetes": "trials as Jobs of Kubernetes",
        "opentelemetry": "traces of trials",
        "mlflow": "trials in MLflow",
        "wandb": "trials in Weights & Biases",
        "airflow": "operators for Airflow",
    }
)
"""Extras that people install; what each of them is for."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    subject: str
    state: Literal["ok", "absent", "problem"]
    """absent: optional, and not installed."""
    detail: str
    advice: str = ""
    """What to do about it; empty if there is nothing to do."""


def examine(storage_url: str) -> list[Finding]:
    """Python, Lynceus itself, its extras, executors, and the storage at `storage_url`."""
    return [*_python(), *_lynceus(), *_extras(), *_executors(), _storage(storage_url)]


def _python() -> Iterator[Finding]:
    version = sys.version_info[:2]
    said = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    if version < OLDEST:
        yield Finding("Python", "problem", said, "install Python 3.11 or newer")
    elif version > NEWEST:
        yield Finding("Python", "ok", f"{said}; tested up to {NEWEST[0]}.{NEWEST[1]}")
    else:
        yield Finding("Python", "ok", said)
    if platform.system() != "Linux":
        yield Finding(
            "system",
            "problem",
            f"{platform.system()} runs searches in Python, replays and the HTTP client; jobs run on Linux only",
            "start `lynceus run` on a Linux machine, or use ask and tell",
        )


def _lynceus() -> Iterator[Finding]:
    from lynceus.models._kernel import compiled as trees
    from lynceus.models.gaussian.packed import compiled as processes

    names = sorted(set(importlib.metadata.packages_distributions().get("lynceus", [])))
    where = Path(__file__).parents[1]
    if "lynceus" in names:
        yield Finding(
            "Lynceus",
            "problem",
            f"the distribution 'lynceus' of PyPI is another project, and its files lie among ours in {where}",
            f"pip uninstall lynceus {DISTRIBUTION}, then: pip install {DISTRIBUTION}",
        )
    else:
        yield Finding("Lynceus", "ok", f"{__version__} ({', '.join(names) or 'not installed, imported'}) in {where}")
    if trees and processes:
        yield Finding("compiled kernels", "ok", "installed")
    else:
        yield Finding(
            "compiled kernels",
            "absent",
            "NumPy does their work: same results, deep look-ahead is slow",
            f"install a wheel, or a C compiler and then: pip install --force-reinstall --no-deps {DISTRIBUTION}",
        )


def _extras() -> Iterator[Finding]:
    """Each extra by the requirements that the installed distribution declares."""
    try:
        requires = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        requires = []
    for extra, feature in _FEATURES.items():
        missing = sorted(name for name in _needed(extra, requires) if not _installed(name))
        if missing:
            fix = f"pip install '{DISTRIBUTION}[{extra}]'"
            yield Finding(f"extra {extra}", "absent", f"{feature}: {', '.join(missing)} not installed", fix)
        else:
            yield Finding(f"extra {extra}", "ok", feature)


def _needed(extra: str, requires: list[str]) -> set[str]:
    """Distributions that an extra names, also through other extras.

    >>> sorted(_needed("lab", ["own[plot]; extra == 'lab'", "matplotlib>=3; extra == 'plot'", "numpy"]))
    ['matplotlib']
    """
    found: set[str] = set()
    for line in requires:
        if not re.search(rf"""extra\s*==\s*['"]{extra}['"]""", line):
            continue
        name, _, others = re.split(r"[<>=!~;\s]", line, maxsplit=1)[0].partition("[")
        if others and name.replace("_", "-").lower() in (DISTRIBUTION, "own"):
            for other in others.rstrip("]").split(","):
                found |= _needed(other.strip(), requires)
        else:
            found.add(name)
    return found


def _installed(distribution: str) -> bool:
    try:
        importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _executors() -> Iterator[Finding]:
    for one in executor_plugins():
        if one.problem:
            yield Finding(f"executor {one.name}", "absent", one.problem)
        elif one.not_found:
            yield Finding(f"executor {one.name}", "absent", one.about, one.not_found)
        else:
            yield Finding(f"executor {one.name}", "ok", one.about)


def _storage(url: str) -> Finding:
    shown = shown_address(url)
    try:
        address = parse_address(url)
        file = None if address.file is None else Path(address.file)
        if file is not None and not file.exists():
            return _place(shown, file, f"{shown}: none yet; the first study makes it")
        with Storage(url, create=False) as storage:
            studies = len(storage.studies())
    except LynceusError as error:
        return Finding("storage", "problem", str(error))
    counted = f"{shown}: {studies} {'study' if studies == 1 else 'studies'}"
    return Finding("storage", "ok", counted) if file is None else _place(shown, file, counted)


def _place(shown: str, file: Path, detail: str) -> Finding:
    """A SQLite file is only as good as the disk on which it lies."""
    network = network_file_system(file)
    if network is not None:
        return Finding("storage", "problem", network_warning(shown, network))
    folder = file.absolute().parent
    if folder.is_dir() and (free := shutil.disk_usage(folder).free) < _FULL_BYTES:
        return Finding("storage", "problem", f"{detail}; only {free / 1e6:.0f} MB are free there", "free some space")
    return Finding("storage", "ok", detail)
