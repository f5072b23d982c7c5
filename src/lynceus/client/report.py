"""`lynceus.report`: jobs call it to report metrics and progress. It imports only the standard library.

    import lynceus

    lynceus.report(accuracy=0.91, progress=0.5)

Outside a trial it does nothing.
"""

from __future__ import annotations

import json
import os


def report(**values: float) -> None:
    """Report numbers by name; the last value of each counts. `progress` is kept as a series over time.

    >>> report(accuracy=0.91, progress=0.5)
    """
    path = os.environ.get("LYNCEUS_RESULT")
    if path is None:
        return
    line = json.dumps({name: float(value) for name, value in values.items()}) + "\n"
    # One write to a file that is open for appending, so that lines of several processes do not mix.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)
