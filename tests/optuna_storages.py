"""Databases of Optuna whose connections are closed when a test ends. Optuna leaves them to the garbage collector."""

from collections.abc import Iterator
from contextlib import contextmanager

from optuna.storages import RDBStorage


@contextmanager
def optuna_storage(url: str) -> Iterator[RDBStorage]:
    storage = RDBStorage(url)
    try:
        yield storage
    finally:
        storage.remove_session()
        storage.engine.dispose()
