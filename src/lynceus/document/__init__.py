"""YAML documents of users: every value knows its file and line, and every mistake is one sentence."""

from lynceus.document.read import Document, read_document
from lynceus.document.tree import Path
from lynceus.document.types import Duration, Money, Section

__all__ = ["Document", "Duration", "Money", "Path", "Section", "read_document"]
