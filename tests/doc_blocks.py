"""Blocks of a Markdown page, as a reader would use them: files to save, commands to type, output to compare."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ANYTHING = "…"
_NUMBER = r"\d[\d.,]*(?:e[-+]?\d+)?"
_UNIT = r"(?:ms|[smhd])"
_DURATION = re.compile(rf"{_NUMBER}{_UNIT}(?:\d+{_UNIT})*(?![\w])")
_VALUE = re.compile(rf"{_DURATION.pattern}|{_NUMBER}|{ANYTHING}")


@dataclass(frozen=True)
class Block:
    """A block of code on a page."""

    line: int
    language: str
    text: str


@dataclass(frozen=True)
class Step:
    """Something that a reader does: type a command, or save a file."""

    line: int
    command: str = ""
    shown: str | None = None
    """What the page shows as the output of the command; None if it shows none."""
    file: str = ""
    text: str = ""


def blocks(page: Path) -> list[Block]:
    """All blocks of a page, fenced or indented."""
    found: list[Block] = []
    lines = page.read_text(encoding="utf-8").splitlines()
    at = 0
    while at < len(lines):
        if fence := re.match(r"```(\w*)", lines[at]):
            end = lines.index("```", at + 1)
            found.append(Block(at + 1, fence[1], "\n".join(lines[at + 1 : end]) + "\n"))
            at = end
        elif lines[at].startswith("    ") and not lines[at - 1].strip():
            found.append(Block(at + 1, "indented", lines[at]))
        at += 1
    return found


def steps(page: Path) -> list[Step]:
    """What a reader does who follows a page from its first block to its last."""
    found: list[Step] = []
    for block in blocks(page):
        where = f"{page.name}:{block.line}"
        if block.language == "sh":
            found += [
                Step(block.line + 1 + at, line) for at, line in enumerate(block.text.splitlines()) if line.strip()
            ]
        elif block.language == "console":
            found += _console(block)
        elif block.language == "yaml":
            name = re.match(r"# (\S+\.yaml)\n", block.text)
            assert name, f"{where}: the first line of a YAML block names its file, like '# job.yaml'"
            found.append(Step(block.line, file=name[1], text=block.text))
        elif program := re.match(r"# (\S+\.py)\n", block.text):
            found.append(Step(block.line, file=program[1], text=block.text))
        elif block.language == "python":
            session = f"block-{block.line}.txt"
            found.append(Step(block.line, file=session, text=block.text))
            found.append(Step(block.line, f"python -m doctest {session}"))
        else:
            raise AssertionError(
                f"{where}: a block of '{block.language}' cannot be run; use sh, console, yaml or python"
            )
    return found


def _console(block: Block) -> list[Step]:
    """`$ command`, then the lines that it prints; none: it prints nothing."""
    found = []
    for place, part in enumerate(re.split(r"^\$ ", block.text, flags=re.MULTILINE)):
        if not place:
            assert not part, f"line {block.line}: a console block begins with '$ '"
            continue
        command, _, shown = part.partition("\n")
        found.append(Step(block.line, command, shown))
    return found


def agrees(shown: str, printed: str, *, exactly: bool = False) -> bool:
    """Whether `printed` is what a page shows. Spaces and the lengths of lines in tables do not count; … stands for anything.

    Unless `exactly`, one number stands for any other, and one duration for any other: money and times differ from run to run.

    >>> agrees("cost  $0.05/h × 613ms", "cost   $0.05/h × 1.2s"), agrees("cost  $0.05", "price $0.05")
    (True, False)
    >>> agrees("27 configurations", "26 configurations", exactly=True), agrees("a\\n…\\nc", "a\\nb\\nb\\nc")
    (False, True)
    """
    pattern = "".join(_pattern(word, exactly=exactly) for word in re.split(rf"({_VALUE.pattern})", plain(shown)))
    return re.fullmatch(pattern, plain(printed), flags=re.DOTALL) is not None


def _pattern(word: str, *, exactly: bool) -> str:
    if word == ANYTHING:
        return ".*"
    if exactly or not _VALUE.fullmatch(word):
        return re.escape(word)
    return _DURATION.pattern if _DURATION.fullmatch(word) else _NUMBER


def plain(text: str) -> str:
    """Text without colours, cursor movements, runs of spaces and lengths of lines in tables."""
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b\][^\x07]*\x07", "", text.replace("\r\n", "\n"))
    text = re.sub(r"([━─])\1*", r"\1", text)
    return "\n".join(line for line in (" ".join(line.split()) for line in text.splitlines()) if line)
