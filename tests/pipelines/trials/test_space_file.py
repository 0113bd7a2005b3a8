from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hyperbo_pipelines.trials.description import About, NameSource, StatusColumn
from hyperbo_pipelines.trials.space_file import read_space_file
from trial_files import SPACE, describe

from hyperbo.data.search_space import Parameter
from hyperbo.errors import InvalidInputError

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
    with pytest.raises(InvalidInputError, match=rf"about\.{field}: .*at most {most} characters"):
        describe(tmp_path, about(**{field: f"{longest}x"}))


def changed(before: str, after: str, text: str = SMALLEST) -> str:
    assert before in text
    return text.replace(before, after)


def added(line: str) -> str:
    return f"{line}\n{SMALLEST}"


BAD_FILES: dict[str, tuple[str, str]] = {
    "not TOML": ("objective = ", "space.toml: the file is not TOML"),
    "no objective": (changed('objective = "loss"', ""), "objective: the field is missing"),
    "empty objective": (changed('"loss"', '""'), "objective: '' is refused"),
    "unknown direction": (changed('"minimize"', '"down"'), "direction: 'down'"),
    "unknown warping": (added('warping = "log"'), "warping: "),
    "warping of the other direction": (added('warping = "identity"'), "warping: "),
    "minimising warping to maximise": (
        added('warping = "negative_log"').replace('"minimize"', '"maximize"'),
        "warping: ",
    ),
    "unknown field": (added("seed = 3"), "space.toml: unknown key 'seed'"),
    "task of nothing": (added("task = {}"), "task: give exactly one"),
    "task of two": (added('task = { name = "a", column = "b" }'), "task: give exactly one"),
    "status without a column": (added("status = {}"), "status.column: the field is missing"),
    "one value of two statuses": (
        added('status = { column = "s", done = ["x"], infeasible = ["x"] }'),
        "status.infeasible: 'x'",
    ),
    "a value that is skipped and a status": (
        added('status = { column = "s", skip = ["diverged"] }'),
        "status.diverged: ",
    ),
    "a metric twice": (added('metrics = ["m", "m"]'), "metrics: 'm' is there twice"),
    "the objective as a metric": (added('metrics = ["m", "loss"]'), "metrics[1]: the column 'loss'"),
    "a curve that is a metric": (added('metrics = ["m"]\ncurves = ["m"]'), "curves[0]: the column 'm'"),
    "a column that is ignored": (added('ignore = ["rate"]'), "parameters.rate: "),
    "two parameters of one column": (
        SMALLEST + PARAMETER.replace('"rate"', '"speed"\ncolumn = "rate"'),
        "parameters.speed: ",
    ),
    "no parameter": (changed(PARAMETER, ""), "parameters: the field is missing"),
    "two parameters of one name": (SMALLEST + PARAMETER, "space.toml: parameter names repeat: rate, rate"),
    "bound is infinite": (changed("upper = 1", "upper = inf"), "upper: inf is not a finite number"),
    "bound beyond float64": (changed("upper = 1", f"upper = 1{'0' * 400}"), "parameters[0].upper: 1000"),
    "nested beyond measure": (added(f"metrics = {'[' * 9999}"), "the file is not TOML"),
    "range too wide for float64": (
        changed("lower = 0\nupper = 1", "lower = -1.7e308\nupper = 1.7e308"),
        "parameters[0]: ",
    ),
    "empty range": (changed("upper = 1", "upper = 0"), "parameters[0]: "),
    "unknown scaling": (SMALLEST + 'scaling = "exp"', "parameters[0].scaling: 'exp'"),
    "log of zero": (SMALLEST + 'scaling = "log"', "parameters[0]: "),
    "unknown field of about": (about(license="MIT"), "about: unknown key 'license'"),
    "a field of the file after about": ("[about]\n" + SMALLEST, "about: unknown key 'objective'"),
    "empty description": (about(description=""), "about.description: '' is refused"),
    "blank citation": (about(citation=" \n"), "about.citation: the text is blank"),
    "a terminal's escape": (about(description="so \x1b[2J"), "about.description: the text holds U+001B"),
    "a change of direction": (about(citation="@misc{\u202e"), "about.citation: the text holds U+202E"),
    "licence by name": (about(licence="MIT"), "about.licence: 'MIT'"),
    "licence that runs": (about(licence="javascript:alert(1)"), "about.licence: 'javascript"),
    "licence that ends its link": (about(licence="https://a.org/><b>"), "about.licence: 'https://a"),
    "licence of two lines": (about(licence="https://a.org/\nb"), "about.licence: 'https://a.org/\\n"),
    "citation in words": (about(citation="Doe, 2026"), "about.citation: "),
    "a field of the file after the parameters": (
        SMALLEST + 'ignore = ["x"]',
        "parameters[0]: unknown key 'ignore'",
    ),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_mistake_is_named_with_its_file_and_field(name: str, tmp_path: Path) -> None:
    text, message = BAD_FILES[name]
    with pytest.raises(InvalidInputError, match=re.escape(message)) as caught:
        describe(tmp_path, text)
    assert str(caught.value).startswith(str(tmp_path / "space.toml"))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"nowhere\.toml: there is no such file"):
        read_space_file(tmp_path / "nowhere.toml")
    (tmp_path / "latin.toml").write_bytes('objective = "Verlust für alle"'.encode("latin-1"))
    with pytest.raises(InvalidInputError, match=r"latin\.toml: the file cannot be read"):
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
