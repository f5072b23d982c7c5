"""Put data, style and script into one file."""

from __future__ import annotations

import html
import json
from importlib import resources
from typing import Any


def page(title: str, data: Any) -> str:
    """A self-contained HTML page that shows `data` (plain JSON values, see `lynceus.cli.report`).

    >>> "<script>alert" in page("a<b", {"name": "</script><script>alert(1)"})
    False
    """
    here = resources.files(__package__)
    parts = {name: here.joinpath(f"page.{name}").read_text(encoding="utf-8") for name in ("html", "css", "js")}
    return (
        parts["html"]
        .replace("{{title}}", html.escape(title))
        .replace("{{css}}", parts["css"])
        .replace("{{js}}", parts["js"])
        .replace("{{data}}", embedded(data))
    )


def embedded(data: Any) -> str:
    """JSON that cannot end the element it stands in, whatever texts it holds."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
