"""Every study of a storage in a line each."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from lynceus.analysis.answer import answer
from lynceus.analysis.documents.json import Document, page_document, to_json
from lynceus.analysis.overview import StudyOverview
from lynceus.analysis.shared_budgets import SharedBudgetUse
from lynceus.library.open_study import open_record
from lynceus.library.overview import overview_or_note
from lynceus.library.study_context import study_context
from lynceus.storage.serialization import DamagedRecordError
from lynceus.storage.sql.budgets import BudgetStore
from lynceus.storage.sql.rows import StudyRecord
from lynceus.storage.sql.storage import Storage
from lynceus.trial.shared_budget import SharedBudget

MOST_PREDICTED = 300
"""Settled trials up to which a model predicts the cost of a baseline that was not measured: the list must stay quick."""


def studies_document(storage: Storage, line: Callable[[StudyRecord], Document] | None = None) -> Document:
    """All studies, newest first. A server gives a `line` that caches `study_line`."""
    budgets = BudgetStore(storage).all()
    lines = [
        (study_line(storage, record) if line is None else line(record)) | budget_uses(record, budgets)
        for record in reversed(storage.studies())
    ]
    return page_document("studies", {"now_s": storage.clock.now(), "storage": storage.shown_url}) | {"studies": lines}


def study_line(storage: Storage, record: StudyRecord) -> Document:
    """The overview of one study as JSON, but for its `budget_uses`; with a note where its problem cannot be restored."""
    line: Document = to_json(_listed_overview(storage, record))
    return line


def budget_uses(record: StudyRecord, budgets: Sequence[SharedBudget]) -> Document:
    """What is used of the budgets that a study shares, as a field of its line: runs of other studies change it, too."""
    return {"shared_budgets": to_json([SharedBudgetUse.of(one) for one in record.payer.draws_on(budgets)])}


def _listed_overview(storage: Storage, record: StudyRecord) -> StudyOverview:
    """The overview of one study, with the predicted saving where the baseline's cost was neither measured nor given."""
    found = overview_or_note(storage, record, budgets=())
    has_baseline = any("baseline" in record.document.get(kind, {}) for kind in ("job", "problem"))
    if found.saving_measured or found.best_value is None or not has_baseline or record.settled > MOST_PREDICTED:
        return found
    try:
        best = answer(study_context(open_record(storage, record)))
    except DamagedRecordError as error:
        return replace(found, note=str(error))
    if best is None:
        return replace(found, saving=math.nan)
    return replace(found, saving=best.saving, saving_interval=best.saving_interval)
