"""A pre-trained prior as files: `prior.safetensors` holds the arrays, `prior.json` says what they are."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from hyperbo.errors import InvalidInputError, NotAvailableError, VersionConflictError
from hyperbo.files import write_atomically
from hyperbo.gp.gaussian_process import Architecture, GaussianProcess, initialise
from hyperbo.gp.numerics import double_precision
from hyperbo.search_space import SearchSpace

FORMAT = 1


@dataclass(frozen=True)
class PriorDescription:
    """What a prior is and what it was made from.

    Attributes:
      method: name of the method that trained it, such as `H-NLL`.
      search_space: of its inputs.
      output_warping: name of the warping of its outputs.
      architecture: structure of the Gaussian process.
      training: settings of the optimiser.
      dataset: dataset and version trained on.
      manifest_hash: identity of that version.
      preparation: reading of that version.
      training_tasks: names of the tasks trained on.
      held_out: task dataset that was held out; empty where none was.
      seed: of the model and of the points drawn.
      losses: objective along training.
      largest_jitter: largest relative jitter that a factorisation needed, as in `Pretrained`.
      seconds: of training.
      code_version: of the code that trained it.
    """

    method: str
    search_space: SearchSpace
    output_warping: str
    architecture: Architecture
    training: dict[str, Any]
    dataset: str
    manifest_hash: str
    preparation: str
    training_tasks: tuple[str, ...]
    held_out: str
    seed: int
    losses: tuple[float, ...]
    largest_jitter: float
    seconds: float
    code_version: str

    @property
    def is_mapped(self) -> bool:
        """Whether it was trained on values mapped to [-2, 2] by `hyperbo.warping.online_map`."""
        return self.preparation == "online"


@dataclass(frozen=True)
class Prior:
    """A pre-trained Gaussian process with its description."""

    gp: GaussianProcess
    description: PriorDescription

    @property
    def identity(self) -> str:
        """16 hexadecimal digits of the SHA-256 of its arrays: what tells a prior from another."""
        return hashlib.sha256(save_arrays(_named_arrays(self.gp))).hexdigest()[:16]


def _named_arrays(gp: GaussianProcess) -> dict[str, np.ndarray]:
    return {name: np.asarray(leaf) for name, leaf in _named_leaves(gp).items()}


def _named_leaves(gp: GaussianProcess) -> dict[str, Any]:
    leaves = jax.tree_util.tree_leaves_with_path(gp)
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves}


def _template(description: PriorDescription) -> GaussianProcess:
    """A model of the structure described, with shapes and dtypes in place of arrays."""
    dimension, architecture = description.search_space.dimension, description.architecture
    return jax.eval_shape(lambda: initialise(jax.random.key(0), dimension, architecture))


def _differences(arrays: dict[str, np.ndarray], expected: dict[str, jax.ShapeDtypeStruct]) -> list[str]:
    return [
        *(f"{name} is missing" for name in sorted(expected.keys() - arrays.keys())),
        *(f"{name} is not of this architecture" for name in sorted(arrays.keys() - expected.keys())),
        *(
            f"{name} is {arrays[name].dtype}{list(arrays[name].shape)}, not {array.dtype}{list(array.shape)}"
            for name, array in expected.items()
            if name in arrays and (arrays[name].shape, arrays[name].dtype) != (array.shape, array.dtype)
        ),
    ]


@double_precision
def save_prior(folder: Path, prior: Prior) -> None:
    """Write a prior as two files; the description comes last, and holds the hash of the arrays it belongs to.

    So a folder without a description is incomplete, and one whose arrays were replaced alone is noticed.

    Args:
      folder: where to; it is made where it is missing.
      prior: what to write.

    Raises:
      InvalidInputError: the model is not of the architecture described; nothing is written.
    """
    named = _named_arrays(prior.gp)
    differences = _differences(named, _named_leaves(_template(prior.description)))
    if differences:
        raise InvalidInputError(
            "; ".join(differences), where=str(folder), fix="describe the architecture that the model has"
        )
    arrays = save_arrays(named)
    description = asdict(prior.description) | {
        "format": FORMAT,
        "search_space": prior.description.search_space.to_json(),
        "arrays_sha256": hashlib.sha256(arrays).hexdigest(),
    }
    text = json.dumps(description, indent=1, allow_nan=False)
    write_atomically(folder / "prior.safetensors", arrays)
    write_atomically(folder / "prior.json", text.encode())


@double_precision
def load_prior(folder: Path) -> Prior:
    """Read what `save_prior` wrote; predictions are equal to the last bit.

    Raises:
      NotAvailableError: the folder holds no complete prior.
      InvalidInputError: a file cannot be read or lacks a field, or the arrays are not those described.
      VersionConflictError: the format is another, or an array is missing, extra or of another shape.
    """
    path, arrays_path = folder / "prior.json", folder / "prior.safetensors"
    for needed in (path, arrays_path):
        if not needed.is_file():
            raise NotAvailableError(
                f"{folder} holds no {needed.name}: the prior is not there or not complete"
            )
    try:
        fields = json.loads(path.read_text())
        found = fields.pop("format")
        if found != FORMAT:
            raise VersionConflictError(f"{path}: format {found!r}, this version reads format {FORMAT}")
        arrays_sha256 = fields.pop("arrays_sha256")
        fields["search_space"] = SearchSpace.from_json(fields["search_space"])
        fields["architecture"] = Architecture(
            **fields["architecture"] | {"hidden": tuple(fields["architecture"]["hidden"])}
        )
        for name in ("training_tasks", "losses"):
            fields[name] = tuple(fields[name])
        description = PriorDescription(**fields)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInputError(
            f"cannot be read: {error!r}", where=str(path), fix="take the prior anew"
        ) from error
    content = arrays_path.read_bytes()
    if hashlib.sha256(content).hexdigest() != arrays_sha256:
        raise InvalidInputError(
            "these are not the arrays that prior.json describes",
            where=str(arrays_path),
            fix="take the prior anew",
        )
    arrays = load_arrays(content)

    template = _template(description)
    expected = _named_leaves(template)
    differences = _differences(arrays, expected)
    if differences:
        raise VersionConflictError(f"{arrays_path}: {'; '.join(differences)}")
    gp = jax.tree.unflatten(jax.tree.structure(template), [arrays[name] for name in expected])
    return Prior(gp, description)
