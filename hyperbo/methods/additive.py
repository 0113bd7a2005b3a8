"""H-Add: a free process is added to the pre-trained one, as far as the observations ask for it."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hyperbo.compute.pytree import pytree
from hyperbo.data.tuning_data import Task
from hyperbo.errors import InvalidInputError
from hyperbo.gp.candidate_posterior import CandidatePosterior
from hyperbo.gp.gaussian_process import GaussianProcess
from hyperbo.gp.numerics import double_precision, matern52_of_squared_distance, squared_distances
from hyperbo.methods.decision import AcquisitionDecision
from hyperbo.methods.pretrained import HNLL, PretrainedGP
from hyperbo.methods.protocol import Scores


@dataclass(frozen=True)
class HAdd(HNLL):
    r"""Settings of H-Add: H-NLL's prior and a free process beside it, which is no method of the paper.

    .. math:: k(x, x') = a k_\mathrm{pre}(x, x') + v \bar k_\mathrm{pre} \, c(|x - x'| / l)

    c is the Matern 5/2 correlation on the inputs, :math:`\bar k_\mathrm{pre}` the mean prior variance of the
    candidates. Mean and noise are the prior's. Amplitudes a and v and the length scale l are marginalised
    over a grid, equally probable at first; sums of kernels are in Duvenaud, Nickisch and Rasmussen, "Additive
    Gaussian processes", NeurIPS 2011, and the average over hyperparameters in Snoek, Larochelle and Adams,
    "Practical Bayesian optimization of machine learning algorithms", NIPS 2012.

    Attributes:
      decision: on mean and variance of the mixture; expected improvement.
      amplitudes: a.
      free_variances: v.
      lengthscales: l, the same for all inputs of the unit cube.
    """

    decision: AcquisitionDecision = field(default_factory=lambda: AcquisitionDecision("expected_improvement"))
    amplitudes: tuple[float, ...] = (0.1, 1.0)
    free_variances: tuple[float, ...] = (0.01, 0.1, 1.0)
    lengthscales: tuple[float, ...] = (0.1, 0.3, 1.0)

    def __post_init__(self) -> None:
        if self.refit_iterations:
            raise InvalidInputError(
                f"refit_iterations = {self.refit_iterations}, but nothing is refitted",
                where="H-Add",
                fix="leave it out",
            )
        for name in ("amplitudes", "free_variances", "lengthscales"):
            values = getattr(self, name)
            if not values or not all(0.0 < value < math.inf for value in values):
                raise InvalidInputError(f"{name} = {values}", where="H-Add", fix="give positive numbers")

    @property
    def trained_as(self) -> HNLL:
        """Its prior is H-NLL's."""
        return HNLL(self.architecture, self.training)

    @double_precision
    def policy(self, fitted: PretrainedGP, task: Task) -> AdditivePolicy:
        """Of the test task it uses the observations only."""
        grid = itertools.product(self.amplitudes, self.free_variances, self.lengthscales)
        columns = [jnp.array(column, jnp.float64) for column in zip(*grid, strict=True)]
        return AdditivePolicy(fitted, *columns, decision=self.decision)


@pytree
class AdditivePrior:
    """The sum of the two processes at candidates.

    Attributes:
      gp: the pre-trained one.
      features: of the candidates.
      candidates: inputs.
      amplitude: a.
      free_variance: v times the mean variance.
      lengthscale: l.
    """

    gp: GaussianProcess
    features: Float[Array, "c e"]
    candidates: Float[Array, "c d"]
    amplitude: Float[Array, ""]
    free_variance: Float[Array, ""]
    lengthscale: Float[Array, ""]

    @property
    def noise_variance(self) -> Float[Array, ""]:
        """sigma^2 of the observations, that of the pre-trained process."""
        return self.gp.noise_variance

    def covariance_row(self, candidate: Int[Array, ""]) -> Float[Array, " c"]:
        """K between one candidate and all."""
        pretrained = self.gp.kernel(self.features[candidate][None], self.features)[0]
        inputs = self.candidates / self.lengthscale
        free = matern52_of_squared_distance(squared_distances(inputs[candidate][None], inputs)[0])
        return self.amplitude * pretrained + self.free_variance * free


@pytree
class AdditiveState:
    """The posteriors of all points of the grid over the candidates, and their probabilities.

    Attributes:
      features: of the candidates.
      candidates: inputs.
      mask: which candidates are no padding.
      free_variance: v times the mean prior variance of the candidates.
      rows: as in `CandidatePosterior`, like mean and variance.
      mean: posterior means.
      variance: posterior variances of the function.
      log_evidence: log probability of the observations.
      best: largest y so far.
    """

    features: Float[Array, "c e"]
    candidates: Float[Array, "c d"]
    mask: Bool[Array, " c"]
    free_variance: Float[Array, " g"]
    rows: Float[Array, "g t c"]
    mean: Float[Array, "g c"]
    variance: Float[Array, "g c"]
    log_evidence: Float[Array, " g"]
    best: Float[Array, ""]


@pytree
class AdditivePolicy:
    """Scores candidates by the mixture over the grid; nothing is refitted, all is incremental."""

    fitted: PretrainedGP
    amplitude: Float[Array, " g"]
    relative_variance: Float[Array, " g"]
    lengthscale: Float[Array, " g"]
    decision: AcquisitionDecision = field(metadata={"static": True})

    def start(self, candidates: Float[Array, "c d"], mask: Bool[Array, " c"], capacity: int) -> AdditiveState:
        """The priors of all points of the grid."""
        gp, count = self.fitted.gp, len(self.amplitude)
        features = gp.features(candidates)
        diagonal = gp.kernel.diagonal(features)
        free = self.relative_variance * jnp.sum(jnp.where(mask, diagonal, 0.0)) / jnp.sum(mask)
        return AdditiveState(
            features,
            candidates,
            mask,
            free,
            jnp.zeros((count, capacity, len(mask)), candidates.dtype),
            jnp.broadcast_to(gp.mean(features), (count, len(mask))),
            self.amplitude[:, None] * diagonal + free[:, None],
            jnp.zeros(count, candidates.dtype),
            jnp.asarray(-jnp.inf, candidates.dtype),
        )

    def score(
        self, state: AdditiveState, step: Int[Array, ""], key: PRNGKeyArray
    ) -> tuple[AdditiveState, Scores]:
        """The acquisition function of the mixture's mean and variance at every candidate."""
        weights = jax.nn.softmax(state.log_evidence)
        mean = weights @ state.mean
        variance = weights @ (state.variance + (state.mean - mean) ** 2)
        moments = mean, variance, self.fitted.gp.noise_variance
        tasks, spread = self.fitted.training_tasks, self.fitted.spread
        return state, self.decision.scores(*moments, state.best, state.mask, tasks, step, key, spread)

    def observe(
        self, state: AdditiveState, step: Int[Array, ""], candidate: Int[Array, ""], y: Float[Array, ""]
    ) -> AdditiveState:
        """Condition each point of the grid, and add the predictive density to its evidence."""

        def condition(amplitude: Array, free: Array, lengthscale: Array, *known: Array) -> tuple[Array, ...]:
            prior = AdditivePrior(
                self.fitted.gp, state.features, state.candidates, amplitude, free, lengthscale
            )
            after = CandidatePosterior(prior, *known).observe(step, candidate, y)
            return after.rows, after.mean, after.variance

        deviation = jnp.sqrt(state.variance[:, candidate] + self.fitted.gp.noise_variance)
        density = norm.logpdf(y, state.mean[:, candidate], deviation)
        grid = self.amplitude, state.free_variance, self.lengthscale
        rows, mean, variance = jax.vmap(condition)(*grid, state.rows, state.mean, state.variance)
        return replace(
            state,
            rows=rows,
            mean=mean,
            variance=variance,
            log_evidence=state.log_evidence + density,
            best=jnp.maximum(state.best, y),
        )
