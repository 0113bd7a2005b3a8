"""Versions of anyone's own trials: the first, the next, and all that is refused."""

from __future__ import annotations

import gzip
import json
import logging
import math
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import mlcroissant as mlc
import pytest
import tensorflow_datasets as tfds
from trial_files import SPACE, row, write_bytes, write_lines

import pd1_builder
import pd1_builder.trials.recipe
from hyperbo.data.search_space import SearchSpace
from hyperbo.errors import InvalidInputError, VersionConflictError
from pd1_builder.version.catalog import versions
from pd1_builder.version.manifest import Manifest

TASKSET = Path("../shared/data/taskset")
EXAMPLE = Path("docs/examples/taskset.toml")


@pytest.fixture
def space(tmp_path: Path) -> Path:
    path = tmp_path / "space.toml"
    path.write_text(SPACE)
    return path


def task(folder: Path, name: str, trials: int = 4) -> Path:
    """A file of one task; tasks share their inputs."""
    return write_lines(
        folder / f"{name}.jsonl", [row(str(i), task=name, layers=1 + i) for i in range(trials)]
    )


def reads(data_dir: Path, reference: str = "trials/own") -> list[dict[str, Any]]:
    return pd1_builder.load(reference, None, as_="dataframe", data_dir=data_dir).to_dict("records")


def left(data_dir: Path) -> list[str]:
    return sorted(path.name for path in data_dir.glob("trials/own/*") if path.name[0] != ".")


def test_the_first_version_keeps_what_it_was_made_of(tmp_path: Path, space: Path) -> None:
    manifest = pd1_builder.add("own", [task(tmp_path, "net")], space, data_dir=tmp_path / "data")
    assert (manifest.reference, manifest.parent) == ("trials/own:1.0.0", None)
    assert manifest.counts == {"trials": {"net": {"done": 4}}}
    assert manifest.blocks == ()  # One task alone shares its inputs with none.
    kept = tmp_path / "data/trials/own/1.0.0/raw"
    assert (kept / "space.toml").read_text() == SPACE
    assert (kept / "net.jsonl").read_bytes() == (tmp_path / "net.jsonl").read_bytes()
    assert [(file.name, file.rows) for file in manifest.raw_files] == [("net.jsonl", 4), ("space.toml", None)]
    first = reads(tmp_path / "data")[0]
    assert (first["trial_id"], first["task_dataset"], first["source"]) == ("net/0", "net", "net.jsonl:1")
    assert (first["hyperparameters.rate"], first["metrics.loss"], first["y"]) == (0.1, 0.25, -0.25)
    assert first["x.rate"] == pytest.approx(0.5, rel=1e-15)
    data = pd1_builder.load("trials/own", data_dir=tmp_path / "data")
    assert (len(data.tasks), data.blocks) == (1, ())


def test_more_files_make_the_next_version_and_the_same_files_none(
    tmp_path: Path, space: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data_dir = tmp_path / "data"
    one, two = task(tmp_path, "one"), task(tmp_path, "two")
    pd1_builder.add("own", [one], space, data_dir=data_dir)
    shutil.copy(one, tmp_path / "renamed.jsonl")
    # The space file is remembered, and so are the files: a renamed copy of one brings nothing new.
    one.unlink()
    second = pd1_builder.add("own", [two, tmp_path / "renamed.jsonl"], data_dir=data_dir)
    assert (second.version, second.parent, second.rows("trials")) == ("1.1.0", "1.0.0", 8)
    assert [(block["tasks"], block["inputs"]) for block in second.blocks] == [(["one", "two"], 4)]
    with caplog.at_level(logging.INFO, "pd1_builder"):
        assert pd1_builder.add("own", [two], space, data_dir=data_dir) == second
    assert "trials/own:1.1.0 holds these files already; nothing to do" in caplog.messages
    assert [each.version for each in versions(data_dir)] == ["1.0.0", "1.1.0"]
    # It can be built again from what it keeps, and is the same.
    kept = data_dir / "trials/own/1.1.0/raw"
    files, kept_space = pd1_builder.trials.recipe.raw_in(kept)
    again = pd1_builder.add("own", files, kept_space, data_dir=tmp_path / "other")
    assert again.content_hash == second.content_hash


def test_a_new_dataset_needs_a_space_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"trials/own is new .* --space"):
        pd1_builder.add("own", [task(tmp_path, "one")], data_dir=tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_a_changed_space_file_changes_what_records_mean(tmp_path: Path, space: Path) -> None:
    data_dir, one = tmp_path / "data", task(tmp_path, "one")
    first = pd1_builder.add("own", [one], space, data_dir=data_dir)
    space.write_text(SPACE.replace("upper = 8", "upper = 15"))
    with pytest.raises(VersionConflictError, match=r"the change is major.*use 2\.0\.0"):
        pd1_builder.add("own", [one], space, data_dir=data_dir)
    assert left(data_dir) == ["1.0.0"]
    second = pd1_builder.add("own", [one], space, version="2.0.0", data_dir=data_dir)
    assert (second.parent, second.content_hash == first.content_hash) == ("1.0.0", False)
    assert [record["x.layers"] for record in reads(data_dir)] == [0.0, 1 / 14, 2 / 14, 3 / 14]


ABOUT = '''
[about]
description = """
Runs of *Köln*.

## How
By hand.
"""
licence = "https://creativecommons.org/licenses/by/4.0/"
citation = "@misc{own, title = {Our runs}}"
'''


def said(data_dir: Path, version: str) -> list[str]:
    """What a version says of its trials where TFDS reads it: description, licence and citation."""
    info = tfds.builder_from_directory(str(data_dir / "trials/own" / version)).info
    return [info.description, info.redistribution_info.license, info.citation]


# mlcroissant uses what rdflib has since deprecated.
@pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated:DeprecationWarning")
def test_the_owners_description_reaches_card_croissant_and_tfds(tmp_path: Path, space: Path) -> None:
    space.write_text(SPACE + ABOUT)
    manifest = pd1_builder.add("own", [task(tmp_path, "one")], space, data_dir=tmp_path)
    words = ["Runs of *Köln*.\n\n## How\nBy hand.", "https://creativecommons.org/licenses/by/4.0/"]
    citation = "@misc{own, title = {Our runs}}"
    assert said(tmp_path, "1.0.0") == [*words, citation]
    folder = tmp_path / "trials/own/1.0.0"
    croissant = mlc.Dataset(jsonld=folder / "croissant.json").metadata
    assert [croissant.description, *(croissant.license or ()), croissant.cite_as] == [
        *words,
        citation,
    ]
    assert (croissant.ctx.issues.errors, croissant.ctx.issues.warnings) == (set(), set())
    card = (folder / "README.md").read_text()
    assert '\nlicense: "cc-by-4.0"\n' in card
    assert "\n# trials/own 1.0.0\n\n> Runs of *Köln*.\n>\n> ## How\n> By hand.\n\nTuning trials as" in card
    assert f"\n```bibtex\n{citation}\n```\n" in card
    assert "\n## About trials\n" in card
    # It decides no record: the manifest's parameters are those that do.
    assert "Köln" not in manifest.to_json()


def test_a_changed_description_makes_a_patch_version(
    tmp_path: Path, space: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one = task(tmp_path, "one")
    first = pd1_builder.add("own", [one], space, data_dir=tmp_path)
    assert said(tmp_path, "1.0.0")[0].startswith("# Trials: your own tuning trials")
    assert said(tmp_path, "1.0.0")[1:] == ["", ""]
    space.write_text(SPACE + ABOUT)
    second = pd1_builder.add("own", [one], space, data_dir=tmp_path)
    assert (second.version, second.parent, second.content_hash) == ("1.0.1", "1.0.0", first.content_hash)
    # The same in other words of TOML is the same.
    space.write_text(f"# Ours.\n{SPACE}{ABOUT}")
    with caplog.at_level(logging.INFO, "pd1_builder"):
        assert pd1_builder.add("own", [one], space, data_dir=tmp_path) == second
    assert "trials/own:1.0.1 holds these files already; nothing to do" in caplog.messages
    third = pd1_builder.add("own", [task(tmp_path, "two")], data_dir=tmp_path)
    assert (third.version, said(tmp_path, "1.1.0")) == ("1.1.0", said(tmp_path, "1.0.1"))
    space.write_text(SPACE)
    pd1_builder.add("own", [one], space, data_dir=tmp_path)
    assert said(tmp_path, "1.1.1") == said(tmp_path, "1.0.0")
    assert left(tmp_path) == ["1.0.0", "1.0.1", "1.1.0", "1.1.1"]


def test_a_space_file_that_keeps_another_metric_adds_to_the_records(tmp_path: Path, space: Path) -> None:
    one = task(tmp_path, "one")
    space.write_text(SPACE.replace('metrics = ["test"]\n', "").replace('"note"', '"note", "test"'))
    pd1_builder.add("own", [one], space, data_dir=tmp_path)
    space.write_text(SPACE + ABOUT)
    assert pd1_builder.add("own", [one], space, data_dir=tmp_path).version == "1.1.0"


def test_a_file_that_changes_while_it_is_read_is_not_published(
    tmp_path: Path, space: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = task(tmp_path, "one")
    described = pd1_builder.trials.recipe.find_trial_files

    def then_a_sweep_changes_it(*arguments: Any) -> Any:
        found = described(*arguments)
        one.write_text(one.read_text().replace("0.25", "0.75"))
        return found

    monkeypatch.setattr(pd1_builder.trials.recipe, "find_trial_files", then_a_sweep_changes_it)
    with pytest.raises(InvalidInputError, match=r"one\.jsonl: the file changed while it was read"):
        pd1_builder.add("own", [one], space, data_dir=tmp_path / "data")
    assert left(tmp_path / "data") == []


def test_a_value_a_rounding_outside_of_its_range_is_kept_clipped_and_counted(
    tmp_path: Path, space: Path
) -> None:
    rows = [row(str(i), task="net", layers=layers) for i, layers in enumerate((1, 8.0000002, 8))]
    manifest = pd1_builder.add("own", [write_lines(tmp_path / "a.jsonl", rows)], space, data_dir=tmp_path)
    assert (manifest.rounded, manifest.rejects) == (1, 0)
    records = reads(tmp_path)
    assert [record["hyperparameters.layers"] for record in records] == [1.0, 8.0000002, 8.0]
    assert [record["x.layers"] for record in records] == [0.0, 1.0, 1.0]
    folder = tmp_path / "trials/own/1.0.0"
    card = (folder / "README.md").read_text()
    assert "a rounding outside of its range, where `x` is clipped | 1 |" in card
    assert pd1_builder.verify("trials/own:1.0.0", tmp_path) == manifest
    # Where no record is so, the manifest does not speak of it.
    plain = pd1_builder.add("plain", [task(tmp_path, "one")], space, data_dir=tmp_path)
    assert (plain.rounded, '"rounded"' in plain.to_json()) == (0, False)


BAD_ROWS: dict[str, tuple[dict[str, Any] | bytes, str]] = {
    "half a row": (b'{"task": "net", "tri', "is not JSON"),
    "out of range": (row("z", layers=9), r"layers = 9.0 is outside \[1.0, 8.0\]"),
    "quotes the words of a full disk": (
        row("z", status="No space left on device"),
        "status is 'No space left on device'",
    ),
}


def good_and_bad(folder: Path, *bad: dict[str, Any] | bytes) -> list[Path]:
    good = [row(str(i), task="net", layers=1 + i) for i in range(4)]
    return [write_lines(folder / "good.jsonl", good), write_lines(folder / "strange.jsonl", bad)]


@pytest.mark.parametrize("case", ["half a row", "quotes the words of a full disk"])
def test_a_bad_row_stops_the_build_and_names_its_place(tmp_path: Path, space: Path, case: str) -> None:
    content, message = BAD_ROWS[case]
    files = good_and_bad(tmp_path, content)
    with pytest.raises(InvalidInputError, match=rf"1 of 5 rows rejected, .*; strange\.jsonl:1: {message}"):
        pd1_builder.add("own", files, space, data_dir=tmp_path / "data")
    assert left(tmp_path / "data") == []


def test_bad_rows_are_set_aside_where_a_share_of_them_is_allowed(tmp_path: Path, space: Path) -> None:
    files = good_and_bad(tmp_path, *(content for content, _ in BAD_ROWS.values()))
    manifest = pd1_builder.add("own", files, space, data_dir=tmp_path / "data", max_reject_share=0.9)
    assert (manifest.rows("trials"), manifest.rejects) == (4, len(BAD_ROWS))
    path = tmp_path / "data/trials/own/1.0.0/rejects.jsonl"
    rejects = [json.loads(line) for line in path.read_text().splitlines()]
    for line, (reject, (_, message)) in enumerate(zip(rejects, BAD_ROWS.values(), strict=True), start=1):
        assert (reject["file"], reject["line"]) == ("strange.jsonl", line)
        assert re.match(message, reject["reason"])


BAD_FILES: dict[str, tuple[str, bytes, str]] = {
    "truncated gzip": ("a.jsonl.gz", b"", r"a\.jsonl\.gz:\d+: cannot be read"),
    "a header alone": ("a.csv", b"task,trial,status,loss,test,curve,hp.rate,layers\n", "there is no trial"),
    "another kind": ("a.txt", b"x", r"a\.txt: not a kind of file that is read; give \.jsonl"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file_leaves_nothing(tmp_path: Path, space: Path, case: str) -> None:
    name, content, message = BAD_FILES[case]
    path = write_bytes(tmp_path / name, content)
    if case == "truncated gzip":
        lines = b"".join(json.dumps(row(str(i), loss=i / 7)).encode() + b"\n" for i in range(300))
        path.write_bytes(gzip.compress(lines, mtime=0)[:-500])
    with pytest.raises(InvalidInputError, match=message):
        pd1_builder.add("own", [path], space, data_dir=tmp_path / "data", max_reject_share=1.0)
    assert left(tmp_path / "data") == []


@pytest.mark.parametrize("name", ["../own", "Own", "own/x", "", "own:1.0.0"])
def test_names_are_plain(tmp_path: Path, space: Path, name: str) -> None:
    with pytest.raises(InvalidInputError, match="write <name>/<config>"):
        pd1_builder.add(name, [task(tmp_path, "one")], space, data_dir=tmp_path / "data")
    assert not (tmp_path / "data").exists()


@pytest.fixture(scope="module")
def taskset(tmp_path_factory: pytest.TempPathFactory) -> tuple[Manifest, Path]:
    files = sorted(TASKSET.glob("*.jsonl.gz"))[:2]
    if not files:
        pytest.skip(f"{TASKSET} is not here: trials of TaskSet, one file of JSON lines for each task")
    data_dir = tmp_path_factory.mktemp("data")
    return pd1_builder.add("taskset", files, EXAMPLE, data_dir=data_dir), data_dir


@pytest.mark.slow
def test_taskset_is_read_row_by_row_bit_for_bit(taskset: tuple[Manifest, Path]) -> None:
    manifest, data_dir = taskset
    raw = {}
    for file in sorted(TASKSET.glob("*.jsonl.gz"))[:2]:
        lines = gzip.decompress(file.read_bytes()).splitlines()
        raw |= {f"{each['task']}/{each['trial']}": each for each in map(json.loads, lines)}
    records = reads(data_dir, "trials/taskset")
    assert len(records) == len(raw) == manifest.rows("trials") == 2000
    for record in records:
        row = raw[record["trial_id"]]
        value = row["best_valid/loss"]
        assert repr(record["metrics.best_valid/loss"]) == repr(math.nan if value is None else value)
        for name in ("learning_rate", "beta1", "beta2", "epsilon", "l1", "l2"):
            assert record[f"hyperparameters.{name}"] == row[f"hp.{name}"]
        for name in ("train/loss", "valid/loss", "test/loss"):
            curve = [math.nan if each is None else each for each in row[name]]
            assert repr(record[f"curves.{name}"].tolist()) == repr(curve)
        if record["status"] == "done" and value is not None:
            assert record["y"] == pytest.approx(-math.log(value + 1e-10), rel=1e-12, abs=1e-12)
        else:
            assert math.isnan(record["y"])
    for name, statuses in manifest.counts["trials"].items():
        assert statuses == Counter(row["status"] for row in raw.values() if row["task"] == name)


def test_the_inputs_of_taskset_are_one_matched_block(taskset: tuple[Manifest, Path]) -> None:
    manifest, data_dir = taskset
    assert [block["inputs"] for block in manifest.blocks] == [1000]
    data = pd1_builder.load("trials/taskset", data_dir=data_dir)
    assert isinstance(data.search_space, SearchSpace)
    (block,) = data.blocks
    assert block.y.shape == (1000, 2)
    assert len(block.x[0]) == 8
