"""The prior of a job's time model, learned from families of measured jobs; `lynceus lab prior` writes the data file.

All numbers are of ln seconds, not standardised.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from lynceus.errors import InputError, hint
from lynceus.models.gaussian.prior import Settings

DATA = Path(__file__).parent / "learned_prior.yaml"


@dataclass(frozen=True, slots=True)
class Normal:
    """What is known of a number of a job that nobody has seen: mean and std over measured jobs."""

    mean: float
    std: float
    """Between families, and between the jobs of a family."""
    uncertainty: float = 0.0
    """Root mean square of the std that is left when the whole table of a job is known; not part of `std`."""


@dataclass(frozen=True, slots=True)
class LearnedPrior:
    """Hyper-parameters of a Gaussian process of ln time over measured jobs. A family counts once, whatever its number of jobs."""

    slope: Normal
    """Of ln time along ln price; −1 is perfect scaling."""
    offset: Normal
    """Mean of ln time at the mean of ln price, minus ln deadline."""
    log_length: Normal
    """ln ℓ − ½ ln dn, with ℓ in ranges of a feature and dn numeric features, as in `Settings`."""
    log_unlikeness: Normal
    log_signal: Normal
    log_noise: Normal

    def settings(self, base: Settings) -> Settings:
        """`base` with these length scales, categories, signal and noise."""
        return replace(
            base,
            log_length=(self.log_length.mean, self.log_length.std),
            log_unlikeness=(self.log_unlikeness.mean, self.log_unlikeness.std),
            log_signal=(self.log_signal.mean, self.log_signal.std),
            log_noise=(self.log_noise.mean, self.log_noise.std),
        )


def learned_prior(without: str | None = None) -> LearnedPrior:
    """The prior learned from all families; or from all but one, to judge it on that one."""
    data = _data()
    if without is None:
        return read_prior(data["all"])
    if without not in data["without"]:
        raise InputError(f"learned prior: there is no family {without!r}{hint(without, data['without'])}")
    return read_prior(data["without"][without])


def read_prior(numbers: Mapping[str, Mapping[str, float]]) -> LearnedPrior:
    """A prior from plain data."""
    return LearnedPrior(**{name: Normal(**one) for name, one in numbers.items()})


@cache
def _data() -> Mapping[str, Any]:
    import yaml

    loaded: Mapping[str, Any] = yaml.safe_load(DATA.read_text(encoding="utf-8"))
    return loaded
