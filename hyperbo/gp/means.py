"""Mean functions, on features."""

from __future__ import annotations

from jaxtyping import Array, Float

from hyperbo.gp.pytree import pytree


@pytree
class Linear:
    """mu(x) = w . phi(x): with MLP features, the paper's linear MLP mean."""

    weight: Float[Array, " e"]

    def __call__(self, features: Float[Array, "n e"]) -> Float[Array, " n"]:
        """Prior mean at inputs with these features."""
        return features @ self.weight
