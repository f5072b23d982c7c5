"""From traces to a page: summaries, tables, pictures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lynceus.errors import InputError
from lynceus.lab.experiment import Experiment
from lynceus.lab.figures import draw
from lynceus.lab.page import as_csv, page
from lynceus.lab.store import Store
from lynceus.lab.summary import summarise, worth_showing


def write_summaries(experiments: Sequence[Experiment], store: Store, folder: Path) -> list[Path]:
    """A JSON and a CSV file per experiment of which anything is known; an older summary of others stays as it is."""
    _ready(folder)
    written = []
    for experiment in experiments:
        summary = summarise(experiment, store)
        if not (summary["table"] or not experiment.settings):
            continue
        path = folder / f"{experiment.name}.json"
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
    pictures = {
        summary["name"]: [path.relative_to(target.parent).as_posix() for path in draw(summary, folder, formats)]
        for summary in summaries
    }
    target.write_text(page(summaries, pictures), encoding="utf-8")
    return target


def read_summaries(folder: Path, order: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The summaries of a folder that have anything to show."""
    names = {name: place for place, name in enumerate(order)}
    paths = sorted(folder.glob("*.json"), key=lambda path: (names.get(path.stem, len(names)), path.stem))
    return worth_showing([json.loads(path.read_text(encoding="utf-8")) for path in paths])


def _ready(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out: {folder} cannot be made: {error.strerror}; choose another folder.") from None
