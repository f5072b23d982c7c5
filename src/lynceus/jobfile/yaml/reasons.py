"""Why a text is not YAML, in words of the text: the parser speaks of tokens and scalars."""

from __future__ import annotations

import re

import yaml

_NO_COLON = re.compile(r"\s*([\w.-]+)\s+[\[{\"'].*")
_BAD_INDENTATION = ("expected <block end>, but found '<block", "expected <block end>, but found '-'")
"""What the parser reports for a line with inconsistent indentation."""
_NOT_CLOSED = re.compile(r"expected ',' or '([]}])', but got '(.*)'")
_UNEXPECTED = re.compile(r"expected (?:<block end>|the node content), but found '(.*)'")
_NO_START = re.compile(r"found character '(.)' that cannot start any token")


def reason(error: yaml.MarkedYAMLError, text: str) -> tuple[int | None, str]:
    """The line where the mistake is, from 1, and what it is; None where the parser names no line.

    >>> text = "run: [a, b\\nspace: {n: [1]}"
    >>> try:
    ...     yaml.safe_load(text)
    ... except yaml.MarkedYAMLError as error:
    ...     print(reason(error, text))
    (2, "the list that begins with '[' on line 1 needs a ',' or ']' before ':'")
    """
    mark = error.problem_mark or error.context_mark
    lines = text.splitlines()
    if mark is None:
        return None, str(error.problem or error.context or "it cannot be parsed").rstrip(".")
    line = "".join(lines[mark.line : mark.line + 1])
    if "\t" in line:
        return mark.line + 1, "a tab is used for indentation; indent with spaces"
    before = "" if mark.line == 0 else lines[mark.line - 1]
    begun = mark if error.context_mark is None else error.context_mark
    opening = "".join(lines[begun.line : begun.line + 1])
    problem = str(error.problem or error.context or "it cannot be parsed").rstrip(".")
    if problem == "could not find expected ':'":
        field = opening[begun.column :].strip()[:60]
        return begun.line + 1, f"the line has no colon; write '{field}: …'"
    if problem == "found unexpected end of stream" and opening[begun.column :][:1] in ("'", '"'):
        return (
            begun.line + 1,
            f"the quotation mark {opening[begun.column]} before {_word(opening, begun.column + 1)} is not closed",
        )
    return mark.line + 1, _at_line(problem, line, before, mark.column, begun, opening)


def _at_line(problem: str, line: str, before: str, column: int, begun: yaml.Mark, opening: str) -> str:
    """The mistake in a line; `begun` is where the value began that it is in."""
    if problem == "mapping values are not allowed here" and ": " in line[:column]:
        return "a string that contains ': ' looks like a field; put quotes around it"
    field = _NO_COLON.fullmatch(before.split(" #")[0])
    if problem == "mapping values are not allowed here" and field is not None:
        return f"the line before has no colon; write '{field[1]}: …'"
    if problem == "mapping values are not allowed here" or problem.startswith(_BAD_INDENTATION):
        return "the indentation differs from the lines before; align all fields of a section"
    if (found := _NOT_CLOSED.fullmatch(problem)) is not None:
        what, bracket = ("list", "[") if found[1] == "]" else ("mapping", "{")
        return (
            f"the {what} that begins with '{bracket}' on line {begun.line + 1} needs a ',' or '{found[1]}' before "
            f"{_found(found[2], line, column)}"
        )
    if (found := _UNEXPECTED.fullmatch(problem)) is not None:
        if found[1] in ("]", "}"):
            return f"{found[1]!r} closes nothing; remove it, or put quotes around the value"
        return f"{_found(found[1], line, column)} follows a value that has ended; put quotes around the whole value"
    if problem == "sequence entries are not allowed here":
        return "a list with '- ' begins on a line of its own; or write [a, b]"
    if (found := _NO_START.fullmatch(problem)) is not None:
        return f"a value cannot begin with {found[1]}; put quotes around it"
    if problem.startswith("found undefined alias"):
        return "a value that begins with * names another one; put quotes around it"
    if problem.startswith(("expected chomping", "expected a comment or a line break")):
        return "a value that begins with | or > continues on the next line; put quotes around it"
    if "another document" in problem:
        return "'---' begins a second document; keep one in a file"
    return problem


def _found(token: str, line: str, column: int) -> str:
    """What the parser met, as it stands in the text."""
    if token == "<stream end>":
        return "the end of the file"
    return _word(line, column) if token.startswith("<") else repr(token)


def _word(line: str, column: int) -> str:
    """The text from a column on, up to a space, at most 40 characters."""
    rest = line[column:].strip()
    return repr(rest.split(" ")[0][:40]) if rest else "the end of the line"
