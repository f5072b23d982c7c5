"""The libraries that Lynceus is compared with, and the environment in which they are installed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import distributions
from pathlib import Path
from types import MappingProxyType

from lynceus.errors import InputError, hint


@dataclass(frozen=True, slots=True)
class Peer:
    """A library and how it is used."""

    name: str
    library: str
    summary: str
    builds_on: tuple[str, ...] = ()
    """Other packages whose version may change its suggestions."""


PEERS: Mapping[str, Peer] = MappingProxyType(
    {
        peer.name: peer
        for peer in (
            Peer(
                "optuna-tpe",
                "optuna",
                "Optuna: tree-structured Parzen estimators on the log objective, limits as constraints",
            ),
            Peer(
                "optuna-gp",
                "optuna",
                "Optuna: Gaussian process on the log objective, limits as constraints",
                ("torch",),
            ),
            Peer(
                "smac-rf",
                "smac",
                "SMAC3: random forest on log cost; late runs count as the most expensive so far",
                ("ConfigSpace", "scikit-learn"),
            ),
            Peer(
                "botorch-cei",
                "botorch",
                "BoTorch: log expected improvement of log cost under the deadline",
                ("gpytorch", "torch"),
            ),
            Peer("botorch-ceipc", "botorch", "BoTorch: the same per unit of expected cost", ("gpytorch", "torch")),
        )
    }
)
"""All peers by name."""


def peer_named(name: str) -> Peer:
    """The peer of a name."""
    if name not in PEERS:
        raise InputError(f"there is no peer {name!r}{hint(name, PEERS)}")
    return PEERS[name]


@lru_cache(maxsize=8)
def versions(peer: Peer) -> Mapping[str, str]:
    """Installed versions of a library and of what it builds on."""
    folders = peers_python(peer).parents[1].glob("lib/python*/site-packages")
    found = distributions(path=[str(folder) for folder in folders])
    packages = (peer.library, *peer.builds_on)
    return MappingProxyType({one.name: one.version for one in found if one.name in packages})


def peers_python(peer: Peer) -> Path:
    """The interpreter of the peers' environment: `LYNCEUS_PEERS`, else `.venv-peers` here or beside the project."""
    named = os.environ.get("LYNCEUS_PEERS")
    folders = [Path(named)] if named else [Path(".venv-peers"), Path(__file__).resolve().parents[3] / ".venv-peers"]
    for folder in folders:
        python = folder / "bin" / "python"
        if python.is_file():
            return python.absolute()
    raise InputError(
        f"peer {peer.name!r} needs {peer.library} in an environment of its own; run 'make peers', or set LYNCEUS_PEERS to its folder."
    )
