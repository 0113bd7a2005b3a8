"""The libraries that bring real data with them, imported when a task dataset is asked for."""

from __future__ import annotations

import importlib
from typing import Any

from hyperbo.errors import NotAvailableError


def scikit_learn_datasets() -> Any:
    """`sklearn.datasets`."""
    return _module("sklearn.datasets", "scikit-learn")


def scikit_image_data() -> Any:
    """`skimage.data`."""
    return _module("skimage.data", "scikit-image")


def river_datasets() -> Any:
    """`river.datasets`."""
    return _module("river.datasets", "river")


def _module(name: str, library: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise NotAvailableError(
            f"collecting these trials needs {library}: install the extra `collect`"
        ) from error
