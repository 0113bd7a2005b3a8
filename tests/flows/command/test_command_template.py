from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from hyperbo_flows.command.template import CommandTemplate
from hypothesis import given
from hypothesis import strategies as st

from hyperbo.errors import HyperBOError

# Anything but a surrogate, which no command line can hold, and the NUL that would end a word.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers())
def test_numbers_are_passed_on_whole(rate: float, layers: int) -> None:
    template = CommandTemplate.of(f"{sys.executable} --lr={{rate}} {{layers}}", ["rate", "layers"], [])
    _, first, second = template.arguments({"rate": rate, "layers": layers}, Path())
    assert float(first.removeprefix("--lr=")) == rate
    assert int(second) == layers


@given(TEXT, TEXT)
def test_a_word_of_the_command_stays_one_word(word: str, choice: str) -> None:
    quoted = shlex.quote(word.replace("{", "{{").replace("}", "}}"))
    template = CommandTemplate.of(f"{shlex.quote(sys.executable)} {quoted} {{choice}}", ["choice"], [])
    assert template.arguments({"choice": choice}, Path()) == [sys.executable, word, choice]


def test_a_value_may_be_within_json_and_the_folder_within_a_path() -> None:
    command = """echo '{{"rate": {rate}, "on": {on}}}' {trial_folder}/model"""
    template = CommandTemplate.of(command, ["rate", "on"], [])
    _, config, model = template.arguments({"rate": 1e-05, "on": 0}, Path("tuning/0003"))
    assert json.loads(config) == {"rate": 1e-05, "on": 0}
    assert model == "tuning/0003/model"


def test_what_is_held_may_be_left_out() -> None:
    template = CommandTemplate.of("echo {rate}", ["rate", "power"], ["power"])
    assert template.arguments({"rate": 0.5, "power": 1.0}, Path()) == ["echo", "0.5"]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("", "command is empty"),
        ("echo '{rate} {power}", "command: .*: No closing quotation"),
        ("echo {rat} {power}", "{rat} is no parameter; did you mean {rate}?"),
        ("echo {} {rate} {power}", "{} is no parameter; the names are {rate}, {power}, {trial_folder}"),
        ("echo {rate.real} {power}", "{rate.real} is no parameter"),
        ("echo {rate}", "does not use {power};.*--parameter power=VALUE"),
        ("echo {rate:.3f} {power}", "'{rate:.3f}' has a format; write {rate}"),
        ("echo {rate!r} {power}", "'{rate!r}' has a format; write {rate}"),
        ("echo {rate} {power", "write {{ and }} for braces"),
        ("ech-o {rate} {power}", "there is no program 'ech-o'"),
    ],
)
def test_mistakes_are_told(command: str, message: str) -> None:
    with pytest.raises(HyperBOError) as raised:
        CommandTemplate.of(command, ["rate", "power"], [])
    assert all(part in str(raised.value) for part in message.split(".*"))


def test_no_parameter_has_the_name_of_the_folder() -> None:
    with pytest.raises(HyperBOError, match="no parameter can have that name"):
        CommandTemplate.of("echo {trial_folder}", ["trial_folder"], [])


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("echo --rate={rate} --momentum={momentum} end", ["echo", "--rate=0.5", "end"]),
        ("echo --momentum {momentum} --rate {rate}", ["echo", "--rate", "0.5"]),
        ("echo {momentum} {rate}", ["echo", "0.5"]),
        ("echo m={momentum},r={rate}", ["echo", "m=,r=0.5"]),
        ("echo --a{rate} {momentum}", ["echo", "--a0.5"]),
    ],
)
def test_an_inactive_parameter_is_left_out_with_its_option(command: str, expected: list[str]) -> None:
    template = CommandTemplate.of(command, ["rate", "momentum"], [])
    assert template.arguments({"rate": 0.5}, Path()) == expected
