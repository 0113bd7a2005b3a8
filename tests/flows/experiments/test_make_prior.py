"""Priors trained by hand and pulled: a real web server, damaged files, a real training."""

import functools
import http.server
import json
import threading

import numpy as np
import pytest
from hyperbo_flows.cli.main import app
from hyperbo_flows.experiments.make_prior import pull_prior, train_prior
from typer.testing import CliRunner
from unattended import SPACE, TASKS, drop

from hyperbo.errors import InvalidInputError, NotAvailableError
from hyperbo.evaluation.measures.worth import METHODS
from hyperbo.priors.catalog import add_prior, promote
from hyperbo.priors.file import read_prior
from hyperbo.priors.names import SHIPPED, prior_folder, read_line
from pd1_builder import add

LINE = "pd1-mini/h-ekl"


@pytest.fixture
def own_version(tmp_path):
    """A version of trials of one's own: where it lies, its reference, its tasks."""
    (tmp_path / "space.toml").write_text(SPACE)
    (tmp_path / "inbox").mkdir()
    drop(tmp_path, "first.csv", 0, 30)
    data = tmp_path / "data"
    arguments = [
        "add",
        "own",
        tmp_path / "inbox/first.csv",
        "--space",
        tmp_path / "space.toml",
        "--data",
        data,
    ]
    added = CliRunner().invoke(app, ["data", *map(str, arguments)])
    assert added.exit_code == 0, added.output
    return data, "trials/own:1.0.0", TASKS


@pytest.fixture
def other_catalog(tmp_path):
    """A copy of the shipped catalogue, and the address of a web server of it."""
    folder = tmp_path / "other_catalog"
    for path in SHIPPED.rglob("*"):
        if path.is_file():
            target = folder / path.relative_to(SHIPPED)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def test_a_prior_is_pulled_from_a_web_server(other_catalog, tmp_path):
    _, url = other_catalog
    catalog = tmp_path / "priors"
    prior_id = pull_prior(catalog, LINE, url)
    assert prior_folder(catalog, LINE).name == prior_id == prior_folder(SHIPPED, LINE).name
    assert (
        read_prior(prior_folder(catalog, LINE)).description
        == read_prior(prior_folder(SHIPPED, LINE)).description
    )
    (decision,) = read_line(catalog, LINE).history
    assert decision.reason == f"Pulled from {url}."
    # Again, and by its identifier: nothing changes.
    assert pull_prior(catalog, f"{LINE}@{prior_id[:6]}", url) == prior_id
    assert len(read_line(catalog, LINE).history) == 1


def test_what_was_pulled_last_is_in_service_also_when_it_comes_back(other_catalog, tmp_path):
    folder, url = other_catalog
    catalog, line = tmp_path / "priors", "x/y"
    first, second = (
        add_prior(folder, line, prior_folder(SHIPPED, name)) for name in ("pd1-mini/h-ekl", "pd1-mini/h-nll")
    )
    for prior_id in (first, second):
        promote(folder, line, prior_id, "Made.", {})
    for prior_id in (first, second, first, second):
        assert pull_prior(catalog, f"{line}@{prior_id}", url) == prior_id
        assert read_line(catalog, line).current == prior_id


def test_what_is_not_what_the_identifier_names_is_refused(other_catalog, tmp_path):
    folder, url = other_catalog
    (arrays,) = (folder / LINE).glob("*/prior.safetensors")
    arrays.write_bytes(arrays.read_bytes()[:-1] + b"\1")
    with pytest.raises(InvalidInputError, match="another content than prior"):
        pull_prior(tmp_path / "priors", LINE, url)
    assert not (tmp_path / "priors").exists()


@pytest.mark.parametrize(
    ("reference", "error", "message"),
    [
        ("pd1-mini/none", NotAvailableError, r"pd1-mini/none/current\.json: cannot be read"),
        (f"{LINE}@ffff", NotAvailableError, "no prior .*; priors of the line: [0-9a-f]{16}"),
        ("h-ekl", InvalidInputError, "write <name>/<name>, such as pd1-mini/h-ekl"),
    ],
)
def test_what_cannot_be_pulled_is_said(other_catalog, tmp_path, reference, error, message):
    with pytest.raises(error, match=message):
        pull_prior(tmp_path / "priors", reference, other_catalog[1])


def test_the_commands_list_describe_and_pull(other_catalog, tmp_path):
    def run(*arguments):
        return CliRunner().invoke(app, ["prior", *arguments, "--catalog", str(tmp_path / "priors")])

    listed = run("list")
    assert "shipped:\npd1-mini/h-ekl" in listed.stdout
    assert run("pull", LINE, "--from", other_catalog[1]).exit_code == 0
    assert run("list").stdout.index("Pulled from") < run("list").stdout.index("shipped:\npd1-mini/h-nll")
    described = run("info", LINE).stdout
    assert f"promoted: {read_line(tmp_path / 'priors', LINE).history[0].at}, Pulled from" in described
    assert "  source: http://127.0.0.1" in described
    assert "output_warping: negative_log, of an objective to minimize" in described
    assert str(SHIPPED) in run("current", "pd1-mini/h-nll").stdout


def test_a_prior_is_trained_on_trials_of_ones_own(own_version, tmp_path):
    data, reference, tasks = own_version
    catalog = tmp_path / "priors"
    prior_id = train_prior(catalog, "own/h-nll", reference, "H-NLL", steps=2, data_dir=data)
    description = read_prior(prior_folder(catalog, f"own/h-nll@{prior_id}")).description
    assert (description.dataset, description.preparation) == (reference, "online")
    assert set(description.training_tasks) == set(tasks)
    assert description.training["steps"] == 2
    with pytest.raises(InvalidInputError, match=r"STBO trains no prior .*; use H-NLL or H-EKL"):
        train_prior(catalog, "own/stbo", reference, "STBO", data_dir=data)


@pytest.mark.slow
def test_training_says_why_and_what_the_prior_is_worth_and_info_shows_it_again(own_version, tmp_path):
    data, reference, _ = own_version
    catalog = tmp_path / "priors"

    def run(*arguments):
        return CliRunner().invoke(app, ["prior", *map(str, arguments), "--catalog", str(catalog)])

    trained = run("train", "own/mine", "--dataset", reference, "--data", data, "--steps", 100, "--worth", 2)
    assert trained.exit_code == 0, trained.output
    assert "H-NLL: tasks share 30 inputs" in trained.stdout
    lines = trained.stdout.splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith("worth: "))
    assert "2 tasks of 3, drawn by seed 0" in lines[first]
    table = lines[first + 2 : first + 7]
    assert [row.split("  ")[0] for row in table] == ["after", *METHODS]
    described = run("info", "own/mine").stdout
    assert all(row in described for row in table)
    (decision,) = read_line(catalog, "own/mine").history
    assert decision.evidence["worth"]["verdict"] == "cannot be told"
    assert "share 30 inputs" in decision.evidence["chosen"]


@pytest.mark.slow
def test_h_ekl_is_measured_on_what_shares_inputs_without_the_part_left_out(own_version, tmp_path, capsys):
    data, reference, _ = own_version
    train_prior(tmp_path / "priors", "own/h-ekl", reference, "H-EKL", data_dir=data, worth=2)
    said = capsys.readouterr().out
    assert "H-EKL, as asked: tasks share 30 inputs" in said
    assert "worth: 2 tasks of 3" in said


MIXED = """
objective = "error"
direction = "minimize"
warping = "negative_log"
task = { column = "task" }
task_dataset = { column = "dataset" }
trial_id = { column = "trial" }
status = { column = "status" }
parameters = [
  { name = "optimizer", type = "choice", levels = ["sgd", "adam", "rmsprop"] },
  { name = "momentum", lower = 0.0, upper = 0.99, condition = { parameter = "optimizer", values = ["sgd"] } },
  { name = "depth", type = "integer", lower = 1, upper = 8 },
  { name = "batch_norm", type = "boolean" },
]
"""


@pytest.mark.slow
def test_a_prior_over_levels_integers_and_conditions_is_trained_measured_and_read_again(tmp_path, capsys):
    (tmp_path / "space.toml").write_text(MIXED)
    random, rows = np.random.default_rng(0), []
    for number in range(75):
        optimizer, depth = str(random.choice(["sgd", "adam", "rmsprop"])), int(random.integers(1, 9))
        row = {"task": f"t{number % 3}", "dataset": f"d{number % 3}", "trial": str(number), "status": "done"}
        row |= {
            "optimizer": optimizer,
            "depth": depth,
            "batch_norm": bool(number % 2),
            "error": 0.1 + 0.05 * abs(depth - 4),
        }
        rows.append(row | ({"momentum": random.uniform(0.0, 0.9)} if optimizer == "sgd" else {}))
    (tmp_path / "trials.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    data = tmp_path / "data"
    add("mixed", [tmp_path / "trials.jsonl"], tmp_path / "space.toml", data_dir=data)
    train_prior(tmp_path / "priors", "own/mixed", "trials/mixed:1.0.0", steps=100, data_dir=data, worth=3)
    assert "worth: 3 tasks left out one by one" in capsys.readouterr().out
    space = read_prior(prior_folder(tmp_path / "priors", "own/mixed")).description.search_space
    assert [each.type for each in space.parameters] == ["choice", "real", "integer", "boolean"]


def test_one_task_is_refused_before_anything_is_trained(tmp_path, own_version):
    data, _, _ = own_version
    alone = tmp_path / "one.csv"
    inbox = (tmp_path / "inbox/first.csv").read_text().splitlines()
    alone.write_text("\n".join([inbox[0], *(line for line in inbox[1:] if TASKS[0] in line)]) + "\n")
    added = CliRunner().invoke(
        app,
        ["data", "add", "alone", str(alone), "--space", str(tmp_path / "space.toml"), "--data", str(data)],
    )
    assert added.exit_code == 0, added.output
    with pytest.raises(InvalidInputError, match=r"trials/alone:1\.0\.0: one task only"):
        train_prior(tmp_path / "priors", "own/alone", "trials/alone:1.0.0", data_dir=data, worth=10)
    assert not (tmp_path / "priors").exists()
