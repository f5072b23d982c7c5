"""A valid job file with its text and folder."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lynceus.errors import InputError, explained_in, shown
from lynceus.jobfile.field_pages import page_of_field
from lynceus.jobfile.sections.budget import BudgetSection
from lynceus.jobfile.sections.job_file import JobFile
from lynceus.jobfile.yaml.document import Document
from lynceus.jobfile.yaml.lines import Tree
from lynceus.prices.machines import Machines
from lynceus.problem.history import PastJob
from lynceus.problem.job_input import SIZE, check_unit
from lynceus.trial.text import is_text

_NO_COMMAND_0_1 = "echo 'This study has no command: programs ask for its trials and tell how they went.' >&2; exit 1"
"""What version 0.1 stored as `run` of a job without a command."""


@dataclass(frozen=True)
class Job:
    """The sections of a job file, the document they were read from (for messages), and its folder."""

    spec: JobFile
    document: Document
    folder: Path
    """Absolute; paths in the job file are relative to it."""
    machines: Machines | None = None
    """The machines that its resources match, with their prices; None before they were looked up."""
    table: Mapping[str, Sequence[Any]] | None = None
    """The columns of the catalog that its section `prices` names; None before it was read."""
    past: tuple[PastJob, ...] | None = None
    """The runs of the earlier jobs that its section `history` names; None before they were read."""

    @classmethod
    def read(cls, path: str | Path) -> Job:
        """The job of a file."""
        return cls._of_file(Document.read(path), Path(path).resolve().parent)

    @classmethod
    def parse(cls, text: str, folder: str | Path = ".", name: str = "job.yaml") -> Job:
        """The job of a text."""
        return cls._of_file(Document.parse(text, name), Path(folder).resolve())

    @classmethod
    def _of_file(cls, document: Document, folder: Path) -> Job:
        if not is_text(str(folder)):
            raise InputError(f"{document.name}: the name of its folder is not UTF-8 text: {str(folder)!a}; rename it.")
        job = cls(document.check(JobFile, page_of_field), document, folder)
        size = (job.spec.input or {}).get(SIZE) and document.tree.value["input"][SIZE]
        if isinstance(size, int | float):  # texts are checked where they are read
            with explained_in(page_of_field(("input",))):
                check_unit(size, str(size), document.at("input", SIZE))
        with explained_in(page_of_field(("run",))):
            if not job.has_command:
                raise InputError(
                    f"{document.at('run')}: the field 'run' is missing; add it, or 'serve' for a server under load."
                )
        return job

    @classmethod
    def without_file(cls, study: str) -> Job:
        """Defaults for a study that a program created: no command, no space and budget of its own, files in the current folder."""
        spec = JobFile.model_construct(name=study, budget=BudgetSection.model_construct())
        return cls(spec, Document(f"study {study!r}", Tree({}, {(): 1})), Path.cwd())

    @classmethod
    def from_stored(cls, stored: Mapping[str, Any]) -> Job:
        """The job that a study was created with, see `stored`."""
        values = {name: value for name, value in stored["job"].items() if (name, value) != ("run", _NO_COMMAND_0_1)}
        document = Document(f"study {values.get('name', '')!r}", Tree(values, {(): 1}))
        machines = stored.get("machines")
        return cls(
            document.check(JobFile),
            document,
            Path(stored["folder"]),
            None if machines is None else Machines.from_record(machines),
            stored.get("prices"),
            None if "history" not in stored else tuple(map(PastJob.of_record, stored["history"])),
        )

    def stored(self) -> dict[str, Any]:
        """The job as JSON values for the record of a study. Secrets are stored as references, and the storage without its password."""
        values: dict[str, Any] = {"job": self.document.tree.value, "folder": str(self.folder)}
        if self.machines is not None:
            values["machines"] = self.machines.record()
        if self.table is not None:
            values["prices"] = {name: list(cells) for name, cells in self.table.items()}
        if self.past is not None:
            values["history"] = [one.record() for one in self.past]
        # The round trip fails early on values that JSON cannot represent.
        plain: dict[str, Any] = json.loads(json.dumps(values))
        from lynceus.storage.sql.address import without_credentials  # with SQLAlchemy, which only storing needs

        return without_credentials(plain)

    @property
    def name(self) -> str:
        """The name of the study."""
        return self.spec.name

    @property
    def has_command(self) -> bool:
        """Whether workers can run trials; otherwise programs ask for trials and report their results."""
        return self.spec.run is not None or self.spec.serve is not None

    @property
    def command_field(self) -> tuple[str, ...]:
        """Where the command stands in the file."""
        return ("run",) if self.spec.serve is None else ("serve", "command")

    @property
    def command(self) -> str | tuple[str, ...]:
        """The script or the arguments of a trial; of its server, if it has one."""
        run = self.spec.run if self.spec.serve is None else self.spec.serve.command
        if run is None:
            how = (
                "continue it with that program, or start a study from a job file"
                if self.document.tree.value
                else f"continue it there, with lynceus.create_study(…, study_name={self.name!r}, storage=…, load_if_exists=True)"
            )
            raise InputError(
                f"study {self.name!r} has no command, because a program runs its trials (ask and tell); {how}."
            )
        return run if isinstance(run, str) else tuple(run)

    @property
    def workdir(self) -> Path:
        """Where trials run."""
        return self.file(self.spec.workdir).resolve()

    def file(self, name: str) -> Path:
        """The path of a file that the job file names."""
        try:
            return self.folder / Path(name).expanduser()
        except RuntimeError:
            raise InputError(f"the home folder in {shown(name)} is not known; write the whole path.") from None

    @contextmanager
    def at(self, *path: str | int) -> Iterator[None]:
        """Add file, line and field to errors that are raised inside, and the page that explains the field.

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
            placed = InputError(f"{self.document.at(*path)}: {_without_field(str(error), path)}")
            placed.see = error.see or page_of_field(path)
            raise placed from None


def _without_field(message: str, path: tuple[str | int, ...]) -> str:
    """A message without its own name of the field at `path`."""
    own = rf"^(?:{re.escape(str(path[0]))}(?:, entry \d+)?:|Parameter '{re.escape(str(path[-1]))}':?)\s+"
    return re.sub(own, "", message)
