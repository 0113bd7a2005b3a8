"""Presets: the shipped ones, and errors that name file and field."""

import re

import pytest
from hyperbo_pipelines.collect.preset import load_preset

from hyperbo.errors import InvalidInputError

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
        ('"mlp"', '"resnet200"', "task[0].model: unknown name 'resnet200'"),
        ("steps = 4", "", "task[0].steps: the field is missing"),
        ("seed = 1", "seed = 1\nsede = 2", "unknown key 'sede' in line "),
        ("phases = 1", "phases = 3", "phases: 3 is refused"),
        ("steps = 4", "steps = 4\ntraining_only = 4", "task[0].training_only: 4 is more than matched = 3"),
        ("steps = 4", "steps = 5", "task[0].steps: 5 is no multiple of evaluations = 2"),
        ("steps = 4", "steps = 0", "task[0].steps: 0 is refused"),
        ('"a_mlp"', '"a,mlp"', "task[0].shortname: 'a,mlp'"),
        ("[[task]]", "[task]", "task: "),
        (VALID[VALID.index("[[task]]") :], "", "task: the field is missing"),
        ("seed = 1", "seed = ", "the file is not TOML"),
    ],
)
def test_a_bad_preset_is_refused_by_file_and_field(tmp_path, old, new, message):
    assert VALID.count(old) == 1
    file = write(tmp_path, VALID.replace(old, new))
    with pytest.raises(InvalidInputError, match=f"^{re.escape(f'{file}: {message}')}"):
        load_preset(file)


def test_two_tasks_of_one_name_are_refused(tmp_path):
    twice = VALID + VALID[VALID.index("[[task]]") :]
    with pytest.raises(InvalidInputError, match=r"task\[1\]\.shortname: another task .*'a_mlp_10'"):
        load_preset(write(tmp_path, twice))


def test_an_unknown_preset_names_those_there_are():
    with pytest.raises(InvalidInputError, match="no preset 'huge'; use mini, tfds, tiny"):
        load_preset("huge")
