"""Cells on a Ray cluster: for large campaigns. A node that is lost takes nothing along; its cells run again elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lynceus.errors import InfrastructureError, MissingExtraError
from lynceus.lab.cell import Cell, Done
from lynceus.lab.engines import Crashed, attempt

_RETRIES = 5
"""How often a cell is run again because its node or worker died."""
_PLACES = ("LYNCEUS_DATA", "LYNCEUS_PEERS")
"""Folders that nodes look into, at the same paths as here."""


@dataclass(frozen=True)
class OnRay:
    """One Ray task per cell, one core each."""

    address: str | None = None
    """`ray://HOST:PORT`; nothing: the cluster that this machine belongs to, else one of its own."""

    def __call__(self, cells: Sequence[Cell]) -> Iterator[Done | Crashed]:
        """Every cell once, as it ends."""
        ray = _ray()
        mine = not ray.is_initialized()
        if mine:
            self._join(ray)
        run = ray.remote(num_cpus=1, max_retries=_RETRIES, runtime_env={"env_vars": _environment()})(attempt)
        coming = iter(cells)
        running: dict[Any, Cell] = {}
        most = 4 * max(1, int(ray.cluster_resources().get("CPU", 1)))
        try:
            while True:
                while len(running) < most and (cell := next(coming, None)) is not None:
                    running[run.remote(cell)] = cell
                if not running:
                    return
                ready, _ = ray.wait(list(running), num_returns=1)
                for reference in ready:
                    cell = running.pop(reference)
                    yield self._result(ray, reference, cell)
        finally:
            for reference in running:
                ray.cancel(reference, force=True)
            if mine:
                ray.shutdown()

    def _join(self, ray: Any) -> None:
        try:
            ray.init(address=self.address, log_to_driver=False, logging_level="error")
        except (ConnectionError, RuntimeError, OSError) as error:
            raise InfrastructureError(
                f"engine: the Ray cluster {self.address or 'of this machine'} cannot be reached: {str(error).splitlines()[0]}"
            ) from None

    @staticmethod
    def _result(ray: Any, reference: Any, cell: Cell) -> Done | Crashed:
        try:
            result: Done | Crashed = ray.get(reference)
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except ray.exceptions.RayError as error:
            return Crashed(cell, f"{type(error).__name__}: {str(error).splitlines()[0]}")
        return result


def _environment() -> dict[str, str]:
    """What a worker must know of the environment here; a node has its own."""
    return {"LYNCEUS_THREADS": "1"} | {
        name: os.path.abspath(folder) for name in _PLACES if (folder := os.environ.get(name))
    }


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise MissingExtraError("Campaigns on Ray", "ray") from None
    return ray
