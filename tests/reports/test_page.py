"""A report is one file, and no text of a study can become markup or script."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lynceus.reports.page import page

TEXTS = st.text(max_size=30) | st.sampled_from(
    ["</script><script>alert(1)</script>", "<!--", "]]>", "&lt;", "\u2028", "{{css}}"]
)


class Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.data: dict[int, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.data[len(self.tags)] = self.data.get(len(self.tags), "") + data


def elements(text: str) -> Elements:
    parsed = Elements()
    parsed.feed(text)
    return parsed


@given(TEXTS, st.dictionaries(TEXTS, TEXTS | st.integers() | st.none(), max_size=4))
def test_any_text_stays_text(title: str, data: dict[str, Any]) -> None:
    empty, full = elements(page("x", {})), elements(page(title, data))
    assert full.tags == empty.tags
    index = full.tags.index("script") + 1
    assert json.loads(full.data[index]) == data


def test_nothing_is_loaded_from_the_network() -> None:
    text = page("x", {})
    addresses = set(re.findall(r"https?://[^\s\"'<>]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}, "only the SVG namespace"
    assert not re.search(r"<(script|link|img|iframe)[^>]+(src|href)=", text)
    assert "default-src 'none'" in text
    assert "innerHTML" not in text
