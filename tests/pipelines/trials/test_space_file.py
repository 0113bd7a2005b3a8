from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from trial_files import SPACE, describe

from hyperbo.errors import InvalidInputError
from hyperbo.search_space import Parameter
from pipelines.trials.about import About
from pipelines.trials.description import NameSource, StatusColumn
from pipelines.trials.space_file import read_space_file

PARAMETER = '[[parameters]]\nname = "rate"\nlower = 0\nupper = 1\n'
SMALLEST = f'objective = "loss"\ndirection = "minimize"\n{PARAMETER}'


def test_the_smallest_file_says_the_rest_by_default(tmp_path: Path) -> None:
    description = describe(tmp_path, SMALLEST)
    assert description.space.parameters == (Parameter("rate", 0.0, 1.0, "linear"),)
    assert description.parameter_columns == {"rate": "rate"}
    assert (description.objective, description.direction, description.warping) == (
        "loss",
        "minimize",
        "negative",
    )
    assert description.task == NameSource(column="task")
    assert (description.task_dataset, description.status) == (None, None)
    assert (description.trial_id, description.phase) == ("", "")
    assert (description.metrics, description.curves, description.ignore) == ((), (), ())
    assert description.about == About()
    assert description.columns == {"rate": "real", "loss": "real", "task": "text"}


def test_every_field_is_read(tmp_path: Path) -> None:
    text = (
        'objective = "accuracy"\ndirection = "maximize"\nwarping = "identity"\n'
        'task = { file_name = true }\ntask_dataset = { name = "imdb" }\ntrial_id = { column = "number" }\n'
        'phase = { column = "round" }\n'
        'status = { column = "state", done = ["ok", "fine"], infeasible = [], skip = ["running"] }\n'
        'metrics = ["seconds"]\ncurves = ["valid", "train"]\nignore = ["", "git_*"]\n'
        '[[parameters]]\nname = "b"\ncolumn = "hp.b"\nlower = 0\nupper = 0.999\nscaling = "log1m"\n'
        '[[parameters]]\nname = "a"\nlower = 1e-3\nupper = 1\nscaling = "log"\n'
    )
    description = describe(tmp_path, text)
    assert description.space.names == ("b", "a")
    assert description.parameter_columns == {"b": "hp.b", "a": "a"}
    assert description.task == NameSource(file_name=True)
    assert description.task_dataset == NameSource(name="imdb")
    assert description.status == StatusColumn(
        "state", {"ok": "done", "fine": "done", "diverged": "diverged"}, ("running",)
    )
    assert description.metric_names == ("accuracy", "seconds")
    assert description.columns == {
        "hp.b": "real",
        "a": "real",
        "accuracy": "real",
        "number": "text",
        "round": "integer",
        "state": "text",
        "seconds": "real",
        "valid": "reals",
        "train": "reals",
    }


def test_the_description_is_plain_json_with_its_defaults_spelled_out(tmp_path: Path) -> None:
    fields = describe(tmp_path).to_json()
    assert json.loads(json.dumps(fields)) == fields
    assert fields == {
        "objective": "loss",
        "direction": "minimize",
        "warping": "negative",
        "task": {"column": "task", "name": "", "file_name": False},
        "task_dataset": None,
        "trial_id": "trial",
        "phase": "",
        "status": {
            "column": "status",
            "meanings": {"done": "done", "diverged": "diverged", "infeasible": "infeasible"},
            "skip": [],
        },
        "metrics": ["test"],
        "curves": ["curve"],
        "ignore": ["note", "git_*"],
        "parameters": [
            {"name": "rate", "lower": 1e-3, "upper": 10.0, "scaling": "log", "column": "hp.rate"},
            {"name": "layers", "lower": 1.0, "upper": 8.0, "scaling": "linear", "column": "layers"},
        ],
    }


WORDS = {
    "description": "Läufe,\twie sie waren.\n\n## Wo\nIn\u00a0Köln\u3000☃.",
    "licence": "https://example.org/terms(1)/[a]?b=c%20d#e",
    "citation": " @misc{own, title = {A ``quoted'' title}}\n",
}


def about(**fields: str) -> str:
    """The smallest file with a table `about` of these fields."""
    lines = (f"{name} = {json.dumps(text)}" for name, text in fields.items())
    return "\n".join((SMALLEST, "[about]", *lines))


@pytest.mark.parametrize("field", WORDS)
def test_an_owners_words_are_read_as_they_are(field: str, tmp_path: Path) -> None:
    described = describe(tmp_path, about(**{field: WORDS[field]}))
    assert described.about == About(**{field: WORDS[field]})
    # They decide no record.
    assert described.to_json() == describe(tmp_path, SMALLEST).to_json()
    assert describe(tmp_path, about(**WORDS)).about == About(**WORDS)


@pytest.mark.parametrize("field", WORDS)
def test_a_text_may_be_so_long_and_no_longer(field: str, tmp_path: Path) -> None:
    most = {"description": 20_000, "licence": 1_000, "citation": 20_000}[field]
    longest = WORDS[field].strip().ljust(most, "x")
    assert getattr(describe(tmp_path, about(**{field: longest})).about, field) == longest
    with pytest.raises(InvalidInputError, match=rf"about\.{field}: {field} has {most + 1:,} characters; say"):
        describe(tmp_path, about(**{field: f"{longest}x"}))


def changed(before: str, after: str, text: str = SMALLEST) -> str:
    assert before in text
    return text.replace(before, after)


def added(line: str) -> str:
    return f"{line}\n{SMALLEST}"


BAD_FILES: dict[str, tuple[str, str]] = {
    "not TOML": ("objective = ", "space.toml: this is not TOML"),
    "no objective": (changed('objective = "loss"', ""), "objective: objective is missing"),
    "objective is a number": (changed('"loss"', "3"), "objective: objective = 3 is not a text"),
    "empty objective": (changed('"loss"', '""'), "objective: objective = '' is not a text"),
    "no direction": (changed('direction = "minimize"', ""), "direction: direction is missing"),
    "unknown direction": (
        changed('"minimize"', '"down"'),
        "direction: direction is 'down'; use minimize or maximize",
    ),
    "unknown warping": (added('warping = "log"'), "warping: unknown output warping 'log'; use one of"),
    "warping of the other direction": (
        added('warping = "identity"'),
        "warping: the warping 'identity' is for what one would maximize, and direction is 'minimize'",
    ),
    "minimising warping to maximise": (
        added('warping = "negative_log"').replace('"minimize"', '"maximize"'),
        "warping: the warping 'negative_log' is for what one would minimize, and direction is 'maximize'",
    ),
    "unknown field": (added("seed = 3"), "seed: unknown field 'seed'"),
    "task as a text": (added('task = "net"'), "task: task = 'net' is not a table; write task = {"),
    "task of nothing": (added("task = {}"), "task: task has 0 entries, not one"),
    "task of two": (added('task = { name = "a", column = "b" }'), "task: task has 2 entries, not one"),
    "task not by file name": (added("task = { file_name = false }"), "task: file_name = False names no task"),
    "unknown source of a task": (added('task = { path = "x" }'), "task: path = 'x' names no task"),
    "task's column is a number": (added("task = { column = 3 }"), "task.column: column = 3 is not a text"),
    "trial id without a column": (added("trial_id = {}"), "trial_id.column: column is missing"),
    "trial id by name": (
        added('trial_id = { column = "a", name = "b" }'),
        "trial_id.name: unknown field 'name'",
    ),
    "status without a column": (added("status = {}"), "status.column: column is missing"),
    "status with an unknown list": (
        added('status = { column = "s", lost = ["x"] }'),
        "status.lost: unknown field 'lost'; use column, done, diverged, infeasible and skip",
    ),
    "status list is a text": (
        added('status = { column = "s", done = "ok" }'),
        "status.done: done = 'ok' is not a list of texts",
    ),
    "one value of two statuses": (
        added('status = { column = "s", done = ["x"], infeasible = ["x"] }'),
        "status.infeasible: 'x' is listed twice",
    ),
    "a value that is skipped and a status": (
        added('status = { column = "s", skip = ["diverged"] }'),
        "status.diverged: 'diverged' is listed twice",
    ),
    "metrics is a text": (added('metrics = "m"'), "metrics: metrics = 'm' is not a list of texts"),
    "a metric twice": (added('metrics = ["m", "m"]'), "metrics: metrics names 'm' twice"),
    "the objective as a metric": (
        added('metrics = ["m", "loss"]'),
        "metrics[1]: the column 'loss' is named twice; it is under objective too",
    ),
    "a curve that is a metric": (
        added('metrics = ["m"]\ncurves = ["m"]'),
        "curves[0]: the column 'm' is named twice; it is under metrics[0] too",
    ),
    "a column that is ignored": (
        added('ignore = ["rate"]'),
        "parameters.rate: the column 'rate' is named twice; it is under ignore too",
    ),
    "two parameters of one column": (
        SMALLEST + PARAMETER.replace('"rate"', '"speed"\ncolumn = "rate"'),
        "parameters.speed: the column 'rate' is named twice; it is under parameters.rate too",
    ),
    "no parameter": (changed(PARAMETER, ""), "parameters: there is no parameter; write one [[parameters]]"),
    "parameters is a text": (
        'parameters = "rate"\n' + changed(PARAMETER, ""),
        "parameters: there is no parameter",
    ),
    "parameter without a name": (
        changed('name = "rate"', ""),
        "parameters 1.name: name is missing",
    ),
    "two parameters of one name": (SMALLEST + PARAMETER, "parameters: parameter names repeat: rate, rate"),
    "no upper bound": (changed("upper = 1", ""), "parameters.rate.upper: upper is missing"),
    "bound is a text": (
        changed("upper = 1", 'upper = "1"'),
        "rate.upper: upper = '1' is not a finite number",
    ),
    "bound is true": (
        changed("upper = 1", "upper = true"),
        "rate.upper: upper = True is not a finite number",
    ),
    "bound is infinite": (changed("upper = 1", "upper = inf"), "upper: upper = inf is not a finite number"),
    "bound is NaN": (changed("upper = 1", "upper = nan"), "upper: upper = nan is not a finite number"),
    "bound beyond float64": (
        changed("upper = 1", f"upper = 1{'0' * 400}"),
        "parameters.rate.upper: upper = 1000",
    ),
    "bound of more digits than Python reads": (
        changed("upper = 1", f"upper = 1{'0' * 5000}"),
        "space.toml: this is not TOML: Exceeds the limit",
    ),
    "nested beyond measure": (added(f"metrics = {'[' * 9999}"), "space.toml: this is not TOML: "),
    "range too wide for float64": (
        changed("lower = 0\nupper = 1", "lower = -1.7e308\nupper = 1.7e308"),
        "parameters.rate: range [-1.7e+308, 1.7e+308] has the width inf under linear scaling; give bounds",
    ),
    "empty range": (changed("upper = 1", "upper = 0"), "parameters.rate: range [0.0, 0.0] is empty"),
    "unknown scaling": (
        SMALLEST + 'scaling = "exp"',
        "parameters.rate.scaling: scaling is 'exp'; use linear, log, log1m",
    ),
    "log of zero": (SMALLEST + 'scaling = "log"', "parameters.rate: log scaling needs a positive range"),
    "about as a text": ('about = "mine"\n' + SMALLEST, "about: about = 'mine' is not a table; write [about]"),
    "several abouts": (SMALLEST + "[[about]]", "about: about = [{}] is not a table"),
    "unknown field of about": (
        about(license="MIT"),
        "about.license: unknown field 'license'; use description, licence and citation; fields of the file",
    ),
    "a field of the file after about": (
        "[about]\n" + SMALLEST,
        "about.objective: unknown field 'objective'; use description, licence and citation; fields of the",
    ),
    "description is a number": (SMALLEST + "[about]\ndescription = 3", "description = 3 is not a text"),
    "empty description": (about(description=""), "about.description: description = '' is not a text"),
    "blank citation": (about(citation=" \n"), "about.citation: citation is blank; leave it out"),
    "a terminal's escape": (
        about(description="so \x1b[2J"),
        "about.description: description holds U+001B, which cannot be seen; remove it after 'so '",
    ),
    "a change of direction": (about(citation="@misc{\u202e"), "about.citation: citation holds U+202E"),
    "licence by name": (
        about(licence="MIT"),
        "about.licence: licence = 'MIT' is not an address; write one such as https://creativecommons.org/",
    ),
    "licence that runs": (about(licence="javascript:alert(1)"), "about.licence: licence = 'javascript"),
    "licence of no place": (about(licence="https:///by/4.0/"), "about.licence: licence = 'https:///by"),
    "licence that ends its link": (
        about(licence="https://a.org/><b>"),
        "about.licence: licence = 'https://a",
    ),
    "licence of two lines": (
        about(licence="https://a.org/\nb"),
        "about.licence: licence = 'https://a.org/\\n",
    ),
    "citation in words": (
        about(citation="Doe, 2026"),
        "about.citation: citation is not BibTeX; write an entry, such as @misc{",
    ),
    "a field of the file after the parameters": (
        SMALLEST + 'ignore = ["x"]',
        "parameters.rate.ignore: unknown field 'ignore'; fields of the file as a whole stand before",
    ),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_mistake_is_named_with_its_file_and_field(name: str, tmp_path: Path) -> None:
    text, message = BAD_FILES[name]
    with pytest.raises(InvalidInputError, match=re.escape(message)) as caught:
        describe(tmp_path, text)
    assert str(caught.value).startswith(str(tmp_path / "space.toml"))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"nowhere\.toml: the space file cannot be read"):
        read_space_file(tmp_path / "nowhere.toml")
    (tmp_path / "latin.toml").write_bytes('objective = "Verlust für alle"'.encode("latin-1"))
    with pytest.raises(InvalidInputError, match=r"latin\.toml: the space file cannot be read"):
        read_space_file(tmp_path / "latin.toml")


def test_columns_are_checked_against_those_named(tmp_path: Path) -> None:
    description = describe(tmp_path, SPACE)
    named = ["task", "trial", "status", "loss", "test", "curve", "hp.rate", "layers"]
    description.check_columns([*named, "note", "git_commit"])
    with pytest.raises(InvalidInputError) as caught:
        description.check_columns([*named[:-1], "extra", "notes"])
    assert caught.value.what == (
        "missing columns: 'layers'; "
        "unknown columns: 'extra', 'notes' (name them under metrics, curves or ignore)"
    )
    with pytest.raises(InvalidInputError, match=r"unknown columns: '0', .* '9' and 5 more \(name"):
        description.check_columns([*named, *map(str, range(15))])


def test_a_star_ignores_all_other_columns(tmp_path: Path) -> None:
    description = describe(tmp_path, f'ignore = ["*"]\n{SMALLEST}')
    description.check_columns(["task", "loss", "rate", "anything", ""])
    with pytest.raises(InvalidInputError, match="missing columns: 'rate'"):
        description.check_columns(["task", "loss", "anything"])
