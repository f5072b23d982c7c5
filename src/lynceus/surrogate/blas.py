"""Many small matrix products compete for the cores when each of them starts threads; one thread is several times faster."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    """Finding the loaded libraries takes milliseconds, so it is done once."""
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[object]:
    """Hold the numeric libraries to one thread while the context lasts."""
    limited: AbstractContextManager[object] = _controller().limit(limits=1, user_api="blas")
    return limited
