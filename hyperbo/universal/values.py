"""The values of a task of any unit, as the universal prior sees them."""

from __future__ import annotations

import jax.numpy as jnp
from jax.scipy.special import ndtri
from jaxtyping import Array, Bool, Float


def zscore(y, seen):
    n = jnp.maximum(jnp.sum(seen), 1)
    m = jnp.sum(jnp.where(seen, y, 0)) / n
    s = jnp.sqrt(jnp.sum(jnp.where(seen, (y - m) ** 2, 0)) / n)
    return jnp.where(seen, (y - m) / jnp.where(s > 0, s, 1.0), 0.0)


def ranks(y, seen):
    below = jnp.sum(seen[None, :] & (y[None, :] < y[:, None]), axis=1)
    equal = jnp.sum(seen[None, :] & (y[None, :] == y[:, None]), axis=1)
    return below + 0.5 * (equal + 1)


def normal_scores(y, seen):
    n = jnp.maximum(jnp.sum(seen), 1)
    return jnp.where(seen, ndtri((ranks(y, seen) - 0.375) / (n + 0.25)), 0.0)


def median_of(y, seen):
    n = jnp.sum(seen)
    o = jnp.sort(jnp.where(seen, y, jnp.inf))
    return jnp.where(n > 0, 0.5 * (o[(n - 1) // 2] + o[n // 2]), 0.0)


def half_rank(y, seen):
    med = median_of(y, seen)
    good = seen & (y >= med)
    d = jnp.where(good, y - med, 0.0)
    s = jnp.sqrt(jnp.sum(d**2) / jnp.maximum(jnp.sum(good), 1))
    z = normal_scores(y, seen)
    z = jnp.where(good, d / jnp.where(s > 0, s, 1.0), jnp.minimum(z, 0.0))
    return zscore(z, seen)


def soft(y, seen):
    med = median_of(y, seen)
    good = seen & (y >= med)
    d = jnp.where(seen, y - med, 0.0)
    s = jnp.sqrt(jnp.sum(jnp.where(good, d, 0.0) ** 2) / jnp.maximum(jnp.sum(good), 1))
    u = d / jnp.where(s > 0, s, 1.0)
    return zscore(jnp.where(u < 0, -jnp.log1p(-jnp.minimum(u, 0.0)), u), seen)


MAPS = {"zscore": zscore, "rank": normal_scores, "half": half_rank, "soft": soft}
