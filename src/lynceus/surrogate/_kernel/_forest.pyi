"""The compiled module; native.py packs the arguments, module.c unpacks them."""

from typing import Any

def believe(
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
    gain_numbers: tuple[float, ...],
    gain_arrays: tuple[Any, ...],
    outputs: tuple[Any, ...],
    threads: int,
    /,
) -> None: ...
def normal(z: float, /) -> tuple[float, float]: ...
