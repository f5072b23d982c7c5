"""Optuna's own tests of samplers, on ours."""

from collections.abc import Callable

import optuna
import pytest
from optuna.samplers import BaseSampler
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    RelativeSamplerTestCase,
    SingleOnlySamplerTestCase,
)

from lynceus.integrations.optuna import LynceusSampler

optuna.logging.set_verbosity(optuna.logging.WARNING)


class TestLynceusSampler(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: LynceusSampler(seed=0)
