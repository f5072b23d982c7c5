"""One thread for BLAS: many small matrix products that each start threads compete for the cores and are several times slower."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    """Searching for the loaded libraries takes milliseconds, so it is done once."""
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[object]:
    """Limit the numeric libraries to one thread inside the context."""
    limited: AbstractContextManager[object] = _controller().limit(limits=1, user_api="blas")
    return limited
