from __future__ import annotations

from pathlib import Path

import pytest
from hyperbo_flows.command.ranges import read_ranges
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from hyperbo.data import Choice, Parameter, SearchSpace
from hyperbo.errors import InvalidInputError

SPACE = SearchSpace((Parameter("rate", 1e-5, 10.0, "log"), Parameter("power", 0.1, 2.0)))

SAME = [
    ("rate=1e-4:1e-1", "lower = 1e-4\nupper = 0.1", FloatDistribution(1e-4, 0.1, log=True)),
    ("rate=1e-4:1:log", 'lower = 1e-4\nupper = 1\nscaling = "log"', FloatDistribution(1e-4, 1, log=True)),
    ("power=0.5:1", "lower = 0.5\nupper = 1", FloatDistribution(0.5, 1.0)),
    ("power=1.0", "value = 1.0", FloatDistribution(1.0, 1.0)),
    ("layers=1:8:int", "lower = 1\nupper = 8\ninteger = true", IntDistribution(1, 8)),
    (
        "width=8:512:int:log",
        'lower = 8\nupper = 512\ninteger = true\nscaling = "log"',
        IntDistribution(8, 512, log=True),
    ),
    ("batch_size=32,64,128", "choices = [32, 64, 128]", CategoricalDistribution([32, 64, 128])),
    ("share=0.5,1", "choices = [0.5, 1]", CategoricalDistribution([0.5, 1])),
    ("optimizer=adam,sgd", 'choices = ["adam", "sgd"]', CategoricalDistribution(["adam", "sgd"])),
    ("layers=4", "value = 4", IntDistribution(4, 4)),
    ("optimizer=adam", 'value = "adam"', CategoricalDistribution(["adam"])),
]


@pytest.mark.parametrize(("option", "table", "expected"), SAME)
def test_an_option_and_a_table_say_the_same(
    option: str, table: str, expected: BaseDistribution, tmp_path: Path
) -> None:
    name = option.partition("=")[0]
    file = tmp_path / "space.toml"
    file.write_text(f'[[parameters]]\nname = "{name}"\n{table}\n')
    assert read_ranges(SPACE, None, [option]) == {name: expected}
    assert read_ranges(SPACE, file, []) == {name: expected}


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("rate", "--parameter rate: no value; write NAME=LOWER:UPPER"),
        ("rate=", "no value"),
        ("rate=1e-4:", "a bound is no number"),
        ("rate=0.1:1:lin", "'lin' is no kind of range; write :int, :log or both"),
        ("layers=1:8.5:int", "a bound is no whole number"),
        ("rate=1:1e-4", "--parameter rate=1:1e-4: "),
        ("rate=0:1", "--parameter rate=0:1: "),
        ("rate=1e-4:inf", "inf is not finite"),
        ("power=0.5:1:log", "the prior searches power under linear scaling; leave log out"),
    ],
)
def test_options_that_say_nothing_usable_are_refused(option: str, message: str) -> None:
    with pytest.raises(InvalidInputError) as raised:
        read_ranges(SPACE, None, [option])
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "parameters: the field is missing"),
        ("[space]", "unknown key 'space'"),
        ("rate = [", "not TOML"),
        ('[[parameters]]\nname = "rate"\nlower = 1e-4', "parameters[0].upper: the field is missing"),
        ('[[parameters]]\nname = "rate"\nchoices = []', "parameters[0], rate: "),
        ('[[parameters]]\nname = "rate"\nvalue = [1]', "[1] is no value"),
        ('[[parameters]]\nname = "rate"\nvalue = 1\nlower = 1', "unknown key 'lower'"),
    ],
)
def test_files_that_say_nothing_usable_are_refused(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "space.toml"
    file.write_text(text)
    with pytest.raises(InvalidInputError) as raised:
        read_ranges(SPACE, file, [])
    assert message in str(raised.value)
    assert str(file) in str(raised.value)


def test_a_parameter_is_given_once(tmp_path: Path) -> None:
    file = tmp_path / "space.toml"
    file.write_text('[[parameters]]\nname = "rate"\nvalue = 0.5\n')
    assert set(read_ranges(SPACE, file, ["power=1"])) == {"rate", "power"}
    with pytest.raises(InvalidInputError, match=r"--parameter rate=0\.1: 'rate' is given twice"):
        read_ranges(SPACE, file, ["rate=0.1"])


MIXED = SearchSpace(
    (
        Parameter("depth", 1, 8, integer=True),
        Choice("batch", ("32", "64")),
        Choice("warmup", (False, True)),
        Parameter("rate", 1e-4, 1.0, "log"),
    )
)


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("depth=1:4", IntDistribution(1, 4)),
        ("batch=64", CategoricalDistribution(["64"])),
        ("batch=32,64", CategoricalDistribution(["32", "64"])),
        ("warmup=true", CategoricalDistribution([True])),
        ("warmup=True,false", CategoricalDistribution([True, False])),
    ],
)
def test_values_get_the_types_of_the_priors_parameters(option: str, expected: BaseDistribution) -> None:
    assert read_ranges(MIXED, None, [option]) == {option.partition("=")[0]: expected}
