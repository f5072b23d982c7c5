"""From traces to summaries, and from summaries to pages and figures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lynceus.errors import InputError
from lynceus.replay.tables import data_folder
from lynceus_lab.changes_page import Edition, changes_page
from lynceus_lab.experiment import Experiment
from lynceus_lab.experiment_page import as_csv, experiment_page
from lynceus_lab.figures import draw
from lynceus_lab.results_page import beyond_page, results_page
from lynceus_lab.summary import summarise, worth_showing
from lynceus_lab.summary_merge import merged, retold, settled
from lynceus_lab.trace_store import Store

_FIELDS = (
    *("name", "title", "source", "made", "jobs", "asked", "policies", "variants", "baseline", "also"),
    *("levels", "table", "across", "degraded", "claims", "curves"),
)
"""The fields of every summary."""


def write_summaries(experiments: Sequence[Experiment], store: Store, folder: Path) -> list[Path]:
    """A JSON and a CSV file per experiment that was run; an older summary of the others stays, with the texts of the experiment's file, and
    so does what it has of more seeds."""
    make_folder(folder, "--summaries")
    written = []
    for experiment in experiments:
        path = folder / f"{experiment.name}.json"
        try:
            summary = summarise(experiment, store)
        except InputError:
            if data_folder() is None and path.is_file():  # the summary needs the tables, and they are not here
                continue
            raise
        stored = _read(path) if path.is_file() else None
        if experiment.settings and not summary["table"]:
            if stored is not None:
                path.write_text(as_json(settled(retold(stored, summary))), encoding="utf-8")
            continue
        summary = settled(merged(summary, stored))
        path.write_text(as_json(summary), encoding="utf-8")
        if summary["table"]:
            path.with_suffix(".csv").write_text(as_csv(summary), encoding="utf-8")
        written.append(path)
    return written


def as_json(summary: dict[str, Any]) -> str:
    """A summary as compact JSON, one line per field."""
    fields = (
        f"{json.dumps(name)}:{json.dumps(value, ensure_ascii=False, separators=(',', ':'))}"
        for name, value in summary.items()
    )
    return "{\n" + ",\n".join(fields) + "\n}\n"


def write_pages(
    summaries: Sequence[dict[str, Any]],
    folder: Path,
    overview: Path,
    formats: tuple[str, ...] = ("png", "svg"),
    *,
    edition: Edition | None = None,
) -> None:
    """The overview of the papers' claims, beside it what goes beyond them and what changed since the last edition, and in `folder` one page
    per experiment with its figures."""
    make_folder(folder, "--out")
    make_folder(overview.parent, "--page")
    for summary in summaries:
        figures = [path.name for path in draw(summary, folder, formats)]
        (folder / f"{summary['name']}.md").write_text(experiment_page(summary, figures), encoding="utf-8")
    overview.write_text(results_page(summaries), encoding="utf-8")
    overview.with_name(f"{overview.stem}-beyond.md").write_text(beyond_page(summaries), encoding="utf-8")
    if edition:
        page = changes_page(summaries, edition)
        overview.with_name(f"{overview.stem}-changes.md").write_text(page, encoding="utf-8")


def read_summaries(folder: Path, order: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The summaries of a folder with anything to show; experiments in the given order, others after them."""
    names = {name: place for place, name in enumerate(order)}
    paths = sorted(folder.glob("*.json"), key=lambda path: (names.get(path.stem, len(names)), path.stem))
    summaries = worth_showing([_read(path) for path in paths])
    if not summaries:
        raise InputError(
            f"lab: {folder} has no summaries yet; run an experiment first, such as 'lynceus lab run --quick'."
        )
    return summaries


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict) or any(field not in found for field in _FIELDS):
        raise InputError(
            f"--summaries: {path} is not a summary of the lab; move it elsewhere, or choose another folder."
        )
    return found


def make_folder(folder: Path, option: str) -> None:
    """Create a folder that an option names."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{option}: {folder} cannot be created: {error.strerror}; choose another folder.") from None
