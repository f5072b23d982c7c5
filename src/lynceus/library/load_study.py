"""Open a stored study in a Python program by its name alone."""

from __future__ import annotations

from types import NoneType

from lynceus.errors import expect
from lynceus.library.find import find_study
from lynceus.library.open_study import open_record
from lynceus.storage.sql.storage import Storage
from lynceus.study.study import Study


def load_study(*, study_name: str | None = None, storage: str | Storage) -> Study:
    """A study of a storage with the problem, the policy and the seed that it began with; without a name, the only one.

    >>> import lynceus
    >>> space = lynceus.Space.build([lynceus.Integer("nodes", 1, 4)], price="0.1 * nodes")
    >>> kept = Storage("sqlite://")  # in memory, for this example; otherwise "sqlite:///lynceus.db"
    >>> made = lynceus.create_study(space=space, budget="$1", study_name="nightly", storage=kept)
    >>> load_study(study_name="nightly", storage=kept)
    <Study 'nightly': minimize cost · $0 spent of $1.00 · 0 trials, 0 open · no trial has kept every constraint yet>
    """
    expect(study_name, (str, NoneType), "study_name", "a text")
    expect(storage, (str, Storage), "storage", "an address such as 'sqlite:///lynceus.db', or a Storage,")
    opened = Storage(storage, create=False) if isinstance(storage, str) else storage
    return open_record(opened, find_study(opened, study_name, None)).study
