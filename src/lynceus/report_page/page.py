"""The live page of a study as one file: its style, its scripts and its documents inside."""

from __future__ import annotations

import html
import importlib.metadata
import json
import time
from importlib import resources
from typing import Any

from lynceus.report_page.bundle import bundled
from lynceus.view import Document, Subject, insight_view, study_view


def page(title: str, data: Any) -> str:
    """A self-contained HTML page that shows `data`, see `report_documents`.

    >>> "<script>alert" in page("a<b", {"name": "</script><script>alert(1)"})
    False
    """
    static = resources.files("lynceus").joinpath("web", "static")
    frame = resources.files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    parts = {
        "title": html.escape(title),
        "css": static.joinpath("style.css").read_text(encoding="utf-8"),
        "js": bundled("pages/report.js", lambda path: static.joinpath(path).read_text(encoding="utf-8")),
        "data": embedded(data),
    }
    # Split once, so that nothing inside a part is taken for a place of another one.
    pieces = frame.split("{{")
    return pieces[0] + "".join(
        parts[name] + rest for name, rest in (piece.split("}}", maxsplit=1) for piece in pieces[1:])
    )


def report_documents(subject: Subject) -> Document:
    """What the page shows: the documents of the live page, and when they were written."""
    return {
        "study": study_view(subject),
        "insight": insight_view(subject),
        "version": importlib.metadata.version("lynceus"),
        "written": time.strftime("%Y-%m-%d %H:%M"),
    }


def embedded(data: Any) -> str:
    """JSON that cannot end the element it stands in, whatever texts it holds."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
