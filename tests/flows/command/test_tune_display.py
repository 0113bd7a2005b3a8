from __future__ import annotations

import io

import pytest
import rich
from hyperbo_flows.command.display import View, best_trial, shown, table
from rich.console import Console

from hyperbo.tuning.trial import TuningTrial

TRIALS = [
    TuningTrial(0, {"rate": 0.5, "kind": "[bold]"}, "infeasible", None),
    TuningTrial(1, {"rate": 0.0123456, "kind": "sgd"}, "done", 0.25),
    TuningTrial(2, {"rate": 0.25, "kind": "sgd"}, "failed", None),
    TuningTrial(3, {"rate": 0.75, "kind": "sgd"}, "done", 0.125),
    TuningTrial(4, {"rate": 0.125, "kind": "sgd"}, "running", None),
]
VIEW = View(TRIALS, 9, "minimize", ["rate", "kind"], {0: 3.25, 4: 60.0}, {0: "exit code 3"})


def test_the_best_trial_is_that_of_the_direction() -> None:
    assert best_trial(VIEW) is TRIALS[3]
    assert best_trial(View(TRIALS, 9, "maximize", [], {}, {})) is TRIALS[1]
    assert best_trial(View(TRIALS[:1], 9, "minimize", [], {}, {})) is None


def test_a_table_has_the_last_trials_and_where_the_run_stands() -> None:
    console = Console(width=100)
    with console.capture() as captured:
        console.print(table(VIEW))
    text = captured.get()
    assert "3 of 9, best 0.125 in trial 3, 1 infeasible, 1 running" in text
    # A choice may look like markup.
    assert "[bold]" in text
    assert "0.01235" in text


def test_a_table_of_many_trials_has_the_best_and_the_last() -> None:
    many = [TuningTrial(number, {}, "done", 0.25 if number == 7 else 0.5) for number in range(40)]
    made = table(View(many, 50, "minimize", [], {}, {}))
    shown_numbers = [str(cell) for cell in made.columns[0].cells]
    assert shown_numbers == ["7", *(str(number) for number in range(29, 40))]
    assert [row.style for row in made.rows] == ["bold", *[None] * 11]


def test_without_a_terminal_there_is_a_line_for_each_trial_that_ends(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with shown() as show:
        for ended in (None, 0, 3):
            show(VIEW, ended)
    standing = "3 of 9, best 0.125 in trial 3, 1 infeasible, 1 running"
    assert capsys.readouterr().out.splitlines() == [
        f"trial 0: infeasible, exit code 3 in 3.2 s; {standing}; rate=0.5 kind=[bold]",
        f"trial 3: 0.125; {standing}; rate=0.75 kind=sgd",
    ]


def test_a_terminal_has_a_table_and_lines_for_what_went_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Console(file=io.StringIO(), force_terminal=True, width=150)
    monkeypatch.setattr(rich, "get_console", lambda: screen)
    with shown() as show:
        show(VIEW, 3)
        show(VIEW, 0)
    assert isinstance(screen.file, io.StringIO)
    text = screen.file.getvalue()
    assert "objective" in text
    assert "trial 0: infeasible, exit code 3" in text
    assert "trial 3: 0.125" not in text
