"""Presets: the shipped ones, and errors that name file and field."""

import re

import pytest

from hyperbo.errors import InvalidInputError
from pipelines.collect.preset import load_preset

VALID = """
name = "own"
version = "1.0.0"
seed = 1
phases = 1
matched = 3
good = 2
block_size = 4
evaluations = 2

[[task]]
shortname = "a_mlp"
dataset = "diabetes"
model = "mlp"
batch_size = 10
steps = 4
"""


def write(tmp_path, text):
    file = tmp_path / "own.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_file_of_ones_own_is_read(tmp_path):
    preset = load_preset(write(tmp_path, VALID))
    assert preset.matched == 3
    assert preset.tasks[0].study == "a_mlp_10"
    assert preset.tasks[0].l2 == 0.0
    assert preset == load_preset(str(tmp_path / "own.toml"))


@pytest.mark.parametrize("name", ["mini", "tfds", "tiny"])
def test_shipped_presets_are_valid_and_named_as_their_file(name):
    assert load_preset(name).name == name


def test_the_hash_tells_presets_apart(tmp_path):
    first = load_preset(write(tmp_path, VALID))
    second = load_preset(write(tmp_path, VALID.replace("seed = 1", "seed = 2")))
    assert first.sha256 != second.sha256


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"mlp"', '"resnet200"', "task 1: model: unknown model 'resnet200'; use one of mlp, "),
        ('"diabetes"', '"imagenet"', "task 1: dataset: unknown task dataset 'imagenet'"),
        ("steps = 4", "", "task 1: field 'steps' is missing"),
        ("seed = 1", "", "field 'seed' is missing"),
        ("seed = 1", "seed = 1\nsede = 2", "unknown field 'sede'"),
        ("steps = 4", "steps = 4\nwidth = 9", "task 1: unknown field 'width'"),
        ("steps = 4", 'steps = "4"', "task 1: steps: steps = '4' is not of type int"),
        ("matched = 3", "matched = true", "matched: matched = True is not of type int"),
        ("phases = 1", "phases = 3", "phases: phases = 3; use 1 or 2"),
        (
            "steps = 4",
            "steps = 4\ntraining_only = 4",
            "task 1: training_only: training_only = 4 is more than matched = 3",
        ),
        (
            "steps = 4",
            "steps = 4\ntraining_only = -4",
            "task 1: training_only: training_only = -4 is negative",
        ),
        ("steps = 4", "steps = 5", "task 1: steps: steps = 5 is no multiple of evaluations = 2"),
        ("steps = 4", "steps = 0", "task 1: steps: steps = 0 is not positive"),
        ("steps = 4", "steps = 4\nl2 = -1", "task 1: l2: l2 = -1.0 is negative"),
        ("seed = 1", "seed = -1", "seed: seed = -1 is negative"),
        ('"a_mlp"', '"a,mlp"', "task 1: shortname: shortname 'a,mlp'"),
        ("[[task]]", "[task]", "there is no task"),
        ("seed = 1", "seed = ", "this is not TOML"),
    ],
)
def test_a_bad_preset_is_refused_by_file_and_field(tmp_path, old, new, message):
    assert VALID.count(old) == 1
    file = write(tmp_path, VALID.replace(old, new))
    with pytest.raises(InvalidInputError, match=f"^{re.escape(f'{file}: {message}')}"):
        load_preset(file)


def test_two_tasks_of_one_name_are_refused(tmp_path):
    twice = VALID + VALID[VALID.index("[[task]]") :]
    with pytest.raises(InvalidInputError, match="task 2: shortname and batch size 'a_mlp_10' occur twice"):
        load_preset(write(tmp_path, twice))


def test_an_unknown_preset_names_those_there_are():
    with pytest.raises(InvalidInputError, match="no preset 'huge'; use one of mini, tfds, tiny"):
        load_preset("huge")


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InvalidInputError, match=r"nowhere\.toml: the preset cannot be read"):
        load_preset(tmp_path / "nowhere.toml")
