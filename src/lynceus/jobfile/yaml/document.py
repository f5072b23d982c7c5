"""Read a YAML document into a pydantic model; errors name file, line and field."""

from __future__ import annotations

import codecs
import pathlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from lynceus.errors import InputError
from lynceus.jobfile.yaml.errors import first_error
from lynceus.jobfile.yaml.lines import MAX_BYTES, Path, Tree, read_tree
from lynceus.space.user_file import TooLargeError, read_file

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Document:
    """A parsed YAML file, not yet validated."""

    name: str
    """The path as the user wrote it."""
    tree: Tree

    @classmethod
    def read(cls, path: str | pathlib.Path) -> Document:
        """Read a file; it must hold a mapping of fields."""
        name = str(path)
        try:
            raw = read_file(path, MAX_BYTES)
        except FileNotFoundError:
            raise InputError(f"{name}: there is no such file; give the path of a YAML file.") from None
        except IsADirectoryError:
            raise InputError(f"{name}: this is a folder; give the path of a YAML file.") from None
        except OSError as error:
            raise InputError(f"{name}: the file cannot be read: {error.strerror}.") from None
        except TooLargeError as error:
            _check_text(name, error.data)
            raise
        _check_text(name, raw)
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = raw[: error.start].count(b"\n") + 1
            raise InputError(f"{name}:{line}: the file is not UTF-8 text; save it as UTF-8.") from None
        return cls.parse(text, name)

    @classmethod
    def parse(cls, text: str, name: str = "document") -> Document:
        """Parse a text; `name` appears in messages."""
        tree = read_tree(text, name)
        if tree.value is None:
            raise InputError(f"{name}: the file is empty; expected a mapping of fields, such as 'name: my-job'.")
        if not isinstance(tree.value, dict):
            kind = "a list" if isinstance(tree.value, list) else "a single value"
            raise InputError(
                f"{name}:{tree.lines[()]}: the document is {kind}; expected a mapping of fields, such as 'name: my-job'."
            )
        return cls(name, tree)

    def at(self, *path: str | int) -> str:
        """The position of a value, or of its nearest parent, for the start of a message.

        >>> Document.parse("space:\\n  nodes: 3", "job.yaml").at("space", "nodes", "step")
        'job.yaml:2: space.nodes.step'
        """
        near: Path = path
        while near and near not in self.tree.lines:
            near = near[:-1]
        dotted = ".".join(str(step) for step in path)
        return f"{self.name}:{self.tree.lines[near]}: {dotted}" if path else f"{self.name}:{self.tree.lines[()]}"

    def check(self, model: type[M], page: Callable[[Path], str] | None = None) -> M:
        """Validate the document; the first error becomes an InputError. `page` names the page that explains a field."""
        try:
            return model.model_validate(self.tree.value)
        except ValidationError as error:
            from lynceus.storage.sql.address import hide_passwords  # with SQLAlchemy, which valid documents do not need

            path, message = first_error(error, model, self.tree.value)
            mistake = InputError(f"{self.at(*path)}: {hide_passwords(message)}")
            mistake.see = None if page is None else page(path)
            raise mistake from None


def _check_text(name: str, data: bytes) -> None:
    """Refuse a program, an archive or a database; a text in UTF-16, which has NUL bytes, too, is told from them by its mark."""
    if b"\0" in data and not data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InputError(f"{name}: this is no text, but a binary file; give the path of a YAML file.")


def read_document(path: str | pathlib.Path, model: type[M]) -> M:
    """Read and validate a file."""
    return Document.read(path).check(model)
