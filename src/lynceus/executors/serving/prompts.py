"""The prompts of a load: lines of a file, or random words of a given length."""

from __future__ import annotations

import json
import random

from lynceus.executors.serving.errors import MeasurementError

_TEXT = """
the of and to in is that for it as was with be by on not he his but at are this have from or had an they which one you were her all she
there would their we him been has when who will more no if out so said what up its about into than them can only other
"""
_WORDS = _TEXT.split()
"""Short common words, each a single token for most tokenizers."""


class Prompts:
    """A prompt at a time, in an order that the seed determines."""

    def __init__(self, path: str, tokens: int, seed: int) -> None:
        self._random, self._tokens = random.Random(f"prompts {seed}"), tokens
        self._lines = _lines(path) if path else []

    def next(self) -> str:
        """A random line of the file; or random words, so that no two prompts share more of their beginning than by chance."""
        if self._lines:
            return self._random.choice(self._lines)
        return " ".join(self._random.choice(_WORDS) for _ in range(self._tokens))


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8") as file:
            found = [_prompt(line.strip()) for line in file if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise MeasurementError(f"the file of prompts {path!r} cannot be read: {error}") from None
    if not found:
        raise MeasurementError(f"the file of prompts {path!r} is empty")
    return found


def _prompt(line: str) -> str:
    """A line of text, or the field `prompt` of a JSON object."""
    if line.startswith("{"):
        try:
            found = json.loads(line)["prompt"]
        except (ValueError, KeyError):
            return line
        return found if isinstance(found, str) else line
    return line
