"""What models say about a study. Slower than its facts, so it is a document of its own."""

from __future__ import annotations

from lynceus.analysis.answer import answer
from lynceus.analysis.calibration import calibration
from lynceus.analysis.documents.json import Document, page_document, to_json
from lynceus.analysis.explanation import explain
from lynceus.analysis.study_context import StudyContext


def insight_document(context: StudyContext, most: int = 5) -> Document:
    """The answer, the next trial with its rivals (at most `most`), and the importance of parameters."""
    return page_document("insight", {**to_json(explain(context, most)), "answer": answer(context)})


def explanation_document(context: StudyContext, most: int = 5) -> Document:
    """`lynceus explain -o json`, also of the API: an `Explanation`, and a `Calibration` of all predictions."""
    study = context.study
    seen = calibration(study.problem, study.observations)
    document: Document = to_json(explain(context, most)) | {"calibration": to_json(seen)}
    return document
