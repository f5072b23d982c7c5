"""SQLite databases in a working directory that are in use, and so must be neither copied nor opened."""

from collections.abc import Iterable

_SUFFIXES = ("-wal", "-shm", "-journal")
"""Files that SQLite keeps beside a database while a process has it open."""


def open_databases(names: Iterable[str]) -> set[str]:
    """The names within one folder that belong to SQLite databases in use.

    A copy could be inconsistent. Worse, the storage of this very process may be among them: when a process closes any descriptor of a
    file, POSIX drops all its locks on that file. After we read our storage, other processes would take it for unused and delete its log.

    >>> sorted(open_databases(["a.csv", "lynceus.db", "lynceus.db-shm", "lynceus.db-wal", "x-wal"]))
    ['lynceus.db', 'lynceus.db-shm', 'lynceus.db-wal']
    """
    present = set(names)
    used = {name.removesuffix(end) for name in present for end in _SUFFIXES if name.endswith(end)} & present
    return used | {name + end for name in used for end in _SUFFIXES} & present
