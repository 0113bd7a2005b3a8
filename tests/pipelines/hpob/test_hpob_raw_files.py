from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hyperbo_pipelines.hpob import raw_files
from hyperbo_pipelines.hpob.raw_files import count_rows, find_hpob_files, read_initialisations
from hypothesis import given
from hypothesis import strategies as st
from synthetic_hpob import write_hpob

from hyperbo.errors import InvalidInputError

REAL = Path("../shared/data/hpob")
real = pytest.mark.skipif(not REAL.is_dir(), reason="the HPO-B rows are not at ../shared/data/hpob")


def change(path: Path, edit: Any) -> None:
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))


@real
def test_real_files_are_described() -> None:
    files = find_hpob_files(REAL)
    assert [(f.path.name, f.split, f.phase, f.rows) for f in files.data] == [
        ("meta-train-dataset.json", "train", 0, 14 * 256),
        ("meta-validation-dataset.json", "validation", 0, 4 * 256),
        ("meta-test-dataset.json", "test", 0, 6 * 256),
    ]
    for file in (*files.data, files.initialisations, files.descriptors):
        content = file.path.read_bytes()
        assert (file.sha256, file.size) == (hashlib.sha256(content).hexdigest(), len(content))


def test_rows_are_those_of_the_search_space_that_is_built(tmp_path: Path) -> None:
    write_hpob(tmp_path, rows_per_dataset=7, datasets=3)
    assert [f.rows for f in find_hpob_files(tmp_path).data] == [42, 42, 42]
    assert [f.rows for f in find_hpob_files(tmp_path, "5636").data] == [21, 21, 21]
    with pytest.raises(InvalidInputError, match="have no rows of search space 1"):
        find_hpob_files(tmp_path, "1")


def test_some_files_may_be_absent_and_any_gzipped(tmp_path: Path) -> None:
    write_hpob(tmp_path, rows_per_dataset=5)
    plain = tmp_path / "meta-test-dataset.json"
    (tmp_path / "meta-test-dataset.json.gz").write_bytes(gzip.compress(plain.read_bytes(), mtime=0))
    with pytest.raises(InvalidInputError, match=r"come twice, as .*json and .*json\.gz"):
        find_hpob_files(tmp_path)
    plain.unlink()
    (tmp_path / "meta-train-dataset.json").unlink()
    assert [(f.split, f.rows) for f in find_hpob_files(tmp_path).data] == [("validation", 20), ("test", 20)]


JSON_DATASETS = st.dictionaries(
    st.from_regex(r"[0-9]{1,6}", fullmatch=True),
    st.tuples(st.lists(st.lists(st.floats(0, 1), max_size=3), max_size=5), st.booleans()),
    max_size=3,
)


@given(
    content=st.dictionaries(st.sampled_from(["4796", "5636", "9"]), JSON_DATASETS),
    indent=st.sampled_from([None, 1]),
    piece=st.integers(1, 40),
)
def test_the_count_is_that_of_the_parsed_rows_wherever_pieces_end(
    content: Any, indent: int | None, piece: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    document = {
        space: {
            # Either order of the two fields.
            dataset: dict([("X", rows), ("y", [[0.5]] * len(rows))][:: -1 if swapped else 1])
            for dataset, (rows, swapped) in datasets.items()
        }
        for space, datasets in content.items()
    }
    path = tmp_path_factory.mktemp("count") / "meta-test-dataset.json"
    path.write_text(json.dumps(document, indent=indent))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(raw_files, "_PIECE", piece)
        assert count_rows(path) == {
            (space, dataset): len(fields["X"])
            for space, datasets in document.items()
            for dataset, fields in datasets.items()
        }


def test_a_file_cut_short_names_the_place(tmp_path: Path) -> None:
    write_hpob(tmp_path)
    path = tmp_path / "meta-validation-dataset.json"
    path.write_bytes(path.read_bytes()[:-300])
    with pytest.raises(InvalidInputError, match=r"^meta-validation-dataset\.json#5636/101: is cut short"):
        find_hpob_files(tmp_path)


@pytest.mark.parametrize(("keep", "place"), [(5, ""), (400, "#4796/100")])
def test_truncated_gzip(keep: int, place: str, tmp_path: Path) -> None:
    write_hpob(tmp_path)
    path = tmp_path / "meta-validation-dataset.json"
    (tmp_path / "meta-validation-dataset.json.gz").write_bytes(
        gzip.compress(path.read_bytes(), mtime=0)[:keep]
    )
    path.unlink()
    with pytest.raises(
        InvalidInputError, match=rf"^meta-validation-dataset\.json\.gz{place}: cannot be read"
    ):
        find_hpob_files(tmp_path)


def test_folders_without_the_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="no such folder"):
        find_hpob_files(tmp_path / "absent")
    with pytest.raises(InvalidInputError, match="no raw file found; expected meta-"):
        find_hpob_files(tmp_path)


@pytest.mark.parametrize("name", ["bo-initializations.json", "meta-dataset-descriptors.json"])
def test_initialisations_and_descriptors_are_required(name: str, tmp_path: Path) -> None:
    write_hpob(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(InvalidInputError, match=f"{name} is missing"):
        find_hpob_files(tmp_path)


def test_a_dataset_in_two_splits_is_refused(tmp_path: Path) -> None:
    write_hpob(tmp_path)
    (tmp_path / "meta-test-dataset.json").write_bytes((tmp_path / "meta-train-dataset.json").read_bytes())
    with pytest.raises(InvalidInputError, match=r"dataset 0 of search space 4796 is in meta-train"):
        find_hpob_files(tmp_path)


def test_zero_rows(tmp_path: Path) -> None:
    write_hpob(tmp_path)
    for split in ("train", "validation", "test"):
        (tmp_path / f"meta-{split}-dataset.json").write_text("{}")
    with pytest.raises(InvalidInputError, match="the raw files have no rows"):
        find_hpob_files(tmp_path)


def test_a_search_space_that_is_not_described(tmp_path: Path) -> None:
    write_hpob(tmp_path)
    change(tmp_path / "meta-dataset-descriptors.json", lambda content: content.pop("4796"))
    with pytest.raises(InvalidInputError, match="search spaces 4796 are not described"):
        find_hpob_files(tmp_path)
    assert sum(f.rows for f in find_hpob_files(tmp_path, "5636").data) == 120


def test_an_initialisation_may_not_name_a_row_that_is_not_there(tmp_path: Path) -> None:
    write_hpob(tmp_path, rows_per_dataset=20)
    path = tmp_path / "bo-initializations.json"
    change(path, lambda content: content["5636"]["200"]["test1"].append(19))
    find_hpob_files(tmp_path)
    change(path, lambda content: content["5636"]["200"]["test1"].append(20))
    with pytest.raises(InvalidInputError, match=r"#5636/200/test1: names the row 20 of a dataset of 20 rows"):
        find_hpob_files(tmp_path)
    find_hpob_files(tmp_path, "4796")


def test_initialisations_of_datasets_that_no_file_holds_are_of_no_concern(tmp_path: Path) -> None:
    write_hpob(tmp_path)
    path = tmp_path / "bo-initializations.json"
    change(path, lambda content: content.update({"1": {"2": {"test0": [10**6]}}}))
    find_hpob_files(tmp_path)
    assert read_initialisations(path)["1"]["2"]["test0"] == (10**6,)


@pytest.mark.parametrize(
    "content",
    ["[]", '{"1": []}', '{"1": {"2": {"a": 3}}}', '{"1": {"2": {"a": [-1]}}}', '{"1": {"2": {"a": [true]}}}'],
)
def test_initialisations_of_another_layout(content: str, tmp_path: Path) -> None:
    path = tmp_path / "bo-initializations.json"
    path.write_text(content)
    with pytest.raises(InvalidInputError, match=r"^bo-initializations\.json: is"):
        read_initialisations(path)
