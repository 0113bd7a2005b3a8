"""A pre-trained prior as files: `prior.safetensors` holds the arrays, `prior.json` describes them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import jax
import numpy as np
from pydantic import PlainValidator
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from hyperbo.data.search_space import SearchSpace
from hyperbo.data.warping import output_warping
from hyperbo.errors import InvalidInputError, NotAvailableError, VersionConflictError
from hyperbo.gp.gaussian_process import Architecture, GaussianProcess, initialise
from hyperbo.gp.numerics import double_precision
from hyperbo.pretrain.convergence import Fall, fall_of_training
from hyperbo.pretrain.jobs import Job, Pretrained
from hyperbo.storage.atomic import write_atomically
from hyperbo.storage.validation import validated, without_format

FORMAT = 1
PRIOR_FILES = ("prior.safetensors", "prior.json")


def _space_of(parameters: Any) -> SearchSpace:
    """The search space of what a file holds: the list that `SearchSpace.to_json` gives."""
    return parameters if isinstance(parameters, SearchSpace) else SearchSpace.from_json(parameters)


@dataclass(frozen=True)
class PriorDescription:
    """What a prior is and how it was made.

    Attributes:
      method: name of the method that trained it, such as `H-NLL`.
      search_space: of its inputs.
      output_warping: name of the warping of its outputs.
      architecture: structure of the Gaussian process.
      training: settings of the training.
      dataset: dataset and version of the training data.
      manifest_hash: identity of that version.
      preparation: how the version was turned into training data.
      training_tasks: names of the training tasks.
      held_out: task dataset that was held out; empty where none was.
      seed: of the model and of the points drawn.
      losses: training loss along the training.
      largest_jitter: largest relative jitter that a factorisation needed, as in `Pretrained`.
      seconds: duration of the training.
      code_version: of the code that trained it.
      objective_range: lowest and highest raw objective of the training tasks; None where a prior was written
        before this was known.
    """

    method: str
    search_space: Annotated[SearchSpace, PlainValidator(_space_of)]
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
    objective_range: tuple[float, float] | None = None

    @property
    def fall(self) -> Fall | None:
        """How much the training lowered its loss at last; None where no loss is known."""
        if not self.losses:
            return None
        return fall_of_training(np.array(self.losses), self.training, len(self.training_tasks))

    @property
    def is_mapped(self) -> bool:
        """Whether it was trained on values mapped to [-2, 2] by `hyperbo.data.warping.online_map`."""
        return self.preparation == "online"


@dataclass(frozen=True)
class Prior:
    """A pre-trained Gaussian process with its description."""

    gp: GaussianProcess
    description: PriorDescription

    @property
    def identity(self) -> str:
        """16 hexadecimal digits of the SHA-256 of its arrays, which tell it from other priors."""
        return hashlib.sha256(save_arrays(_named_arrays(self.gp))).hexdigest()[:16]

    def __repr__(self) -> str:
        about = self.description
        parameters = (f"{each.name} ({each.summary})" for each in about.search_space.parameters)
        direction = output_warping(about.output_warping).direction
        return (
            f"Prior {self.identity}: {about.method} on {len(about.training_tasks)} tasks of {about.dataset}\n"
            f"  tunes {', '.join(parameters)}\n"
            f"  to {direction} an objective, warped by {about.output_warping}"
        )


def trained_prior(
    trained: Pretrained,
    job: Job,
    method: str,
    architecture: Architecture,
    training: Any,
    *,
    held_out: str,
    output_warping: str,
    code_version: str,
) -> Prior:
    """A prior that was just trained, with its description.

    Args:
      trained: result of the pre-training.
      job: what it was trained on.
      method: name of the method.
      architecture: structure of the Gaussian process.
      training: settings of the training, a dataclass.
      held_out: as in `PriorDescription`, like the further ones.
      output_warping: of the training data.
      code_version: of the code that trained it.
    """
    data = job.training
    description = PriorDescription(
        method=method,
        search_space=data.search_space,
        output_warping=output_warping,
        architecture=architecture,
        training=asdict(training),
        **vars(data.provenance),
        training_tasks=tuple(task.name for task in data.tasks),
        held_out=held_out,
        seed=job.seed,
        losses=tuple(trained.losses.tolist()),
        largest_jitter=trained.largest_jitter,
        seconds=trained.seconds,
        code_version=code_version,
        objective_range=_range_of([task.objective for task in data.tasks]),
    )
    return Prior(trained.gp, description)


def _range_of(objectives: Sequence[np.ndarray]) -> tuple[float, float] | None:
    """The lowest and the highest finite value of some arrays; None where there is none."""
    values = np.concatenate(objectives)
    found = values[np.isfinite(values)]
    return (float(found.min()), float(found.max())) if len(found) else None


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
def save_prior(folder: str | os.PathLike[str], prior: Prior) -> None:
    """Write a prior as two files. The description is written last, and holds the hash of the arrays.

    So a folder without a description is incomplete, and arrays that were replaced are noticed.

    Args:
      folder: of the prior; it is created if it is missing.
      prior: what to write.

    Raises:
      InvalidInputError: the model has another architecture than its description; nothing is written.
    """
    folder = Path(folder)
    named = _named_arrays(prior.gp)
    differences = _differences(named, _named_leaves(_template(prior.description)))
    if differences:
        raise InvalidInputError(
            "; ".join(differences), where=str(folder), fix="describe the model's own architecture"
        )
    arrays = save_arrays(named)
    description = asdict(prior.description) | {
        "format": FORMAT,
        "search_space": prior.description.search_space.to_json(),
        "arrays_sha256": hashlib.sha256(arrays).hexdigest(),
    }
    text = json.dumps(description, indent=1, allow_nan=False)
    for name, content in zip(PRIOR_FILES, (arrays, text.encode()), strict=True):
        write_atomically(folder / name, content)


@double_precision
def read_prior(folder: str | os.PathLike[str]) -> Prior:
    """Read what `save_prior` wrote; predictions are equal to the last bit. For names see `load_prior`.

    Raises:
      NotAvailableError: the folder holds no complete prior.
      InvalidInputError: a file cannot be read or lacks a field, or the arrays are not those described.
      VersionConflictError: the format is another, or an array is missing, unknown or of another shape.
    """
    arrays_path, path = (Path(folder) / name for name in PRIOR_FILES)
    for needed in (path, arrays_path):
        if not needed.is_file():
            raise NotAvailableError(f"{folder} holds no {needed.name}: the prior is missing or not complete")
    try:
        fields = without_format(json.loads(path.read_text()), FORMAT, str(path))
        arrays_sha256 = fields.pop("arrays_sha256", None)
        description = validated(PriorDescription, fields, "")
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"cannot be read: {error}", where=str(path), fix="copy or train the prior again"
        ) from error
    content = arrays_path.read_bytes()
    if hashlib.sha256(content).hexdigest() != arrays_sha256:
        raise InvalidInputError(
            "these are not the arrays that prior.json describes",
            where=str(arrays_path),
            fix="copy or train the prior again",
        )
    arrays = load_arrays(content)

    template = _template(description)
    expected = _named_leaves(template)
    differences = _differences(arrays, expected)
    if differences:
        raise VersionConflictError(f"{arrays_path}: {'; '.join(differences)}")
    gp = jax.tree.unflatten(jax.tree.structure(template), [arrays[name] for name in expected])
    return Prior(gp, description)
