"""Files that users name, read whole: regular ones up to a size. A pipe would block for ever, and /dev/zero never ends."""

import io
import os
import stat
from pathlib import Path

from lynceus.errors import InputError

MOST_BYTES = 64 << 20
MOST_LINES = 1_000_000


class TooLargeError(InputError):
    """A file is larger than what is read whole."""

    def __init__(self, path: str | Path, most_bytes: int, data: bytes) -> None:
        super().__init__(f"{path}: the file has more than {most_bytes:,} bytes; give a smaller one.")
        self.data = data
        """Its first bytes."""


def read_file(path: str | Path, most_bytes: int = MOST_BYTES) -> bytes:
    """The bytes of a file; raises `OSError` when it cannot be read, `InputError` when it is no file to read whole."""
    if "\0" in str(path):
        raise InputError(f"{str(path)!r} has a NUL byte in it, so it is not the path of a file; correct it.")
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        kind = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(21, "Is a directory")
        if not stat.S_ISREG(kind):
            raise InputError(f"{path}: this is a pipe, a device or a socket; give the path of a regular file.")
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise TooLargeError(path, most_bytes, data)
    return data


def table_text(data: bytes, path: str | Path) -> io.StringIO:
    """The text of a table as the module `csv` reads it; raises `UnicodeDecodeError` when it is not UTF-8."""
    if data.count(b"\n") + data.count(b"\r") > 2 * MOST_LINES:
        raise InputError(f"{path}: the table has more than {MOST_LINES:,} lines; give a smaller one.")
    return io.StringIO(data.decode("utf-8-sig"), newline="")
