from __future__ import annotations

import io

import pytest
import rich
from hyperbo_flows.process import progress
from rich.console import Console


def test_without_a_terminal_lines_come_at_the_start_and_some_seconds_apart(capsys, monkeypatch):
    times = iter([100.0, 100.5, 101.0, 111.0, 112.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(times))
    with progress.progress_line("train", "steps") as report:
        for done in range(4):
            report(done, 3)
    assert capsys.readouterr().out.splitlines() == [
        "train: 0 of 3 steps, 0 s",
        "train: 2 of 3 steps, 11 s, 0.182 a second, 6 s left",
    ]


def test_the_rate_leaves_out_what_was_finished_before(capsys, monkeypatch):
    times = iter([100.0, 100.0, 120.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(times))
    with progress.progress_line("collect", "trials") as report:
        report(50, 100)
        report(90, 100)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "collect: 90 of 100 trials, 20 s, 2 a second, 5 s left"


def test_on_a_terminal_a_bar_shows_the_counts(monkeypatch):
    screen = Console(file=io.StringIO(), force_terminal=True, width=100)
    monkeypatch.setattr(rich, "get_console", lambda: screen)
    with progress.progress_line("train", "steps") as report:
        report(2, 3)
    assert isinstance(screen.file, io.StringIO)
    assert "train" in screen.file.getvalue()
    assert "2/3" in screen.file.getvalue()


def test_an_error_passes_through():
    with pytest.raises(KeyboardInterrupt), progress.progress_line("train", "steps"):
        raise KeyboardInterrupt
