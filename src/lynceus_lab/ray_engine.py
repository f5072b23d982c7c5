"""Run cells on a Ray cluster, for large campaigns. Cells of a lost node run again elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lynceus.errors import InfrastructureError, MissingExtraError
from lynceus_lab.cell import Cell, Done
from lynceus_lab.engines import Crashed, attempt

_RETRIES = 5
"""Retries of a cell whose node or worker died."""
_FOLDERS = ("LYNCEUS_DATA", "LYNCEUS_PEERS")
"""Variables with folders that must have the same path on all nodes."""


@dataclass(frozen=True)
class RayEngine:
    """Runs one Ray task per cell, with one core each."""

    address: str | None = None
    """`ray://HOST:PORT`; None: the cluster of this machine, else a new local one."""

    def __call__(self, cells: Sequence[Cell]) -> Iterator[Done | Crashed]:
        """Run every cell once, and yield results as they come."""
        ray = _ray()
        mine = not ray.is_initialized()
        if mine:
            self._join(ray)
        run = ray.remote(num_cpus=1, max_retries=_RETRIES, runtime_env={"env_vars": _environment()})(attempt)
        remaining = iter(cells)
        running: dict[Any, Cell] = {}
        limit = 4 * max(1, int(ray.cluster_resources().get("CPU", 1)))
        try:
            while True:
                while len(running) < limit and (cell := next(remaining, None)) is not None:
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
    """Environment variables for workers."""
    return {"LYNCEUS_THREADS": "1"} | {
        name: os.path.abspath(folder) for name in _FOLDERS if (folder := os.environ.get(name))
    }


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise MissingExtraError("Campaigns on Ray", "ray") from None
    return ray
