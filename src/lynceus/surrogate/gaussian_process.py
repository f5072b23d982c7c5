"""Gaussian processes as a surrogate: situation in, belief out."""

from __future__ import annotations

from dataclasses import dataclass

from lynceus.situation import Belief, Form, Situation


@dataclass(frozen=True, slots=True)
class GaussianProcess:
    """placeholder"""

    target: Form = "log time"

    def __call__(self, situation: Situation, seed: int) -> Belief:
        """later"""
        raise NotImplementedError
