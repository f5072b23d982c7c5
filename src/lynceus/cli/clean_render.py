"""A last filter before the terminal: no control character of rendered text reaches it, only those of Rich itself."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderableType, RenderHook, RenderResult
from rich.measure import Measurement
from rich.segment import Segment

from lynceus.trial.text import clean_text


class Clean:
    """Something to render, without control characters in its text."""

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._renderable, options):
            yield segment if segment.control else Segment(clean_text(segment.text), segment.style)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self._renderable)


class CleanHook(RenderHook):
    """Makes a console print clean text only."""

    def process_renderables(self, renderables: Iterable[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Called by Rich with everything that is printed."""
        return [Clean(one) for one in renderables]
