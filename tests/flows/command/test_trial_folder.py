from __future__ import annotations

from pathlib import Path

import pytest
from hyperbo_flows.command import trial_folder
from hyperbo_flows.command.trial_folder import (
    STDERR,
    STDOUT,
    Claim,
    CommandResult,
    last_lines,
    number_in,
    read_result,
    result_of,
    write_result,
)

from hyperbo.errors import InvalidInputError


@pytest.mark.parametrize(
    ("line", "number"),
    [("0.5", 0.5), ("  -3e-4 ", -3e-4), ("7", 7.0), ("error=0.5", 0.5), ("error: 0.5", 0.5), ("a = 2", 2.0)],
)
def test_a_line_that_is_a_number(line: str, number: float) -> None:
    assert number_in(line) == number


@pytest.mark.parametrize(
    "line", ["", "done", "epoch 3: 0.5", "error: 0.5 %", "12:30:05", '{"error": 0.5}', "error:", "0.5 0.6"]
)
def test_a_line_that_is_none(line: str) -> None:
    assert number_in(line) is None


def written(folder: Path, output: bytes) -> CommandResult:
    (folder / STDOUT).write_bytes(output)
    return result_of(folder, 0, 1.5, None, None)


def test_the_last_line_counts_that_is_not_empty(tmp_path: Path) -> None:
    assert written(tmp_path, b"0.75\n0.5\n\n  \n") == CommandResult("done", 0.5, "", 1.5, True)
    # What came before is not read: neither how much it is, nor what.
    assert written(tmp_path, b"\xff" * 1_000_000 + b"\r100%\r0.25").objective == 0.25
    assert written(tmp_path, b"0.5\nfinished\n").status == "failed"
    assert written(tmp_path, b"").status == "failed"


def test_the_end_of_what_was_said_is_shown(tmp_path: Path) -> None:
    (tmp_path / STDOUT).write_text("step 1\nstep 2\n")
    (tmp_path / STDERR).write_text("\n")
    assert last_lines(tmp_path) == f"the end of {tmp_path / STDOUT}:\n    step 1\n    step 2"
    (tmp_path / STDERR).write_text("".join(f"line {number}\n" for number in range(9)))
    assert last_lines(tmp_path).splitlines()[1:] == [f"    line {number}" for number in range(4, 9)]
    (tmp_path / STDOUT).write_text("")
    (tmp_path / STDERR).write_text("")
    assert last_lines(tmp_path) == f"there is no output ({tmp_path / STDERR} is empty)"


def test_a_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read_result(tmp_path) is None
    result = CommandResult("infeasible", None, "exit code 3", 0.125, False)
    write_result(tmp_path, result, trial=3)
    assert read_result(tmp_path) == result
    (tmp_path / "outcome.json").write_text("{}")
    with pytest.raises(InvalidInputError, match=r"outcome\.json: is damaged"):
        read_result(tmp_path)


def test_only_what_a_gone_process_of_this_host_left_is_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "0000"
    assert Claim.of_gone_process(folder) is None
    claim = Claim.new(folder)
    assert Claim.of_gone_process(folder) is None
    claim._file.close()
    monkeypatch.setattr(trial_folder.socket, "gethostname", lambda: "another")
    assert Claim.of_gone_process(folder) is None
    monkeypatch.undo()
    taken = Claim.of_gone_process(folder)
    assert taken is not None
    # By one of several that try.
    assert Claim.of_gone_process(folder) is None
    taken.release(folder)
    assert Claim.of_gone_process(folder) is None
    with pytest.raises(InvalidInputError, match="0000: cannot be made: File exists"):
        Claim.new(folder)
