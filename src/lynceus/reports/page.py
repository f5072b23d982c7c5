"""A report: the page of a study as one HTML file with its styles, scripts and documents."""

from __future__ import annotations

import html
import json
import time
from importlib import resources
from typing import Any

from lynceus.analysis.documents.insight import insight_document
from lynceus.analysis.documents.json import Document
from lynceus.analysis.documents.study import study_document
from lynceus.analysis.study_context import StudyContext
from lynceus.reports.bundle import bundled
from lynceus.trial.text import clean_line, escaped_text
from lynceus.version import __version__


def page(title: str, data: Any) -> str:
    """A self-contained HTML page of `data`, see `report_documents`.

    >>> "<script>alert" in page("a<b", {"name": "</script><script>alert(1)"})
    False
    """
    static = resources.files("lynceus").joinpath("server", "static")
    frame = resources.files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    parts = {
        "title": html.escape(clean_line(title)),
        "css": static.joinpath("style.css").read_text(encoding="utf-8"),
        "js": bundled("pages/report.js", lambda path: static.joinpath(path).read_text(encoding="utf-8")),
        "data": embedded(data),
    }
    # Split the frame once, so that no text inside a part is taken for a placeholder.
    pieces = frame.split("{{")
    return pieces[0] + "".join(
        parts[name] + rest for name, rest in (piece.split("}}", maxsplit=1) for piece in pieces[1:])
    )


def report_documents(context: StudyContext) -> Document:
    """The data of the page: the documents of the live page, and when they were written."""
    return {
        "study": study_document(context),
        "insight": insight_document(context),
        "version": __version__,
        "written": time.strftime("%Y-%m-%d %H:%M"),
    }


def embedded(data: Any) -> str:
    """JSON that cannot end its script element, whatever texts it has."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return escaped_text(text)
