from collections.abc import Sequence

from lynceus.space.column import FloatArray

def solve(sizes: tuple[int, int], inputs: Sequence[FloatArray], outputs: Sequence[FloatArray | None], /) -> bool: ...
