"""Optuna's own published tests of samplers, on a prior that knows the parameters that they suggest."""

from collections.abc import Callable

import pytest
from optuna.samplers import BaseSampler
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    RelativeSamplerTestCase,
    SingleOnlySamplerTestCase,
)
from tuning_priors import prior_over

from hyperbo.data.search_space import Parameter, SearchSpace
from hyperbo.tuning.optuna.sampler import HyperBOSampler

pytestmark = pytest.mark.slow

# The parameters of the suite that are numbers; its ranges lie inside of and beyond these.
PRIOR = prior_over(SearchSpace(tuple(Parameter(name, -10.0, 10.0) for name in ("x", "y", "z", "b"))))


class TestHyperBOSampler(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: HyperBOSampler(PRIOR, seed=0)
