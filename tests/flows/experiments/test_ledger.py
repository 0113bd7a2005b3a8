from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hyperbo_flows.experiments import ledger
from hypothesis import given
from hypothesis import strategies as st

from hyperbo.errors import InvalidInputError, VersionConflictError

IDENTITY = {"kind": "prior", "method": "H-NLL", "seed": 3, "configuration": {"hidden": (32, 32)}}

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
IDENTITIES = st.dictionaries(st.text(), VALUES, max_size=5)


def reversed_everywhere(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reversed_everywhere(value[key]) for key in reversed(value)}
    return [reversed_everywhere(item) for item in value] if isinstance(value, list) else value


def write_result(folder: Path) -> None:
    (folder / "result").write_text("result")


@given(IDENTITIES)
def test_the_order_of_keys_does_not_matter(identity):
    assert ledger.run_id(reversed_everywhere(identity)) == ledger.run_id(identity)


@given(IDENTITIES, st.text(), VALUES, VALUES)
def test_another_value_is_another_run(identity, key, one, other):
    # repr tells apart what Python's == does not and JSON does: 1, 1.0 and True.
    ids = ledger.run_id(identity | {key: one}), ledger.run_id(identity | {key: other})
    same = repr(reversed_everywhere(one)) == repr(reversed_everywhere(other)) or one == other
    assert same or ids[0] != ids[1]


def test_a_tuple_is_the_list_that_it_becomes_in_a_file():
    assert ledger.run_id(IDENTITY) == ledger.run_id(IDENTITY | {"configuration": {"hidden": [32, 32]}})


@pytest.mark.parametrize("value", [float("nan"), Path("x"), {1, 2}, b"x"])
def test_what_is_not_plain_json_is_refused(value):
    with pytest.raises(InvalidInputError, match=r"^run of kind 'prior': not plain JSON: "):
        ledger.run_id({"kind": "prior", "value": value})


def test_a_finished_run_is_found_with_its_outcome_and_facts(tmp_path):
    assert ledger.find(tmp_path, IDENTITY) is None
    assert ledger.finish(tmp_path, IDENTITY, write_result, {"seconds": 1.5})
    folder = ledger.find(tmp_path, IDENTITY)
    assert folder == tmp_path / "prior" / ledger.run_id(IDENTITY)
    assert (folder / "result").read_text() == "result"
    assert ledger.facts(folder) == {"seconds": 1.5}
    assert ledger.find(tmp_path, IDENTITY | {"seed": 4}) is None


def test_a_run_that_fails_while_it_is_written_leaves_nothing(tmp_path):
    def fail(folder: Path) -> None:
        write_result(folder)
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        ledger.finish(tmp_path, IDENTITY, fail, {})
    assert ledger.find(tmp_path, IDENTITY) is None
    assert list((tmp_path / "prior").iterdir()) == []


def test_a_killed_run_is_invisible_and_is_done_again(tmp_path):
    script = f"""
        import os, signal
        from pathlib import Path
        from hyperbo_flows.experiments import ledger

        def die(folder):
            (folder / "result").write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)

        ledger.finish(Path({str(tmp_path)!r}), {IDENTITY!r}, die, {{}})
    """
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    leftovers = list((tmp_path / "prior").iterdir())
    assert [path.name[:1] for path in leftovers] == ["."]
    assert ledger.find(tmp_path, IDENTITY) is None

    assert ledger.finish(tmp_path, IDENTITY, write_result, {})
    assert [path.name for path in (tmp_path / "prior").iterdir()] == [ledger.run_id(IDENTITY)]


def test_of_several_that_finish_at_once_one_records_the_run(tmp_path):
    def finish(number: int) -> bool:
        return ledger.finish(
            tmp_path, IDENTITY, lambda folder: (folder / "by").write_text(str(number)), {"number": number}
        )

    with ThreadPoolExecutor(8) as pool:
        recorded = list(pool.map(finish, range(8)))
    assert recorded.count(True) == 1
    folder = ledger.find(tmp_path, IDENTITY)
    assert folder is not None
    winner = recorded.index(True)
    assert (folder / "by").read_text() == str(winner)
    assert ledger.facts(folder) == {"number": winner}
    assert list((tmp_path / "prior").iterdir()) == [folder]


def test_of_two_processes_one_records_the_run(tmp_path):
    script = f"""
        import sys
        from pathlib import Path
        from hyperbo_flows.experiments import ledger

        sys.stdin.readline()
        write = lambda folder: (folder / "by").write_text(sys.argv[1])
        print(ledger.finish(Path({str(tmp_path)!r}), {IDENTITY!r}, write, {{}}))
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    processes = [
        subprocess.Popen([*command, str(i)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for i in range(2)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [process.communicate(timeout=60)[0].strip() for process in processes]
    assert sorted(answers) == ["False", "True"]
    folder = ledger.find(tmp_path, IDENTITY)
    assert folder is not None
    assert (folder / "by").read_text() == str(answers.index("True"))


def test_a_folder_of_another_identity_is_not_taken_for_the_run(tmp_path):
    ledger.finish(tmp_path, IDENTITY, write_result, {})
    path = ledger.run_folder(tmp_path, IDENTITY) / "identity.json"
    path.write_text(path.read_text().replace("H-NLL", "H-EKL"))
    with pytest.raises(VersionConflictError, match="is not the identity"):
        ledger.find(tmp_path, IDENTITY)
    path.write_text("{")
    with pytest.raises(VersionConflictError, match=r"identity\.json cannot be read"):
        ledger.find(tmp_path, IDENTITY)


def test_facts_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(InvalidInputError, match=r"facts\.json: cannot be read"):
        ledger.facts(tmp_path)
