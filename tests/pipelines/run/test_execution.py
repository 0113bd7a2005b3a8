from __future__ import annotations

from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.utils import interactive_utils
from hyperbo_pipelines.run.execution import Execution


def test_a_pipeline_runs_in_a_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def in_a_notebook() -> bool:
        return True

    monkeypatch.setattr(interactive_utils, "is_in_ipython", in_a_notebook)
    Execution().run(lambda pipeline: pipeline | beam.Create([1]) | beam.io.WriteToText(str(tmp_path / "one")))
    assert [path.read_text() for path in tmp_path.glob("one*")] == ["1\n"]
    assert interactive_utils.is_in_ipython is in_a_notebook
