from __future__ import annotations

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture(scope="module")
def x64() -> Iterator[None]:
    """64-bit JAX for a module that calls numeric functions below the entry points."""
    with jax.enable_x64(True):
        yield
