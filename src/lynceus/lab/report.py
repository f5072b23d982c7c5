"""From traces to a page: summaries, tables, pictures."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lynceus.errors import InputError
from lynceus.lab.experiment import Experiment
from lynceus.lab.figures import draw
from lynceus.lab.page import as_csv, page
from lynceus.lab.store import Store
from lynceus.lab.summary import summarise, worth_showing
from lynceus.replay.tables import data_folder

_FIELDS = (
    *("name", "title", "source", "made", "jobs", "asked", "policies", "variants", "baseline", "also"),
    *("levels", "table", "across", "degraded", "claims", "curves"),
)
"""What every summary has."""


def write_summaries(experiments: Sequence[Experiment], store: Store, folder: Path) -> list[Path]:
    """A JSON and a CSV file per experiment of which anything is known; an older summary of others stays as it is."""
    _ready(folder, "--out")
    written = []
    for experiment in experiments:
        path = folder / f"{experiment.name}.json"
        try:
            summary = summarise(experiment, store)
        except InputError:
            if data_folder() is None and path.is_file():  # without the tables it cannot be made again
                continue
            raise
        if experiment.settings and not summary["table"]:
            continue
        path.write_text(json.dumps(summary, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        if summary["table"]:
            path.with_suffix(".csv").write_text(as_csv(summary), encoding="utf-8")
        written.append(path)
    return written


def write_page(
    folder: Path, target: Path, order: Sequence[str] = (), formats: tuple[str, ...] = ("png", "svg")
) -> Path:
    """The page and its pictures from the summaries in a folder; experiments in the given order, others after them."""
    summaries = read_summaries(folder, order)
    if not summaries:
        raise InputError(
            f"lab: {folder} has no summaries yet; run an experiment first, such as 'lynceus lab run --quick'."
        )
    _ready(target.parent, "--page")
    pictures = {
        summary["name"]: [_from(target.parent, path) for path in draw(summary, folder, formats)]
        for summary in summaries
    }
    target.write_text(page(summaries, pictures), encoding="utf-8")
    return target


def read_summaries(folder: Path, order: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The summaries of a folder that have anything to show."""
    names = {name: place for place, name in enumerate(order)}
    paths = sorted(folder.glob("*.json"), key=lambda path: (names.get(path.stem, len(names)), path.stem))
    return worth_showing([_read(path) for path in paths])


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict) or any(field not in found for field in _FIELDS):
        raise InputError(f"--out: {path} is no summary of the lab; move it elsewhere, or choose another folder.")
    return found


def _from(folder: Path, path: Path) -> str:
    """A path as a page in a folder has to write it."""
    return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()


def _ready(folder: Path, option: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{option}: {folder} cannot be made: {error.strerror}; choose another folder.") from None
