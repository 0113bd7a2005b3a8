from __future__ import annotations

from typing import Annotated

import typer
from hyperbo_flows.cli.jobs import command_line, failure_lines
from hyperbo_flows.cli.options import Iterations, Repeats
from typer.testing import CliRunner


def failures(method, *reasons):
    return [
        {"method": method, "task": "a", "seed": seed, "reason": reason} for seed, reason in enumerate(reasons)
    ]


def test_reasons_that_differ_in_numbers_and_names_are_one_line():
    nan = [f"OwnPolicy scored a candidate NaN on task 't{i}' with seed {i}, in iteration 3" for i in range(9)]
    jitter = [f"covariance with jitter {10.0**power:g} is not positive definite" for power in (-10, -5)]
    assert failure_lines([*failures("Own", *nan), *failures("Own", *jitter), *failures("Other", nan[4])]) == [
        f"Own: 9 runs failed, the first: {nan[0]}",
        f"Own: 2 runs failed, the first: {jitter[0]}",
        f"Other: 1 run failed: {nan[4]}",
    ]


def test_one_reason_is_no_first_of_several():
    assert failure_lines(failures("Own", "out of memory", "out of memory")) == [
        "Own: 2 runs failed: out of memory"
    ]


def test_what_is_beyond_a_few_lines_is_counted():
    kinds = [failures("Own", *[f"reason {letter}"] * (9 - place)) for place, letter in enumerate("abcdefgh")]
    lines = failure_lines([each for of_kind in reversed(kinds) for each in of_kind])
    assert lines[:2] == ["Own: 9 runs failed: reason a", "Own: 8 runs failed: reason b"]
    assert lines[5:] == ["9 runs failed for 3 other reasons: see the report"]
    assert failure_lines([]) == []


def test_the_command_line_of_a_run_has_flags_that_are_set_and_every_value():
    app = typer.Typer()

    @app.command()
    def job(
        context: typer.Context,
        name: str,
        task: Annotated[list[str] | None, typer.Option()] = None,
        iterations: Iterations = 3,
        repeats: Repeats = False,
    ) -> None:
        typer.echo(command_line(context))

    def told(*arguments: str) -> str:
        return CliRunner().invoke(app, arguments).stdout.strip()

    assert told("one").endswith(" one --iterations 3")
    assert told("one", "--repeats", "--task", "a*", "--task", "b").endswith(
        " one --task 'a*' --task b --iterations 3 --repeats"
    )
