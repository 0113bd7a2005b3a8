"""A catalogue of real priors on a real disk: its history, what can be wrong, killed processes."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prior_files import write_prior

from hyperbo.errors import InvalidInputError, NotAvailableError, VersionConflictError
from hyperbo.priors.catalog import add_prior, hold_back, promote, roll_back
from hyperbo.priors.file import read_prior
from hyperbo.priors.history import Line, PriorDecision, served
from hyperbo.priors.names import default_prior_dir, lines, load_prior, prior_folder, read_line

ROOT = Path(__file__).parents[3]
LINE = "pd1-mini/h-nll"


@pytest.fixture(scope="module")
def priors(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """Three priors in folders; read them only."""
    root = tmp_path_factory.mktemp("priors")
    return tuple(write_prior(root / str(seed), seed) for seed in range(3))


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    return tmp_path / "catalog"


def add_all(catalog: Path, priors: tuple[Path, ...]) -> list[str]:
    return [add_prior(catalog, LINE, prior) for prior in priors]


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# What is in service


def test_a_prior_is_promoted_held_back_and_rolled_back(catalog: Path, priors: tuple[Path, ...]) -> None:
    one, two, three = add_all(catalog, priors)
    assert read_line(catalog, LINE) == Line(LINE, None, ())
    assert promote(catalog, LINE, one, "The first.", {})
    assert hold_back(catalog, LINE, three, "No better.", {"difference": 0.5})
    assert read_line(catalog, LINE).current == one
    assert promote(catalog, LINE, two, "Better.", {"difference": -0.5})
    assert promote(catalog, LINE, three, "Better still.", {"difference": -0.25})
    found = read_line(catalog, LINE)
    assert found.current == three
    assert found.in_service_by == found.history[-1]
    assert [(each.prior, each.action, each.reason, each.evidence) for each in found.history] == [
        (one, "promoted", "The first.", {}),
        (three, "held_back", "No better.", {"difference": 0.5}),
        (two, "promoted", "Better.", {"difference": -0.5}),
        (three, "promoted", "Better still.", {"difference": -0.25}),
    ]
    times = [each.at for each in found.history]
    assert times == sorted(times)
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", at) for at in times)

    assert roll_back(catalog, LINE) == two
    assert roll_back(catalog, LINE, "Two bad runs.") == one
    after = read_line(catalog, LINE)
    assert (after.current, after.history[:4]) == (one, found.history)
    assert [(each.prior, each.action, each.reason, each.evidence) for each in after.history[4:]] == [
        (three, "rolled_back", f"Back to {two}.", {"back_to": two}),
        (two, "rolled_back", "Two bad runs.", {"back_to": one}),
    ]
    with pytest.raises(NotAvailableError, match=f"no prior to roll back to; {one} is the first in service"):
        roll_back(catalog, LINE)
    assert read_line(catalog, LINE) == after
    # What was rolled back stays so until there is new evidence.
    assert not promote(catalog, LINE, two, "Better.", {"difference": -0.5})
    assert read_line(catalog, LINE) == after
    assert promote(catalog, LINE, two, "Better after all.", {"difference": -0.75})
    assert read_line(catalog, LINE).current == two
    assert roll_back(catalog, LINE) == one


@pytest.mark.parametrize("decide", [promote, hold_back])
def test_the_same_decision_is_recorded_once(
    catalog: Path, priors: tuple[Path, ...], decide: Callable[..., bool]
) -> None:
    one, two, _ = add_all(catalog, priors)
    assert decide(catalog, LINE, one, "Said so.", {"seeds": (0, 1)})
    before = snapshot(catalog)
    assert not decide(catalog, LINE, one, "Said otherwise.", {"seeds": [0, 1]})
    assert snapshot(catalog) == before
    assert decide(catalog, LINE, one, "Said so.", {"seeds": [0, 1, 2]})
    assert decide(catalog, LINE, two, "Said so.", {"seeds": [0, 1]})
    assert len(read_line(catalog, LINE).history) == 3


def test_rolling_back_needs_a_prior_before(catalog: Path, priors: tuple[Path, ...]) -> None:
    one, two, _ = add_all(catalog, priors)
    with pytest.raises(NotAvailableError, match="no prior to roll back to; none was ever promoted"):
        roll_back(catalog, LINE)
    promote(catalog, LINE, one, "", {})
    promote(catalog, LINE, one, "Again better than itself.", {"again": True})
    with pytest.raises(NotAvailableError, match="no prior to roll back to"):
        roll_back(catalog, LINE)
    promote(catalog, LINE, two, "", {})
    shutil.rmtree(catalog / LINE / one)
    with pytest.raises(NotAvailableError, match=f"no prior {one} in .*; priors there: "):
        roll_back(catalog, LINE)
    assert read_line(catalog, LINE).current == two


@given(st.lists(st.sampled_from(["promoted a", "promoted b", "promoted c", "held_back a", "rolled_back"])))
def test_the_history_is_a_stack(steps: list[str]) -> None:
    line, stack = Line("a/b"), []
    for step in steps:
        action, _, prior = step.partition(" ")
        if action == "rolled_back":
            if len(stack) < 2:
                with pytest.raises(InvalidInputError, match="cannot be rolled back"):
                    line.after(PriorDecision(line.current or "a", "rolled_back", "", "", {}))
                continue
            prior = stack.pop()
        elif action == "promoted" and stack[-1:] != [prior]:
            stack.append(prior)
        line = line.after(PriorDecision(prior, action, "", "", {}))  # pyright: ignore[reportArgumentType]
        assert line.current == (stack[-1] if stack else None)
        assert served(line.history) == tuple(stack)


# Entries


def test_an_entry_is_named_by_its_content_and_made_once(catalog: Path, priors: tuple[Path, ...]) -> None:
    prior_id = add_prior(catalog, LINE, priors[0])
    digests = [
        hashlib.sha256((priors[0] / name).read_bytes()).digest()
        for name in ("prior.safetensors", "prior.json")
    ]
    assert prior_id == hashlib.sha256(b"".join(digests)).hexdigest()[:16]
    entry = catalog / LINE / prior_id
    assert snapshot(entry) == snapshot(priors[0])
    made = entry.stat().st_mtime_ns
    assert add_prior(catalog, LINE, entry) == prior_id
    assert entry.stat().st_mtime_ns == made
    assert sorted(path.name for path in (catalog / LINE).iterdir()) == [prior_id]
    # The same prior may serve two lines.
    assert add_prior(catalog, "other/line", priors[0]) == prior_id
    assert lines(catalog) == ("other/line", LINE)


def test_what_is_no_prior_is_not_added(catalog: Path, priors: tuple[Path, ...], tmp_path: Path) -> None:
    with pytest.raises(NotAvailableError, match=r"holds no prior\.json"):
        add_prior(catalog, LINE, tmp_path / "nowhere")
    shutil.copytree(priors[0], tmp_path / "mixed")
    shutil.copy(priors[1] / "prior.safetensors", tmp_path / "mixed")
    with pytest.raises(InvalidInputError, match=r"these are not the arrays that prior\.json describes"):
        add_prior(catalog, LINE, tmp_path / "mixed")
    assert not catalog.exists()


def test_a_prior_is_found_by_line_and_by_digits(catalog: Path, priors: tuple[Path, ...]) -> None:
    ids = add_all(catalog, priors)
    with pytest.raises(NotAvailableError, match="no prior is in service") as caught:
        prior_folder(catalog, LINE)
    assert all(prior_id in str(caught.value) for prior_id in ids)
    promote(catalog, LINE, ids[1], "", {})
    assert prior_folder(catalog, LINE) == catalog / LINE / ids[1]
    found = load_prior(LINE, catalog)
    jax.tree.map(np.testing.assert_array_equal, found.gp, read_prior(priors[1]).gp)
    for prior_id in ids:
        unique = next(n for n in range(1, 17) if sum(each.startswith(prior_id[:n]) for each in ids) == 1)
        for digits in {unique, 16}:
            assert prior_folder(catalog, f"{LINE}@{prior_id[:digits]}") == catalog / LINE / prior_id


def test_digits_that_fit_two_priors_or_none_are_refused(catalog: Path, priors: tuple[Path, ...]) -> None:
    ids = add_all(catalog, priors)
    # A folder's name alone is looked at here: no two of so few priors share a first digit by chance.
    twin = ids[0][:15] + ("0" if ids[0][15] != "0" else "1")
    (catalog / LINE / twin).mkdir()
    with pytest.raises(InvalidInputError, match=f"@{ids[0][:15]} fits several priors: .*; give more digits"):
        prior_folder(catalog, f"{LINE}@{ids[0][:15]}")
    absent = next(digit for digit in "0123456789abcdef" if not any(each.startswith(digit) for each in ids))
    with pytest.raises(NotAvailableError, match=f"no prior {absent} in .*; priors there: "):
        prior_folder(catalog, f"{LINE}@{absent}")
    for malformed in ("", "xyz", "0" * 17, "../.."):
        with pytest.raises(InvalidInputError, match="write 1 to 16 hexadecimal digits after the @"):
            prior_folder(catalog, f"{LINE}@{malformed}")


def test_an_entry_that_was_changed_is_never_served(catalog: Path, priors: tuple[Path, ...]) -> None:
    one, two, _ = add_all(catalog, priors)
    promote(catalog, LINE, one, "", {})
    description = catalog / LINE / one / "prior.json"
    description.write_text(description.read_text().replace('"seed": 3', '"seed": 4'))
    read_prior(catalog / LINE / one)  # it looks whole
    damaged = r"these are not the files that were added; remove the folder and add the prior again"
    for use in (
        lambda: prior_folder(catalog, LINE),
        lambda: add_prior(catalog, LINE, priors[0]),
        lambda: promote(catalog, LINE, one, "", {"new": 1}),
    ):
        with pytest.raises(InvalidInputError, match=damaged):
            use()
    (catalog / LINE / two / "prior.json").unlink()
    with pytest.raises(InvalidInputError, match=damaged):
        prior_folder(catalog, f"{LINE}@{two}")
    shutil.rmtree(catalog / LINE / one)
    assert add_prior(catalog, LINE, priors[0]) == one
    assert prior_folder(catalog, LINE) == catalog / LINE / one


# Bad input


@pytest.mark.parametrize(
    "name", ["", "h-nll", "pd1/mini/h-nll", "PD1/h-nll", "pd1/", "/h-nll", "../h-nll", "pd1/h.nll", "pd1/h\n"]
)
def test_a_bad_name_of_a_line_is_refused(catalog: Path, priors: tuple[Path, ...], name: str) -> None:
    for use in (
        lambda: add_prior(catalog, name, priors[0]),
        lambda: promote(catalog, name, "0" * 16, "", {}),
        lambda: prior_folder(catalog, name),
        lambda: read_line(catalog, name),
        lambda: roll_back(catalog, name),
    ):
        with pytest.raises(InvalidInputError, match="write two names of small letters"):
            use()
    assert not catalog.exists()


def test_an_unknown_line_or_prior_is_answered_with_those_there_are(
    catalog: Path, priors: tuple[Path, ...]
) -> None:
    with pytest.raises(NotAvailableError, match=r"no line pd1/other in .*; lines there: none"):
        read_line(catalog, "pd1/other")
    assert lines(catalog) == ()
    assert not catalog.exists()
    one = add_prior(catalog, LINE, priors[0])
    for use in (
        lambda: promote(catalog, "pd1/other", one, "", {}),
        lambda: roll_back(catalog, "pd1/other"),
        lambda: prior_folder(catalog, f"pd1/other@{one}"),
    ):
        with pytest.raises(NotAvailableError, match=f"no line pd1/other in .*; lines there: {LINE}"):
            use()
    with pytest.raises(NotAvailableError, match=f"no prior {'0' * 16} in .*; priors there: {one}"):
        promote(catalog, LINE, "0" * 16, "", {})
    with pytest.raises(InvalidInputError, match="the evidence is not plain JSON"):
        promote(catalog, LINE, one, "", {"difference": float("nan")})
    assert not (catalog / LINE / "current.json").exists()


def rewritten(change: Callable[[dict[str, Any]], Any]) -> Callable[[bytes], bytes]:
    def rewrite(content: bytes) -> bytes:
        stored = json.loads(content)
        change(stored)
        return json.dumps(stored).encode()

    return rewrite


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        lambda content: b"",
        lambda content: b"\xff" + content,
        rewritten(lambda stored: stored.pop("format")),
        rewritten(lambda stored: stored.pop("current")),
        rewritten(lambda stored: stored.update(current=None)),
        rewritten(lambda stored: stored["history"][0].update(mood="good")),
        rewritten(lambda stored: stored["history"][0].update(prior="../other")),
        rewritten(lambda stored: stored["history"][0].update(action="rolled_back")),
    ],
)
def test_a_damaged_history_is_named_and_left_alone(
    catalog: Path, priors: tuple[Path, ...], damage: Callable[[bytes], bytes]
) -> None:
    one = add_prior(catalog, LINE, priors[0])
    promote(catalog, LINE, one, "", {})
    path = catalog / LINE / "current.json"
    path.write_bytes(content := damage(path.read_bytes()))
    for use in (
        lambda: read_line(catalog, LINE),
        lambda: prior_folder(catalog, LINE),
        lambda: hold_back(catalog, LINE, one, "", {}),
        lambda: roll_back(catalog, LINE),
    ):
        with pytest.raises(InvalidInputError, match="damaged: ") as caught:
            use()
        assert caught.value.where == str(path)
    assert path.read_bytes() == content
    # The remedy that the message names.
    path.rename(path.with_suffix(".damaged"))
    assert read_line(catalog, LINE) == Line(LINE)
    assert promote(catalog, LINE, one, "", {})


def test_another_format_is_named(catalog: Path, priors: tuple[Path, ...]) -> None:
    promote(catalog, LINE, add_prior(catalog, LINE, priors[0]), "", {})
    path = catalog / LINE / "current.json"
    path.write_text(path.read_text().replace('"format": 1', '"format": 2'))
    with pytest.raises(VersionConflictError, match=r"current\.json: format 2 is not 1"):
        read_line(catalog, LINE)


def test_a_catalogue_that_cannot_be_written_says_so(tmp_path: Path, priors: tuple[Path, ...]) -> None:
    (tmp_path / "catalog").write_text("a file")
    with pytest.raises(InvalidInputError, match="cannot be written: ") as caught:
        add_prior(tmp_path / "catalog", LINE, priors[0])
    assert caught.value.where == str(tmp_path / "catalog" / LINE)


def test_the_default_catalogue(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HYPERBO_PRIOR_DIR", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_prior_dir() == tmp_path / "hyperbo" / "priors"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_prior_dir() == tmp_path / ".local" / "share" / "hyperbo" / "priors"
    monkeypatch.setenv("HYPERBO_PRIOR_DIR", str(tmp_path / "own"))
    assert default_prior_dir() == tmp_path / "own"


# Several processes, and processes that are killed

MANY = """
import sys
from pathlib import Path
from hyperbo.priors.catalog import promote
catalog, line, prior, process = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
for number in range(20):
    assert promote(Path(catalog), line, prior, "", {"process": process, "number": number})
"""

KILLED = """
import os, signal, sys
from pathlib import Path
from hyperbo.priors import catalog as prior_catalog

catalog, line, folder, step = sys.argv[1:]

def die(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)

def then_die(function):
    return lambda *arguments: die(function(*arguments))

if step == "before the entry appears":
    Path.rename = die
elif step == "after the entry appeared":
    prior_catalog.publish = then_die(prior_catalog.publish)
prior = prior_catalog.add_prior(Path(catalog), line, Path(folder))
if step == "before the decision is there":
    Path.replace = die
elif step == "after the decision is there":
    Path.replace = then_die(Path.replace)
prior_catalog.promote(Path(catalog), line, prior, "Better.", {"difference": -1.0})
"""
STEPS = [
    "before the entry appears",
    "after the entry appeared",
    "before the decision is there",
    "after the decision is there",
]


def start(program: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_of_two_processes_that_promote_at_once_none_is_lost(catalog: Path, priors: tuple[Path, ...]) -> None:
    one, two, _ = add_all(catalog, priors)
    processes = [start(MANY, catalog, LINE, prior, n) for n, prior in enumerate((one, two))]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        process.communicate(timeout=100)
        assert process.returncode == 0
    found = read_line(catalog, LINE)
    for process, prior in (("0", one), ("1", two)):
        own = [each for each in found.history if each.prior == prior]
        assert [each.evidence for each in own] == [{"process": process, "number": n} for n in range(20)]
    assert len(found.history) == 40
    assert found.current == found.history[-1].prior


@pytest.mark.slow
def test_a_process_killed_at_any_step_leaves_the_old_or_the_new(
    tmp_path: Path, priors: tuple[Path, ...]
) -> None:
    catalogs = [tmp_path / str(number) for number in range(len(STEPS))]
    for catalog in catalogs:
        promote(catalog, LINE, add_prior(catalog, LINE, priors[0]), "The first.", {})
    old = read_line(catalogs[0], LINE).current
    processes = [
        start(KILLED, catalog, LINE, priors[1], step) for catalog, step in zip(catalogs, STEPS, strict=True)
    ]
    for process in processes:
        process.communicate(timeout=100)
        assert process.returncode == -signal.SIGKILL
    for catalog, step in zip(catalogs, STEPS, strict=True):
        left = read_line(catalog, LINE)
        new = step == "after the decision is there"
        assert (left.current == old) is not new
        assert len(left.history) == 1 + new
        assert load_prior(LINE, catalog)
        # Started again, the flow does what is missing and decides nothing twice; no lock is left.
        prior = add_prior(catalog, LINE, priors[1])
        assert promote(catalog, LINE, prior, "Better.", {"difference": -1.0}) is not new
        after = read_line(catalog, LINE)
        assert (after.current, len(after.history)) == (prior, 2)
        assert not list((catalog / LINE).glob(".building-*"))
        assert len([path for path in (catalog / LINE).iterdir() if path.is_dir()]) == 2
