"""Which Lynceus this is, and what it is called on package indexes."""

__version__ = "1.0.0"

DISTRIBUTION = "lynceus-opt"
"""The name on package indexes, where `lynceus` is another project. It is imported, and called in a shell, as `lynceus`."""
