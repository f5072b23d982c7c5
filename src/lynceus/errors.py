"""The errors of Lynceus, as one tree.

    LynceusError
     ├── InputError            a mistake in what the user gave: a file, a field, an argument   (exit code 2)
     ├── MissingExtraError     an optional package is needed and not installed                 (exit code 2)
     └── InfrastructureError   a machine, an executor or a database did not do its part        (exit code 4)
          └── StorageOutageError    a database server does not answer, and may again

Every message is one sentence: what was given, what was expected, what to do. Where a page of the documentation says more, `see` names
it, and the command line and the API show it after the sentence.
"""

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from lynceus.version import DISTRIBUTION

_DOCS = Path(__file__).parents[2] / "docs"
"""Pages of the documentation, in a copy of the project."""


class LynceusError(Exception):
    """Any error that Lynceus raises on purpose."""

    see: str | None = None
    """The page of docs/ that explains it, perhaps with a section: `job-file.md#savings`; None for none."""


@contextmanager
def explained_in(page: str) -> Iterator[None]:
    """Let errors that are raised inside name a page of docs/, unless they name one already.

    >>> with explained_in("replay.md#your-own-table"):
    ...     raise InputError("the table is empty.")
    Traceback (most recent call last):
        ...
    lynceus.errors.InputError: the table is empty.
    """
    try:
        yield
    except LynceusError as error:
        if error.see is None:
            error.see = page
        raise


def page_address(page: str) -> str:
    """Where a page is read: on the site whose address is in LYNCEUS_DOCS, or among the files of the project, where these are here.

    >>> page_address("job-file.md#savings")
    'docs/job-file.md#savings'
    """
    site = os.environ.get("LYNCEUS_DOCS", "").rstrip("/")
    if site:
        return f"{site}/{page.replace('.md', '.html', 1)}"
    if (_DOCS / page.partition("#")[0]).exists():
        return f"docs/{page}"
    return f"{page.replace('.md', '', 1)} in the documentation"  # of a wheel, which has no pages


class InputError(LynceusError):
    """The user gave something that cannot be used; the message names the place and the fix."""


def expect(value: object, kinds: type | tuple[type, ...], name: str, wanted: str) -> None:
    """Refuse an argument of another type than `kinds`.

    >>> expect("x", int, "seed", "a whole number such as 7")
    Traceback (most recent call last):
        ...
    lynceus.errors.InputError: seed is 'x', but a whole number such as 7 is needed.
    """
    if not isinstance(value, kinds):
        raise InputError(f"{name} is {repr(value)[:60]}, but {wanted} is needed.")


class MissingExtraError(LynceusError):
    """A feature needs an optional package.

    >>> raise MissingExtraError("Parquet tables", "parquet")
    Traceback (most recent call last):
        ...
    lynceus.errors.MissingExtraError: Parquet tables need an optional package: pip install 'lynceus-opt[parquet]'
    """

    def __init__(self, feature: str, extra: str) -> None:
        # No full stop: the command is the end of the line, to be copied.
        super().__init__(f"{feature} need an optional package: pip install '{distribution_name()}[{extra}]'")


def distribution_name() -> str:
    """The name under which Lynceus is installed, by which its extras are installed, too."""
    from importlib.metadata import packages_distributions  # reads every installed package, and only errors need it

    # Another project on PyPI is called lynceus and installs the same package; its extras are not ours.
    names = packages_distributions().get(__name__.partition(".")[0], ())
    return next((name for name in names if name != "lynceus"), DISTRIBUTION)


class OverrunWarning(UserWarning):
    """A trial went beyond its timeout, or was charged more than was reserved for it; all of it counts."""


class NetworkStorageWarning(UserWarning):
    """A SQLite file lies on a network file system, where its locks may fail."""


class InfrastructureError(LynceusError):
    """Something outside Lynceus failed: a machine, a job queue, a database."""


class StorageOutageError(InfrastructureError):
    """A database server cannot be reached. What was written is safe, and the same call may succeed later."""

    see = "durability.md#when-something-does-not-answer"


def shown(value: object) -> str:
    """`value` as it appears in a message: quoted text, true or false as in YAML, at most 60 characters.

    >>> shown("large"), shown(True), shown([1, 2])
    ("'large'", 'true', 'a list')
    """
    if value is None:
        return "no value"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, int) and abs(value) > 10**30:
        return "an enormous integer"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def did_you_mean(value: object, known: Iterable[object]) -> str:
    """A sentence to append to a message: ` Did you mean ...?`, or empty when no known value is similar.

    >>> did_you_mean("workes", ["workers", "nodes"])
    " Did you mean 'workers'?"
    >>> did_you_mean(7, [4, 8, 16]), did_you_mean(2, [1, 3])
    (' The nearest is 8.', ' The nearest are 1 and 3.')
    """
    candidates = list(known)
    numbers = [candidate for candidate in candidates if isinstance(candidate, int | float)]
    if isinstance(value, int | float) and not isinstance(value, bool) and len(numbers) == len(candidates) and numbers:
        distance = min(abs(number - value) for number in numbers)
        nearest = sorted({number for number in numbers if abs(number - value) == distance})
        return f" The nearest {'is' if len(nearest) == 1 else 'are'} {' and '.join(map(shown, nearest))}."
    words = {str(candidate): candidate for candidate in candidates}
    close = difflib.get_close_matches(str(value)[:200], words, n=1, cutoff=0.6)
    return f" Did you mean {shown(words[close[0]])}?" if close else ""


def hint(word: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the most similar known name, or all of them.

    >>> hint("stepp", ["step", "low"]), hint("x", ["step", "low"])
    ("; did you mean 'step'?", '; known are step, low.')
    """
    words = list(dict.fromkeys(known))
    close = did_you_mean(word, words)
    if close:
        return f"; {close[1].lower()}{close[2:]}"
    return f"; known are {', '.join(words)}." if words else "."


def counted(count: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "run"), counted(2, "run")
    ('1 run', '2 runs')
    """
    return f"{count:,} {noun}{'s' * (count != 1)}"
