"""The file of losses, and which losses are refused."""

import math

import pandas as pd
import pytest

from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.records.losses import (
    check_losses_belong,
    read_losses,
    validate_losses,
    write_losses,
)


def test_losses_survive_a_file(losses, tmp_path):
    write_losses(losses.assign(note="x"), tmp_path / "losses.parquet")
    pd.testing.assert_frame_equal(read_losses(tmp_path / "losses.parquet"), losses)
    (tmp_path / "other.parquet").write_bytes(b"not parquet")
    with pytest.raises(InvalidInputError, match=r"other\.parquet: losses cannot be read"):
        read_losses(tmp_path / "other.parquet")


def _first(**changes):
    def change(losses):
        for column, value in changes.items():
            losses.loc[0, column] = value
        return losses

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x.drop(columns=["kind", "seed"]), "columns missing: seed, kind"),
        (lambda x: x.assign(seed=0.5, value=1), "without a value: seed, value; give texts"),
        (_first(task=None), "without a value: task"),
        (_first(value=math.inf), "losses, method H-NLL, held_out digits, seed 0.*: value is not finite"),
        (_first(kind="nll"), "kind nll: kind is none of training_nll, test_nll"),
        (_first(kind="test_nll"), "a test loss names no task"),
        (_first(task="easy"), "a loss on training tasks names a test task"),
        (lambda x: pd.concat([x, x.iloc[:1]]), "the same loss a second time"),
    ],
)
def test_bad_losses_are_refused(losses, change, message):
    with pytest.raises(InvalidInputError, match=message):
        validate_losses(change(losses))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "MAF"}, "method not named in the metadata: MAF"),
        ({"seed": 9}, "seed not named in the metadata: 9"),
        ({"task": "other"}, "task not named in the metadata: other"),
    ],
)
def test_losses_of_another_evaluation_are_refused(losses, metadata, changes, message):
    check_losses_belong(losses, metadata)
    with pytest.raises(InvalidInputError, match=message):
        check_losses_belong(_first(**changes)(losses), metadata)
