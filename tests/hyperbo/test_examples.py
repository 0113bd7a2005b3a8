"""The examples of `docs/examples` that need no data run as they are documented."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


@pytest.mark.parametrize(
    ("name", "settings", "last_line"),
    [
        ("theory_bounds", {"simulations": 20}, "simulated: 0."),
        ("table_prior", {}, "regret 0.000"),
        ("unmatched_data", {"iterations": 10}, "NLL per trial of a new task: "),
    ],
)
def test_example(
    name: str, settings: dict[str, int], last_line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"](**settings)
    assert last_line in capsys.readouterr().out.splitlines()[-1]
