"""Read a document into a model, and say where a mistake stands."""

from __future__ import annotations

import pathlib
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from lynceus.document.complaint import complaint
from lynceus.document.tree import MOST_BYTES, Path, Tree, read_tree
from lynceus.errors import InputError

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Document:
    """A YAML file that was read but not yet understood."""

    name: str
    """The file as the user named it."""
    tree: Tree

    @classmethod
    def read(cls, path: str | pathlib.Path) -> Document:
        """The document in a file; it must be a mapping of fields."""
        name = str(path)
        try:
            raw = pathlib.Path(path).read_bytes()
        except FileNotFoundError:
            raise InputError(f"{name}: there is no such file; give the path of a YAML file.") from None
        except IsADirectoryError:
            raise InputError(f"{name}: this is a folder; give the path of a YAML file.") from None
        except OSError as error:
            raise InputError(f"{name}: the file cannot be read: {error.strerror}.") from None
        if len(raw) > MOST_BYTES:
            raise InputError(f"{name}: the file has {len(raw):,} bytes; a document has at most {MOST_BYTES:,}.")
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = raw[: error.start].count(b"\n") + 1
            raise InputError(f"{name}:{line}: the file is not UTF-8 text; save it as UTF-8.") from None
        return cls.parse(text, name)

    @classmethod
    def parse(cls, text: str, name: str = "document") -> Document:
        """The document in a text."""
        tree = read_tree(text, name)
        if tree.value is None:
            raise InputError(f"{name}: the file is empty; a mapping of fields is needed, such as 'name: my-job'.")
        if not isinstance(tree.value, dict):
            kind = "a list" if isinstance(tree.value, list) else "a single value"
            raise InputError(
                f"{name}:{tree.lines[()]}: the document is {kind}; a mapping of fields is needed, such as 'name: my-job'."
            )
        return cls(name, tree)

    def at(self, *path: str | int) -> str:
        """The place of a value, or of the nearest one above it, as it stands at the start of a message.

        >>> Document.parse("space:\\n  nodes: 3", "job.yaml").at("space", "nodes", "step")
        'job.yaml:2: space.nodes.step'
        """
        near: Path = path
        while near and near not in self.tree.lines:
            near = near[:-1]
        dotted = ".".join(str(step) for step in path)
        return f"{self.name}:{self.tree.lines[near]}: {dotted}" if path else f"{self.name}:{self.tree.lines[()]}"

    def check(self, model: type[M]) -> M:
        """The document as a model; its first mistake as an InputError."""
        try:
            return model.model_validate(self.tree.value)
        except ValidationError as error:
            path, message = complaint(error, model, self.tree.value)
            raise InputError(f"{self.at(*path)}: {message}") from None


def read_document(path: str | pathlib.Path, model: type[M]) -> M:
    """A file as a model."""
    return Document.read(path).check(model)
