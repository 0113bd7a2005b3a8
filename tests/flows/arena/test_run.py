"""Running the arena: what is left out, what does not apply, how it goes on after a kill, and its scores."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from arena_cases import BUDGETS, METHODS, run_tiny, tiny_protocol, write_versions
from hyperbo_flows.arena import run as run_module
from hyperbo_flows.arena import scoring
from hyperbo_flows.arena.board import clusters_in_words, write_board
from hyperbo_flows.arena.protocol import PROTOCOL, Division, Part
from hyperbo_flows.arena.provide import provide_data
from hyperbo_flows.arena.run import chosen_methods, run_divisions
from hyperbo_flows.arena.scoring import Scored, score_division
from hyperbo_flows.arena.verify import verify_bundle
from hyperbo_flows.cli import arena as commands
from hyperbo_flows.cli.main import app
from hyperbo_flows.experiments import simulations
from typer.testing import CliRunner

from hyperbo.errors import InvalidInputError, NotAvailableError
from hyperbo.evaluation.records.join import Evaluation

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_versions(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def bundle(data, tmp_path_factory):
    return run_tiny(data, tmp_path_factory.mktemp("runs"))


def test_a_method_of_ones_own_runs_beside_the_simplest_baselines():
    assert chosen_methods(()) == PROTOCOL.methods
    assert chosen_methods(("own:Own", "Rand")) == ("own:Own", "Rand", "Best-average")


def test_a_division_whose_data_are_not_there_or_are_others_is_left_out(data, tmp_path, capsys):
    protocol = tiny_protocol(data)
    mini, rows = protocol.divisions
    absent = replace(mini, parts=(replace(mini.parts[0], dataset="trials/absent:1.0.0"),))
    other = replace(mini, name="other", parts=(replace(mini.parts[0], content_hash="0" * 64),))
    results = run_divisions((absent, other, rows), ("Rand",), tmp_path, data, "the command")
    assert set(results) == {"rows"}
    told = capsys.readouterr().out
    assert "division mini: left out" in told
    assert "hyperbo data add absent FILES --space absent.toml" in told
    assert "division other: left out" in told
    with pytest.raises(NotAvailableError):
        run_divisions((absent,), ("Rand",), tmp_path, data, "the command")


def test_a_damaged_version_is_said_to_be_so(data, tmp_path, capsys):
    damaged = write_versions(tmp_path / "data")
    (records,) = (damaged / "pd1/mini/1.0.0").glob("*.parquet")
    records.write_bytes(records.read_bytes()[:-1])
    mini = tiny_protocol(data).divisions[0]
    with pytest.raises(NotAvailableError, match="every division is left out"):
        run_divisions((mini,), ("Rand",), tmp_path / "runs", damaged, "the command")
    assert records.name in capsys.readouterr().out


def test_a_method_that_cannot_be_imported_is_not_told_as_missing_data(data, tmp_path, capsys):
    divisions = tiny_protocol(data).divisions
    with pytest.raises(NotAvailableError, match="'no_module:X' cannot be imported"):
        run_divisions(divisions, ("no_module:X", "Rand"), tmp_path, data, "the command")
    assert "left out" not in capsys.readouterr().out


@pytest.mark.parametrize(("named", "code"), [(("quick", "hpob"), 1), (("quick",), 0), ((), 0)])
def test_a_named_division_that_is_left_out_is_an_error(named, code, tmp_path, monkeypatch):
    bundle = SimpleNamespace(parts={})
    monkeypatch.setattr("hyperbo_flows.arena.run.run_divisions", lambda *_: {"mini-1": None})
    monkeypatch.setattr("hyperbo_flows.arena.results.bundle_of", lambda *_: bundle)
    monkeypatch.setattr("hyperbo_flows.arena.bundle.write_bundle", lambda *_: None)
    monkeypatch.setattr("hyperbo_flows.arena.board.write_board", lambda *_: [])
    result = CliRunner().invoke(app, ["arena", "run", *named, "--out", str(tmp_path)])
    assert result.exit_code == code, result.output
    assert ("left out: hpob" in result.stderr) == bool(code)


def test_data_that_are_missing_are_neither_built_nor_downloaded(bundle, data, tmp_path):
    folder = tmp_path / "data"
    told = verify_bundle(bundle, folder, tiny_protocol(data))
    assert any(f"hyperbo arena data mini --data {folder}" in line for line in told)
    assert any(f"hyperbo data build hpob/4796:1.0.0 --raw FOLDER --data {folder}" in line for line in told)
    with pytest.raises(NotAvailableError, match="--raw FOLDER"):
        provide_data(PROTOCOL.division("hpob"), folder)
    result = CliRunner().invoke(app, ["arena", "data", "taskset", "--data", str(folder)])
    assert result.exit_code == 1
    space = Path(run_module.__file__).parent / "taskset.toml"
    assert f"hyperbo data add taskset FILES --space {space} " in result.stderr
    assert not folder.exists()


def test_a_method_without_the_inputs_that_it_needs_does_not_apply(data, tmp_path):
    bundle = run_tiny(data, tmp_path, ("EGP", *METHODS[:2]))
    assert bundle.does_not_apply == {part: {"EGP": run_module.NEEDS_MATCHED} for part in ("mini", "rows")}
    for page in write_board(bundle, tmp_path / "page.html", tiny_protocol(data)):
        assert set(page.does_not_apply) == {"EGP"}
        assert "EGP" not in page.board.methods
    assert (tmp_path / "page.html").read_text().count("does not apply: ") == 2


def test_what_is_done_is_not_done_again_after_a_kill(data, tmp_path, monkeypatch, capsys):
    begun = []

    def until_killed(arm, label, *arguments):
        begun.append(label)
        if label == "Portfolio":
            raise KeyboardInterrupt
        return simulate_and_record(arm, label, *arguments)

    simulate_and_record = simulations.simulate_and_record
    monkeypatch.setattr("hyperbo_flows.experiments.evaluate.simulate_and_record", until_killed)
    with pytest.raises(KeyboardInterrupt):
        run_tiny(data, tmp_path)
    assert begun == list(METHODS)
    monkeypatch.undo()
    capsys.readouterr()
    again = run_tiny(data, tmp_path)
    told = capsys.readouterr().out
    assert "division mini: 0 priors, of which 0 present; 12 simulations, of which 8 present" in told
    assert "evaluate Rand: 4 simulations present, nothing to do" in told
    assert again.parts["mini"].metadata["run_ids"]


def plain_scores(records, division, normalised, runs_per_prior):
    """Mean regret by method, cluster, seed of the prior and budget, by loops over rows."""
    cells = {}
    for (method, _, seed), rows in records.groupby(["method", "task", "seed"]):
        rows = rows.sort_values("iteration")
        for budget in division.budgets:
            tried = [*rows["y"].head(budget), *rows["y_initial"].dropna().head(1)]
            regret = rows["y_max"].iloc[0] - max(tried)
            if normalised:
                regret /= rows["y_max"].iloc[0] - rows["y_min"].iloc[0]
            key = method, rows["task_dataset"].iloc[0], int(seed) // runs_per_prior, budget
            cells.setdefault(key, []).append(regret)
    return {key: sum(regrets) / len(regrets) for key, regrets in cells.items()}


@pytest.mark.parametrize(("name", "normalised", "runs"), [("mini", False, 1), ("rows", True, 2)])
def test_scores_are_those_of_plain_loops(bundle, data, name, normalised, runs):
    (division,) = [each for each in tiny_protocol(data).divisions if each.name == name]
    scored = score_division(division, dict(bundle.parts))
    assert scored.incomplete == {}
    expected = plain_scores(bundle.parts[name].records, division, normalised, runs)
    assert len(scored.scores) == len(expected) == 3 * 2 * 2 * len(BUDGETS)
    for row in scored.scores.itertuples():
        seed = int(str(row.prior).rpartition(" ")[2])
        np.testing.assert_allclose(
            row.regret, expected[row.method, row.cluster, seed, row.budget], atol=1e-12
        )
    # A prior of rows is tested on both tasks.
    assert scored.scores["prior"].nunique() == (2 if name == "rows" else 4)


def test_a_method_that_lacks_a_run_is_not_ranked(bundle, data, tmp_path):
    part = bundle.parts["mini"]
    lost = (part.records["method"] == "Portfolio") & (part.records["seed"] == 1)
    parts = {**bundle.parts, "mini": Evaluation(part.records[~lost], part.metadata)}
    mini, rows = write_board(replace(bundle, parts=parts), tmp_path / "page.html", tiny_protocol(data))
    assert mini.incomplete == {"Portfolio": "3 runs missing"}
    assert "Portfolio" not in mini.board.methods
    assert "Portfolio" in rows.board.methods


def test_where_no_method_is_whole_there_is_no_page_and_a_line_says_why(bundle, data, tmp_path):
    part = bundle.parts["mini"]
    parts = {**bundle.parts, "mini": Evaluation(part.records[part.records["seed"] == 0], part.metadata)}
    with pytest.raises(
        InvalidInputError, match=r"division mini: no method has every run .*Rand: 3 runs miss"
    ):
        write_board(replace(bundle, parts=parts), tmp_path / "page.html", tiny_protocol(data))


def test_a_method_that_ran_in_one_of_two_parts_of_one_cluster_is_not_ranked(monkeypatch):
    parts = tuple(Part(name, "a/b:1.0.0", "", "observed", "hpob", (0,)) for name in ("one", "two"))
    # The same clusters are in both parts.
    rows = {
        part: [(method, f"{part}, 0", cluster, 1, 0.5) for method in methods for cluster in ("x", "y")]
        for part, methods in (("one", ("Rand", "Own")), ("two", ("Rand",)))
    }
    monkeypatch.setattr(
        scoring,
        "score_part",
        lambda part, *_: Scored(pd.DataFrame(rows[part.name], columns=list(scoring.SCORES)), {}),
    )
    evaluations = {part.name: Evaluation(pd.DataFrame(), {}) for part in parts}
    scored = score_division(Division("both", "", parts), evaluations)
    assert scored.incomplete == {"Own": "it was not run in all parts of the division"}
    assert set(scored.scores["method"]) == {"Rand"}


def test_clusters_have_one_word_in_every_division():
    words = {each.name: clusters_in_words(each, 6) for each in PROTOCOL.divisions}
    assert words == {
        "quick": "6 task datasets",
        "pd1-mini": "6 task datasets",
        "taskset": "6 tasks",
        "hpob": "6 task datasets",
        "synthetic": "6 families",
    }
    assert clusters_in_words(PROTOCOL.division("synthetic"), 1) == "1 family"


def test_a_long_name_is_shown_whole_in_a_narrow_terminal(bundle, data, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    (mini, _) = write_board(bundle, tmp_path / "page.html", tiny_protocol(data))
    name = "".join(f"{place:03d}" for place in range(40))
    commands._tell([replace(mini, incomplete={name: "3 runs missing"})])
    told = capsys.readouterr().out
    first = [line.split("│")[1].strip() for line in told.splitlines() if line.startswith("│")]
    assert name in "".join(first)


def test_an_unknown_method_or_division_is_refused(tmp_path):
    for arguments in (["run", "nowhere"], ["run", "quick", "--method", "Nothing"]):
        result = CliRunner().invoke(app, ["arena", *arguments, "--runs", str(tmp_path)])
        assert result.exit_code == 1
    with pytest.raises(InvalidInputError):
        PROTOCOL.division("nowhere")


@pytest.mark.slow
def test_a_strangers_method_of_fifty_lines_runs_is_verified_merged_and_shown(tmp_path, monkeypatch):
    source = EXAMPLES / "arena_nearest.py"
    assert len(source.read_text().splitlines()) <= 50
    monkeypatch.syspath_prepend(EXAMPLES)
    method, where = "arena_nearest:Nearest", ["--data", str(tmp_path / "data")]
    folders = ["--runs", str(tmp_path / "runs"), *where]

    def call(*arguments):
        result = CliRunner().invoke(app, ["arena", *arguments], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.output

    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    call("run", "quick", "--method", method, "--out", str(mine), *folders)
    call("run", "quick", "--method", "Portfolio", "--out", str(theirs), *folders)
    told = call("verify", str(mine / "bundle.zip"), "--again", "1", *where)
    assert "verified, 450 observations" in told
    both = tmp_path / "both.zip"
    call("merge", str(mine / "bundle.zip"), str(theirs / "bundle.zip"), "--out", str(both))
    assert "verified, 600 observations" in call("verify", str(both), *where)
    page = tmp_path / "page.html"
    assert "Portfolio" in call("page", str(both), "--out", str(page))
    assert method in page.read_text()
