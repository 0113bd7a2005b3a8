from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from gp_cases import random_structure
from prior_files import DESCRIPTION, make_prior
from safetensors.numpy import load, save

import hyperbo.priors.file as prior_module
from hyperbo.errors import HyperBOError, InvalidInputError, NotAvailableError, VersionConflictError
from hyperbo.gp.gaussian_process import Architecture
from hyperbo.gp.kernels import KERNELS
from hyperbo.gp.means import MEANS
from hyperbo.gp.numerics import double_precision
from hyperbo.priors.file import Prior, read_prior, save_prior


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_prior(tmp_path / "prior", make_prior())
    return tmp_path / "prior"


def test_saving_is_deterministic(folder: Path, tmp_path: Path) -> None:
    save_prior(tmp_path / "again", make_prior())
    for name in ("prior.json", "prior.safetensors"):
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()


STRUCTURES = [
    Architecture(hidden, kernel=kernel, mean=mean)
    for hidden in ((), (3,))
    for kernel in KERNELS
    for mean in MEANS
]


@double_precision
def make_structure(architecture: Architecture) -> Prior:
    gp = jax.tree.map(np.asarray, random_structure(0, architecture))
    return Prior(gp, replace(DESCRIPTION, architecture=architecture))


@pytest.mark.parametrize("architecture", STRUCTURES, ids=lambda a: f"{a.mean}-{a.kernel}-{len(a.hidden)}")
def test_every_structure_is_read_back_to_the_last_bit(architecture: Architecture, tmp_path: Path) -> None:
    original = make_structure(architecture)
    save_prior(tmp_path, original)
    found = read_prior(tmp_path)
    assert found.description == original.description
    assert jax.tree.structure(found.gp) == jax.tree.structure(original.gp)
    for one, other in zip(*map(jax.tree.leaves, (found.gp, original.gp)), strict=True):
        assert one.dtype == np.float64
        assert one.tobytes() == other.tobytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["prior.json", "prior.safetensors"]


def test_a_prior_from_before_there_were_structures_is_a_linear_mean_and_matern(folder: Path) -> None:
    def forget(fields: dict[str, Any]) -> None:
        del fields["architecture"]["kernel"], fields["architecture"]["mean"]

    rewrite_description(folder, forget)
    found = read_prior(folder)
    assert found.description == DESCRIPTION
    assert (found.description.architecture.kernel, found.description.architecture.mean) == (
        "matern52",
        "linear",
    )
    jax.tree.map(np.testing.assert_array_equal, found.gp, make_prior().gp)


def test_a_model_of_another_architecture_than_described_is_not_written(tmp_path: Path) -> None:
    wrong = replace(
        make_prior(), description=replace(DESCRIPTION, architecture=Architecture((3, 4), mean="zero"))
    )
    with pytest.raises(InvalidInputError, match=r"mean\.weight is not of this architecture; describe"):
        save_prior(tmp_path / "new", wrong)
    assert not (tmp_path / "new").exists()


# What is wrong with a folder


def rewrite_arrays(folder: Path, change: Callable[[dict[str, np.ndarray]], Any]) -> None:
    """Change the arrays, and the hash with them, as another version of the code might have written them."""
    arrays = load((folder / "prior.safetensors").read_bytes())
    change(arrays)
    content = save(arrays)
    (folder / "prior.safetensors").write_bytes(content)
    rewrite_description(
        folder, lambda fields: fields.update(arrays_sha256=hashlib.sha256(content).hexdigest())
    )


def rewrite_description(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    fields = json.loads((folder / "prior.json").read_text())
    change(fields)
    (folder / "prior.json").write_text(json.dumps(fields))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda arrays: arrays.pop("mean.weight"), "mean.weight is missing$"),
        (lambda arrays: arrays.update(extra=np.zeros(2)), "extra is not of this architecture$"),
        (
            lambda arrays: arrays.update({"features.weights.1": np.zeros((3, 5))}),
            r"features.weights.1 is .*\[3, 5\]",
        ),
        (lambda arrays: arrays.update({"mean.weight": np.zeros(4, np.float32)}), "mean.weight is float32"),
    ],
)
def test_arrays_of_another_structure_are_named(
    folder: Path, change: Callable[[dict[str, np.ndarray]], Any], message: str
) -> None:
    rewrite_arrays(folder, change)
    with pytest.raises(VersionConflictError, match=r"prior\.safetensors: " + message):
        read_prior(folder)


def test_arrays_of_another_kernel_are_named(folder: Path) -> None:
    rewrite_description(folder, lambda fields: fields["architecture"].update(kernel="linear"))
    with pytest.raises(VersionConflictError, match=r"kernel\.raw_bias .*raw_lengthscales "):
        read_prior(folder)


def test_another_format_is_named(folder: Path) -> None:
    rewrite_description(folder, lambda fields: fields.update(format=2))
    with pytest.raises(VersionConflictError, match=r"prior\.json: format 2"):
        read_prior(folder)


@pytest.mark.parametrize("name", ["prior.json", "prior.safetensors"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(NotAvailableError, match=f"holds no {name}"):
        read_prior(folder)


@pytest.mark.parametrize("name", ["prior.json", "prior.safetensors"])
def test_a_cut_file_is_named(folder: Path, name: str) -> None:
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(InvalidInputError, match=name) as caught:
        read_prior(folder)
    assert caught.value.where == str(folder / name)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda fields: fields.pop("held_out"), "held_out"),
        (lambda fields: fields.pop("format"), "format"),
        (lambda fields: fields.update(mood="good"), "mood"),
        (lambda fields: fields["architecture"].update(hidden=[0]), r"hidden = \(0,\) has an empty layer"),
        (lambda fields: fields["architecture"].update(kernel="cosine"), "unknown kernel 'cosine'"),
        (lambda fields: fields["search_space"][0].update(lower=2.0), "is empty or not finite"),
    ],
)
def test_a_description_that_cannot_be_read_says_where(
    folder: Path, change: Callable[[dict[str, Any]], Any], message: str
) -> None:
    rewrite_description(folder, change)
    with pytest.raises(InvalidInputError, match=message) as caught:
        read_prior(folder)
    assert caught.value.where == str(folder / "prior.json")


# Nothing half-written


@pytest.mark.parametrize("fails_at", ["prior.safetensors", "prior.json"])
def test_a_save_that_fails_never_leaves_a_mixture(
    folder: Path, monkeypatch: pytest.MonkeyPatch, fails_at: str
) -> None:
    write = prior_module.write_atomically

    def fail(path: Path, content: bytes) -> None:
        if path.name == fails_at:
            raise OSError("no space left")
        write(path, content)

    monkeypatch.setattr(prior_module, "write_atomically", fail)
    for target in (folder, folder.parent / "new"):
        with pytest.raises(OSError, match="no space left"):
            save_prior(target, make_prior(seed=1))
    with pytest.raises(NotAvailableError):
        read_prior(folder.parent / "new")
    if fails_at == "prior.safetensors":
        jax.tree.map(np.testing.assert_array_equal, read_prior(folder).gp, make_prior(seed=0).gp)
    else:
        with pytest.raises(HyperBOError, match=r"prior\.safetensors: these are not the arrays"):
            read_prior(folder)


def test_a_description_that_json_cannot_hold_leaves_the_old_prior(folder: Path) -> None:
    broken = replace(make_prior(seed=1), description=replace(DESCRIPTION, seconds=float("nan")))
    with pytest.raises(ValueError, match="Out of range float values"):
        save_prior(folder, broken)
    jax.tree.map(np.testing.assert_array_equal, read_prior(folder).gp, make_prior(seed=0).gp)
