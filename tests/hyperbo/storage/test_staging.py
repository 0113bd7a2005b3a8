from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from hyperbo.errors import VersionConflictError
from hyperbo.storage.staging import lock, publish, stage


def test_a_second_builder_waits_and_says_so(tmp_path: Path) -> None:
    target, waiting, events = tmp_path / "1.0.0", threading.Event(), []

    def second() -> None:
        with lock(target, waiting.set):
            events.append("second")

    thread = threading.Thread(target=second)
    with lock(target, lambda: events.append("never")):
        thread.start()
        assert waiting.wait(10)
        events.append("first")
    thread.join(10)
    assert events == ["first", "second"]


def test_a_lock_under_which_nothing_was_made_leaves_nothing(tmp_path: Path) -> None:
    target = tmp_path / "trials" / "own" / "1.0.0"

    def refuse() -> None:
        with lock(target, lambda: None):
            assert target.parent.is_dir()
            raise RuntimeError("refused")

    with pytest.raises(RuntimeError, match="refused"):
        refuse()
    assert list(tmp_path.iterdir()) == []
    # Folders that were there before, or that hold something else, stay.
    (tmp_path / "trials").mkdir()
    with lock(target, lambda: None):
        (target.parent / "other").touch()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["other", "own", "trials"]
    with lock(target, lambda: None):
        target.mkdir()
    assert (target.parent / ".1.0.0.lock").is_file()


def test_only_one_holds_the_lock_while_lock_files_come_and_go(tmp_path: Path) -> None:
    target, inside, largest = tmp_path / "own" / "1.0.0", 0, 0
    errors: list[BaseException] = []

    def often() -> None:
        nonlocal inside, largest
        try:
            for _ in range(100):
                with lock(target, lambda: None):
                    inside += 1
                    largest = max(largest, inside)
                    time.sleep(0)
                    inside -= 1
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert (errors, largest, files) == ([], 1, [])


def test_stage_removes_its_folder_and_those_of_dead_builds_of_the_version(tmp_path: Path) -> None:
    (tmp_path / ".building-1.0.0-dead").mkdir()
    (tmp_path / ".building-1.0.0-dead" / "shard").write_text("half")
    (tmp_path / ".building-1.0.1-alive").mkdir()

    def fail() -> None:
        with stage(tmp_path / "1.0.0") as staging:
            assert staging.parent == tmp_path
            assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
                [".building-1.0.1-alive", staging.name]
            )
            raise RuntimeError("failed")

    with pytest.raises(RuntimeError, match="failed"):
        fail()
    assert [p.name for p in tmp_path.iterdir()] == [".building-1.0.1-alive"]


def test_publish_moves_the_whole_folder_and_replaces_nothing(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / "deep" / "file").write_text(name)
    publish(tmp_path / "first", tmp_path / "1.0.0")
    with pytest.raises(VersionConflictError, match="never changes"):
        publish(tmp_path / "second", tmp_path / "1.0.0")
    assert (tmp_path / "1.0.0" / "deep" / "file").read_text() == "first"
    assert not (tmp_path / "first").exists()
