"""Which files of a working directory are a database in use, and so must neither travel nor even be opened."""

from collections.abc import Iterable

_BESIDE = ("-wal", "-shm", "-journal")
"""What SQLite keeps beside a database as long as somebody has it open."""


def databases(names: Iterable[str]) -> set[str]:
    """The names within one folder that belong to SQLite databases in use.

    A copy of one would be torn. Worse, the storage of this very process may be among them: POSIX drops all locks that a process holds
    on a file when it closes any descriptor of it, so to read our storage is to let others take it for abandoned and delete its log.

    >>> sorted(databases(["a.csv", "lynceus.db", "lynceus.db-shm", "lynceus.db-wal", "x-wal"]))
    ['lynceus.db', 'lynceus.db-shm', 'lynceus.db-wal']
    """
    there = set(names)
    used = {name.removesuffix(end) for name in there for end in _BESIDE if name.endswith(end)} & there
    return used | {name + end for name in used for end in _BESIDE} & there
