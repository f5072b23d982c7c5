"""The compiled module; native.py packs the arguments, module.c unpacks them."""

from typing import Any

def predict(
    sizes: tuple[int, ...],
    arrays: tuple[Any, ...],
    growth: tuple[float, ...],
    outputs: tuple[Any, ...],
    threads: int,
    /,
) -> None: ...
def pick(
    sizes: tuple[int, ...],
    arrays: tuple[Any, ...],
    growth: tuple[float, ...],
    numbers: tuple[float, ...],
    more_arrays: tuple[Any, ...],
    outputs: tuple[Any, ...],
    threads: int,
    /,
) -> None: ...
def normal(z: float, /) -> tuple[float, float]: ...
