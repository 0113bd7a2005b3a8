"""Programs compiled once for several trainings of the same shapes, in processes that a test starts too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jax
from jax.experimental.compilation_cache import compilation_cache

# As JAX's settings are named in the environment, which processes started by a test inherit.
_SETTINGS = {
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}


@contextmanager
def compiled_once(folder: Path) -> Iterator[dict[str, str]]:
    """Keep compiled programs in a folder.

    Yields:
      The variables under which another process keeps its own there.
    """
    settings = {"jax_compilation_cache_dir": str(folder), **_SETTINGS}
    before = {name: getattr(jax.config, name) for name in settings}
    try:
        for name, value in settings.items():
            jax.config.update(name, value)
        compilation_cache.reset_cache()
        yield {name.upper(): str(value) for name, value in settings.items()}
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
        compilation_cache.reset_cache()
