"""The chain in one process, with real priors, files and server: champion, backfill, what is told."""

from __future__ import annotations

import http.server
import json
import queue
import shutil
import threading

import prefect.artifacts
import pytest
from compiled_programs import compiled_once
from hyperbo_flows.cli.jobs import run_chain
from hyperbo_flows.cli.main import app
from hyperbo_flows.experiments.evaluate import untrained
from hyperbo_flows.experiments.plan import make_plan
from hyperbo_flows.experiments.pretrain import find_prior_for_use
from hyperbo_flows.service import artifacts
from hyperbo_flows.service import retrain as retrain_module
from hyperbo_flows.service.backfill import backfill
from hyperbo_flows.service.contest import (
    IN_SERVICE,
    champion_of,
    contest,
    failure_of,
    is_challenger,
    is_decided,
    is_open,
)
from hyperbo_flows.service.evaluate import evaluate
from hyperbo_flows.service.feedback import feedback
from hyperbo_flows.service.pretrain import pretrain
from hyperbo_flows.service.promote import promote
from hyperbo_flows.service.refresh import refresh
from hyperbo_flows.service.retrain import retrain
from hyperbo_flows.service.settings import read_service
from prefect import flow, task
from prefect.blocks.notifications import CustomWebhookNotificationBlock
from prefect.client.orchestration import get_client
from prefect.context import FlowRunContext
from prefect.settings import PREFECT_API_URL
from typer.testing import CliRunner
from unattended import drop, write_service

from hyperbo.errors import InvalidInputError, NotAvailableError, NumericalError
from hyperbo.priors.catalog import roll_back
from hyperbo.priors.file import read_prior
from hyperbo.priors.names import load_prior, read_line

# The first test waits for two whole chains.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.usefixtures("prefect_server")]


@pytest.fixture(scope="module")
def told():
    """Events that the flows send, in their order."""
    sent = []
    patch = pytest.MonkeyPatch()
    patch.setattr(
        "hyperbo_flows.service.events.emit_event",
        lambda event, resource, payload: sent.append((event, payload["version"])),
    )
    yield sent
    patch.undo()


@pytest.fixture(scope="module")
def service(tmp_path_factory, told):
    """Two versions; priors of both; that of the first was in service when the second came."""
    folder = tmp_path_factory.mktemp("service")
    path = write_service(folder)
    with compiled_once(tmp_path_factory.mktemp("programs")):
        retrain(str(path))
        assert told == []
        drop(folder, "a.csv", 0, 30)
        version = refresh(str(path))
        pretrain(str(path), version)
        evaluation = evaluate(str(path), version)
        assert promote(str(path), version, evaluation)
        feedback(str(path), evaluation)
        drop(folder, "b.csv", 30, 60)
        retrain(str(path))
        yield read_service(path)


@pytest.mark.slow
def test_the_first_prior_is_promoted_and_the_second_is_compared_with_it(service, told):
    line = read_line(service.priors, "own/h-nll")
    first, second = line.history
    assert (first.action, first.evidence["dataset"]) == ("promoted", "trials/own:1.0.0")
    assert second.evidence["dataset"] == "trials/own:1.1.0"
    assert (second.evidence["champion"], second.evidence["challenger"]) == (IN_SERVICE, "H-NLL")
    # The verdict is that of the numbers.
    compared = second.evidence
    assert (second.action == "promoted") == (compared["upper"] < 0)
    steps = ["dataset.published", "prior.trained", "prior.evaluated"]
    assert told[:4] == [(step, "1.0.0") for step in (*steps, "prior.promoted")]
    # The whole chain in one flow needs to wake nobody; who listens hears what became of the prior.
    decided = "prior.promoted" if second.action == "promoted" else "prior.held_back"
    assert told[4:5] == [(decided, "1.1.0")]


def test_the_champion_is_tested_on_the_new_version_and_trained_on_its_own(service):
    of_first = find_prior_for_use(make_plan(service.experiment("1.0.0")), "H-NLL")
    description = read_prior(of_first).description
    assert (description.held_out, description.dataset) == ("", "trials/own:1.0.0")
    assert len(description.training_tasks) == 3
    # Its siblings with held-out sets were there from when it was the challenger.
    priors = [
        json.loads((folder / "identity.json").read_text())
        for folder in (service.design.runs / "prior").glob("[0-9a-f]*")
    ]
    of_version = [(each["dataset"], each["held_out"]) for each in priors]
    assert len(of_version) == 14
    assert sorted({held_out for _, held_out in of_version}) == ["", "breast_cancer", "diabetes", "digits"]
    simulations = [
        json.loads((folder / "identity.json").read_text())
        for folder in (service.design.runs / "simulation").glob("[0-9a-f]*")
    ]
    elsewhere = [each for each in simulations if "trained_on" in each]
    assert {(each["dataset"], each["trained_on"]["dataset"]) for each in elsewhere} == {
        ("trials/own:1.1.0", "trials/own:1.0.0")
    }
    assert len(elsewhere) == 6


def test_what_is_decided_is_not_decided_again(service, told):
    history = read_line(service.priors, "own/h-nll").history
    assert is_decided(service, "1.0.0")
    assert is_decided(service, "1.1.0")
    assert not is_decided(service, "1.2.0")
    (current,) = [each for each in history if each.prior == read_line(service.priors, "own/h-nll").current]
    version = current.evidence["dataset"].partition(":")[2]
    champion = champion_of(service)
    assert champion is not None
    assert is_challenger(champion, service, version)
    assert IN_SERVICE not in contest(service, version).arms
    before = len(told)
    promote(str(service.path), version, str(_evaluation_of(service, version)))
    assert read_line(service.priors, "own/h-nll").history == history
    assert told[before:] == []
    assert load_prior("own/h-nll", service.priors).description.dataset == f"trials/own:{version}"


def test_a_roll_back_is_not_undone(service, told, tmp_path):
    other = _with_priors(service, "rolled-back")
    line = other.priors / "own/h-nll/current.json"
    stated = json.loads(line.read_text())
    stated["history"][1]["action"] = "promoted"
    stated["current"] = stated["history"][1]["prior"]
    line.write_text(json.dumps(stated))
    back = roll_back(other.priors, "own/h-nll")
    promote(str(other.path), "1.1.0", str(_evaluation_of(service, "1.1.0")))
    assert read_line(other.priors, "own/h-nll").current == back
    assert len(read_line(other.priors, "own/h-nll").history) == 3


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("seeds = 2", "seeds = 3"),
        ("iterations = 5", "iterations = 4"),
        ("iterations = 5", "iterations = 5\nprotocol = 'all-but-test-task'"),
        ("iterations = 5", "iterations = 5\npreparation = 'observed'"),
        ("iterations = 5", "iterations = 5\nnot_tested = ['diabetes-mlp-60']"),
        ("[experiment]", "budget = 3\n[experiment]"),
    ],
)
def test_other_terms_make_another_contest(service, old, new):
    assert not is_decided(_changed(service, old, new), "1.1.0")
    same = _changed(service, "[arms.Rand]", "[arms.Other]\nmethod = 'Rand'\n[arms.Rand]")
    assert is_decided(same, "1.1.0")


@pytest.mark.slow
def test_a_contest_on_other_terms_is_decided_anew_and_once(service, told):
    other = _with_priors(service, "budget", ("[experiment]", "budget = 3\n[experiment]"))
    before = len(told)
    refresh(str(other.path))
    assert told[before:] == [("dataset.published", "1.1.0")]
    for version in ("1.0.0", "1.1.0"):
        promote(str(other.path), version, str(_evaluation_of(service, version)))
        promote(str(other.path), version, str(_evaluation_of(service, version)))
    decisions = read_line(other.priors, "own/h-nll").history[2:]
    assert [each.evidence["dataset"] for each in decisions] == ["trials/own:1.0.0", "trials/own:1.1.0"]
    assert [each.evidence["experiment"]["budget"] for each in decisions] == [3, 3]
    current = read_line(service.priors, "own/h-nll").current
    (itself,) = [each for each in decisions if each.prior == current]
    assert (itself.action, itself.evidence["iteration"]) == ("held_back", 3)
    assert "is in service already" in itself.reason
    refresh(str(other.path))
    assert len(told[before:]) == 3


@pytest.mark.slow
def test_a_contest_that_cannot_be_held_is_not_tried_again_until_something_changes(service, told, capsys):
    other = _with_priors(service, "hopeless")
    _put_champion(other, learning_rate=1e300)
    with pytest.raises(NumericalError, match=r"all priors of the prior in service failed.*; roll back to"):
        pretrain(str(other.path), "1.1.0")
    before = len(told)
    for _ in range(2):
        assert refresh(str(other.path)) == "1.1.0"
    assert told[before:] == []
    assert "no decision on the prior of 1.1.0: all priors of the prior in service" in capsys.readouterr().out
    status = CliRunner().invoke(app, ["flows", "status", "--service", str(other.path)])
    assert "none: runs failed" in status.output
    # Another prior in service, or other terms, make another contest.
    _put_champion(other, learning_rate=0.25)
    assert failure_of(other, "1.1.0") is None
    assert is_open(other, "1.1.0")


def test_an_evaluation_that_says_nothing_of_the_prior_is_refused(service):
    of_first = str(_evaluation_of(service, "1.0.0"))
    with pytest.raises(
        InvalidInputError, match=r"dataset: 'trials/own:1\.0\.0', and not 'trials/own:1\.1\.0'"
    ):
        promote(str(service.path), "1.1.0", of_first)
    with pytest.raises(InvalidInputError, match="settings of the challenger"):
        promote(str(_with_steps(service, 20)), "1.0.0", of_first)


def test_an_evaluation_against_another_champion_is_done_again(service, told):
    other = _with_priors(service, "other-champion")
    _put_champion(other, learning_rate=0.25)
    before = len(told)
    assert not promote(str(other.path), "1.1.0", str(_evaluation_of(service, "1.1.0")))
    assert told[before:] == [("dataset.published", "1.1.0")]
    assert len(read_line(other.priors, "own/h-nll").history) == 1


def test_priors_that_are_not_there(service):
    assert untrained(make_plan(service.experiment("1.1.0"))) == {}
    other = make_plan(read_service(_with_steps(service, 20)).experiment("1.1.0"))
    with pytest.raises(NotAvailableError, match="run the pretrain flow first"):
        untrained(other)


def test_a_prior_in_service_that_cannot_be_trained_again(service, tmp_path):
    text = (service.priors / "own/h-nll/current.json").read_text()
    other = read_service(write_service(tmp_path))
    shutil.copytree(service.priors, tmp_path / "priors")
    (tmp_path / "priors/own/h-nll/current.json").write_text(text.replace('"steps": 40', '"paces": 40'))
    with pytest.raises(InvalidInputError, match=r"cannot be trained again as it was.*roll back"):
        champion_of(other)


def _evaluation_of(service, version):
    (found,) = [
        folder
        for folder in (service.design.runs / "evaluation").glob("[0-9a-f]*")
        if json.loads((folder / "metadata.json").read_text())["dataset"] == f"trials/own:{version}"
    ]
    return found


def _with_priors(service, name, *changes):
    """The same service with a copy of the priors in service."""
    shutil.copytree(service.priors, service.path.parent / name)
    return _changed(service, "[service]", f'[service]\npriors = "{name}"', *changes, name=name)


def _put_champion(service, learning_rate):
    """Put a prior of the first version into service that was trained with another learning rate."""
    line = service.priors / "own/h-nll/current.json"
    stated = json.loads(line.read_text())
    first = stated["history"][0]
    first["evidence"]["arm"]["configuration"]["training"]["learning_rate"] = learning_rate
    line.write_text(json.dumps({**stated, "current": first["prior"], "history": [first]}))


def _changed(service, old, new, *more, name="other"):
    """The service as its file says it after changes."""
    text = service.path.read_text()
    for before, after in ((old, new), *more):
        assert before in text
        text = text.replace(before, after, 1)
    path = service.path.with_name(f"{name}.toml")
    path.write_text(text)
    return read_service(path)


def _with_steps(service, steps):
    return _changed(service, "steps = 40", f"steps = {steps}").path


def test_what_the_flows_leave_to_look_at(service):
    with get_client(sync_client=True) as client:
        found = sorted(client.read_artifacts(), key=lambda each: each.created)
    artifacts = {each.key: each for each in found}
    changes = json.loads(artifacts["version-trials-own"].data)
    assert [(row["task"], row["added"]) for row in changes if row["added"]] == [
        ("breast_cancer-mlp-40", 30),
        ("diabetes-mlp-60", 30),
        ("digits-max_pool_relu-60", 30),
    ]
    assert "report.html" in artifacts["report-trials-own-1-1-0"].data
    assert "mean simple regret" in artifacts["evaluation-trials-own-1-1-0"].data
    assert artifacts["promotion-own-h-nll"].data.startswith(("**promoted**", "**held back**"))
    runs = service.design.data_dir / "bo_runs/trials_own"
    assert sorted(path.name for path in runs.glob("[0-9]*")) == ["1.0.0", "1.1.0"]


def test_a_refresh_with_nothing_new_tells_only_of_chains_that_did_not_end(service, told, capsys):
    before = len(told)
    assert refresh(str(service.path)) == "1.1.0"
    assert "trials/own: nothing new since 1.1.0" in capsys.readouterr().out
    assert told[before:] == []
    line = service.priors / "own/h-nll/current.json"
    text = line.read_text()
    line.unlink()
    refresh(str(service.path))
    assert told[before:] == [("dataset.published", "1.1.0")]
    line.write_text(text)


@pytest.mark.slow
def test_versions_that_are_complete_are_left_out_of_a_backfill(service, capsys):
    assert backfill(str(service.path), "1.0.0", "1.1.0") == []
    assert "trials/own:1.0.0: complete, left out" in capsys.readouterr().out
    with pytest.raises(
        InvalidInputError, match=r"no version of trials/own from 1.2.0 to 1.3.0.*1.0.0, 1.1.0"
    ):
        backfill(str(service.path), "1.2.0", "1.3.0")
    lost, version = next(iter(_own_simulations(service).items()))
    shutil.rmtree(lost)
    assert backfill(str(service.path), "1.0.0", "1.1.0", failed_only=True) == [version]
    assert lost.is_dir()
    assert len(read_line(service.priors, "own/h-nll").history) == 2
    other = str(_with_steps(service, 20))
    assert backfill(other, "1.0.0", "1.1.0", failed_only=True) == []
    assert "trials/own:1.0.0: never tried, left out" in capsys.readouterr().out


@pytest.mark.slow
def test_a_backfill_goes_on_after_a_version_that_fails(service):
    other = _changed(service, "[service]", '[service]\ndata = "damaged"', name="of-damaged-data")
    shutil.copytree(service.design.data_dir, other.design.data_dir)
    (other.design.data_dir / "trials/own/1.0.0/trials.parquet").write_bytes(b"")
    lost = next(folder for folder, version in _own_simulations(service).items() if version == "1.1.0")
    shutil.rmtree(lost)
    options = ["--service", str(other.path), "--from", "1.0.0", "--to", "1.1.0"]
    done = CliRunner().invoke(app, ["flows", "backfill", *options])
    assert done.exit_code == 1
    assert "trials/own: 1 version worked on" in done.output
    assert "trials/own: 1 version failed: 1.0.0: " in done.output
    assert lost.is_dir()


def _own_simulations(service):
    """The simulations of a service's own arms, and the versions that they are on."""
    return {
        folder: identity["dataset"].partition(":")[2]
        for folder in (service.design.runs / "simulation").glob("[0-9a-f]*")
        if "trained_on" not in (identity := json.loads((folder / "identity.json").read_text()))
    }


def test_a_long_step_shows_its_progress(monkeypatch):
    moments = iter([0.0, 4.0, 5.0, 9.0, 11.0, 20.0])
    monkeypatch.setattr(artifacts, "monotonic", lambda: next(moments))
    told = []
    update = prefect.artifacts.update_progress_artifact
    monkeypatch.setattr(
        "prefect.artifacts.update_progress_artifact",
        lambda artifact, percent, description: told.append(percent) or update(artifact, percent, description),
    )

    @task
    def train():
        with artifacts.shown_progress("pretrain H-NLL, nothing held out", "steps") as report:
            for done in range(1, 6):
                report(done, 10)

    @flow
    def whole():
        train()

    whole()
    # Made after 5 seconds, updated after 6 and 9 more, and at the end.
    assert told == [40.0, 50.0, 100.0]
    with get_client(sync_client=True) as client:
        progress = [each for each in client.read_artifacts() if each.type == "progress"]
    assert ("progress-pretrain-h-nll-nothing-held-out", 100.0) in [(each.key, each.data) for each in progress]


def test_a_step_goes_on_where_no_server_can_be_told(monkeypatch, capsys):
    def fail(*_, **__):
        raise ConnectionError("gone")

    monkeypatch.setattr(artifacts, "_SECONDS_BETWEEN_UPDATES", 0.0)
    monkeypatch.setattr("prefect.artifacts.create_progress_artifact", fail)

    @task
    def train():
        with artifacts.shown_progress("train", "steps") as report:
            report(1, 3)
            report(2, 3)

    @flow
    def whole():
        train()

    whole()
    said = capsys.readouterr().out
    assert said.count("train: its progress is not shown any more: ConnectionError: gone") == 1


def test_a_chain_of_a_command_is_shown_where_a_server_is_named(service, tmp_path, monkeypatch):
    def compare(experiment, command, **options):
        assert FlowRunContext.get() is not None
        return next((service.design.runs / "evaluation").glob("[0-9a-f]*"))

    monkeypatch.setattr("hyperbo_flows.process.environment.prepare_prefect", lambda home: None)
    monkeypatch.setenv("PREFECT_API_URL", PREFECT_API_URL.value())
    run_chain(compare, service.experiment("1.1.0"), "the command")
    with get_client(sync_client=True) as client:
        assert "trials/own:1.1.0" in {run.name for run in client.read_flow_runs()}


def test_the_commands_by_hand(service):
    options = ["--service", str(service.path)]
    status = CliRunner().invoke(app, ["flows", "status", *options])
    assert status.exit_code == 0, status.output
    assert "1.1.0" in status.output
    assert f"in service: {read_line(service.priors, 'own/h-nll').current}" in status.output
    wrong = CliRunner().invoke(app, ["flows", "run", "promote", *options])
    assert (wrong.exit_code, "name the folder of an evaluation" in wrong.output) == (2, True)
    absent = CliRunner().invoke(app, ["flows", "status", "--service", "absent.toml"])
    assert (absent.exit_code, "absent.toml" in absent.output) == (1, True)


def test_operators_are_told_of_a_flow_that_fails(tmp_path, monkeypatch):
    received = queue.Queue()

    class Hook(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            received.put(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        # Prefect takes addresses of this machine for a mistake, unless it is told otherwise.
        block = CustomWebhookNotificationBlock(
            name="operators",
            url=f"http://127.0.0.1:{server.server_port}/",
            json_data={"text": "{{body}}"},
            allow_private_urls=True,
        )
        block.save("operators", overwrite=True)
        monkeypatch.setenv("HYPERBO_NOTIFY", "custom-webhook/operators")
        with pytest.raises(InvalidInputError, match=r"absent\.toml"):
            refresh(str(tmp_path / "absent.toml"))
        text = json.loads(received.get(timeout=30))["text"]
        assert text.startswith("refresh absent: Failed: ")
        assert "absent.toml: there is no such file" in text
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.slow
def test_retrain_compares_again_where_another_prior_came_into_service(service, monkeypatch, capsys):
    other = _with_priors(service, "meanwhile")
    line = other.priors / "own/h-nll/current.json"
    stated = json.loads(line.read_text())
    line.unlink()

    def meanwhile(path, version):
        made = evaluate(path, version)
        if not line.exists():
            first = stated["history"][0]
            line.write_text(json.dumps({**stated, "current": first["prior"], "history": [first]}))
        return made

    monkeypatch.setattr(retrain_module, "evaluate", meanwhile)
    retrain(str(other.path))
    assert "comparing again" in capsys.readouterr().out
    _, second = read_line(other.priors, "own/h-nll").history
    assert (second.evidence["dataset"], second.evidence["champion"]) == ("trials/own:1.1.0", IN_SERVICE)
