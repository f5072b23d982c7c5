"""A last filter before the terminal: no control character of rendered text reaches it, only those of Rich itself.

In files and pipes, tables have no frame, and lines end with their text: whatever reads them finds nothing but the cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderableType, RenderHook, RenderResult
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table

from lynceus.trial.text import clean_text


class Clean:
    """Something to render, without control characters in its text."""

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown = self._renderable if console.is_terminal else _plain(self._renderable)
        segments = (
            segment if segment.control else Segment(clean_text(segment.text), segment.style)
            for segment in console.render(shown, options)
        )
        yield from segments if console.is_terminal else _unpadded(segments)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self._renderable)


def _plain(renderable: RenderableType) -> RenderableType:
    """A table without its frame; anything else as it is."""
    if not isinstance(renderable, Table) or renderable.box is None:
        return renderable
    plain = copy(renderable)
    plain.box, plain.show_lines, plain.pad_edge, plain.padding = None, False, False, (0, 2, 0, 0)
    return plain


def _unpadded(segments: Iterable[Segment]) -> Iterator[Segment]:
    """The same lines without spaces at their ends."""
    text = "".join(segment.text for segment in segments if not segment.control)
    yield Segment("\n".join(line.rstrip(" ") for line in text.split("\n")))


class CleanHook(RenderHook):
    """Makes a console print clean text only."""

    def process_renderables(self, renderables: Iterable[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Called by Rich with everything that is printed."""
        return [Clean(one) for one in renderables]
