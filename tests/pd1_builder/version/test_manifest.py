from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from version_folders import record, write_version

from pd1_builder.version.manifest import read_manifest


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_manifest_holds_no_number_that_json_lacks(value: float, tmp_path: Path) -> None:
    folder = write_version(tmp_path, "pd1/mini:1.0.0", {"one": [record("a", "a/0")]})
    manifest = read_manifest(folder)
    assert manifest.to_json() == (folder / "manifest.json").read_text()
    with pytest.raises(ValueError, match="not JSON compliant"):
        replace(manifest, parameters={"range": [0.0, value]}).to_json()
