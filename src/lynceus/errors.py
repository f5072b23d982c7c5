"""The errors of Lynceus, as one tree.

    LynceusError
     ├── InputError            a mistake in what the user gave: a file, a field, an argument   (exit code 2)
     ├── MissingExtraError     an optional package is needed and not installed                 (exit code 2)
     └── InfrastructureError   a machine, an executor or a database did not do its part        (exit code 4)

Every message is one sentence: what came, what was expected, what to do.
"""


class LynceusError(Exception):
    """Any error that Lynceus raises on purpose."""


class InputError(LynceusError):
    """The user gave something that cannot be used; the message names the place and the fix."""


def expect(value: object, kinds: type | tuple[type, ...], name: str, wanted: str) -> None:
    """Refuse an argument of another type than `kinds`.

    >>> expect("x", int, "seed", "a whole number such as 7")
    Traceback (most recent call last):
        ...
    lynceus.errors.InputError: seed is 'x', but a whole number such as 7 is needed.
    """
    if not isinstance(value, kinds):
        raise InputError(f"{name} is {repr(value)[:60]}, but {wanted} is needed.")


class MissingExtraError(LynceusError):
    """A feature needs an optional package.

    >>> raise MissingExtraError("Parquet tables", "parquet")
    Traceback (most recent call last):
        ...
    lynceus.errors.MissingExtraError: Parquet tables need an optional package: pip install -e '.[parquet]' in the project's folder.
    """

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} need an optional package: pip install -e '.[{extra}]' in the project's folder.")


class InfrastructureError(LynceusError):
    """Something outside Lynceus failed: a machine, a job queue, a database."""
