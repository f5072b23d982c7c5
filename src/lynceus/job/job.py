"""A job file that was read, and where it came from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lynceus.document import Document
from lynceus.document.tree import Tree
from lynceus.errors import InputError
from lynceus.job.model import JobFile
from lynceus.prices.machines import Machines


@dataclass(frozen=True)
class Job:
    """A valid job file: its sections, the text they were read from (for places in messages), and its folder."""

    spec: JobFile
    document: Document
    folder: Path
    """Absolute; paths of the job file are relative to it."""
    machines: Machines | None = None
    """The machines that its resources match, at the prices that count; nothing before they were looked up."""
    table: Mapping[str, Sequence[Any]] | None = None
    """The catalog that its section `prices` names, as it counts; nothing: as the file is today."""

    @classmethod
    def read(cls, path: str | Path) -> Job:
        """The job of a file."""
        document = Document.read(path)
        return cls(document.check(JobFile), document, Path(path).resolve().parent)

    @classmethod
    def parse(cls, text: str, folder: str | Path = ".", name: str = "job.yaml") -> Job:
        """The job of a text."""
        document = Document.parse(text, name)
        return cls(document.check(JobFile), document, Path(folder).resolve())

    @classmethod
    def from_stored(cls, stored: Mapping[str, Any]) -> Job:
        """The job that a study was created with, see `stored`."""
        values = stored["job"]
        document = Document(f"study {values.get('name', '')!r}", Tree(values, {(): 1}))
        machines = stored.get("machines")
        return cls(
            document.check(JobFile),
            document,
            Path(stored["folder"]),
            None if machines is None else Machines.from_record(machines),
            stored.get("prices"),
        )

    def stored(self) -> dict[str, Any]:
        """The job as plain JSON values for a study's record. Secrets stand in it as references, never as values."""
        # A round trip refuses early what JSON cannot carry.
        values: dict[str, Any] = {"job": self.document.tree.value, "folder": str(self.folder)}
        if self.machines is not None:
            values["machines"] = self.machines.record()
        if self.table is not None:
            values["prices"] = {name: list(cells) for name, cells in self.table.items()}
        plain: dict[str, Any] = json.loads(json.dumps(values))
        return plain

    @property
    def name(self) -> str:
        """The name of the study."""
        return self.spec.name

    @property
    def workdir(self) -> Path:
        """Where trials run."""
        return (self.folder / Path(self.spec.workdir).expanduser()).resolve()

    def file(self, name: str) -> Path:
        """A file named in the job file."""
        return self.folder / Path(name).expanduser()

    @contextmanager
    def at(self, *path: str | int) -> Iterator[None]:
        """Say where in the job file a mistake stands that is found inside.

        >>> job = Job.parse("name: a\\nrun: 'true'\\nspace: {n: [1]}\\nbudget: 1")
        >>> with job.at("space", "n"):
        ...     raise InputError("it is odd.")
        Traceback (most recent call last):
            ...
        lynceus.errors.InputError: job.yaml:3: space.n: it is odd.
        """
        try:
            yield
        except InputError as error:
            raise InputError(f"{self.document.at(*path)}: {_unplaced(str(error), path)}") from None


def _unplaced(message: str, path: tuple[str | int, ...]) -> str:
    """A message without its own words for the place, which has just been named."""
    own = rf"^(?:{re.escape(str(path[0]))}(?:, entry \d+)?:|Parameter '{re.escape(str(path[-1]))}':?)\s+"
    return re.sub(own, "", message)
