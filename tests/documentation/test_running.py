"""What the documents show is run: commands `hyperbo ...` and blocks of Python, page by page, in order.

A page has a folder of its own, with trials, an Optuna database and PD1 mini 1.0.0. What takes long, or names
a place elsewhere, is run in a smaller way by `SMALLER`. What is not run has a comment before it that says
why: `<!-- not run: needs a bucket -->`.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import datasets
import duckdb
import mlcroissant
import numpy as np
import optuna
import pandas
import polars
import pytest
import tensorflow_datasets as tfds
from document_blocks import Step, steps
from hyperbo_flows.cli.main import app
from typer.testing import CliRunner

import hyperbo
import pd1_builder

ROOT = Path(__file__).parents[2]
PAGES = [
    path
    for pattern in ("README.md", "CONTRIBUTING.md", "docs/*.md", "docs/guides/*.md", "docs/decisions/*.md")
    for path in sorted(ROOT.glob(pattern))
    if steps(path)
]
# What is run in place of what is shown, in commands, Python and experiment files.
SMALLER = {
    r"pd1/mini:2\.0\.0": "pd1/mini:1.0.0",
    r"pd1/mini/2\.0\.0": "pd1/mini/1.0.0",
    r"https://example\.org/data|s3://bucket/data": "place",
    r" --data (data|DATA)\b": "",
    r" --steps \d+": " --steps 100",
    r"^(evaluate --.*|evaluate)$": r"\1 --seeds 1 --iterations 3 --steps 100",
    r"^prior train (.*)$": r"prior train \1 --worth 2",
    r" --trials 20 ": " --trials 3 ",
    r"prior pull LINE --from https://\.\.\.": "prior pull pd1-mini/h-nll --from shipped",
    r"\bsteps( ?= ?)\d+": r"steps\g<1>100",
    r"\biterations( ?= ?)\d+": r"iterations\g<1>3",
    r"^seeds = .*": "seeds = 1",
    r"\bn_trials=\d+": "n_trials=3",
    r"\btrials=\d+": "trials=3",
    r"~/": "./",
    r"^report FOLDER( FOLDER)?": "report NEWEST",
}

# Commands that stand beside others in a block, and are not run here.
LEFT_OUT = {
    "demo": "tests/end_to_end/test_main_job.py runs it",
    "evaluate docs/examples/variants.toml": "eight arms, minutes; tests/flows/experiments reads the file",
}
TORCH = importlib.util.find_spec("torch") is not None
# Pages that begin without PD1 mini, which they pull.
PULLS = ("published-datasets.md",)
# Names that blocks of Python take for granted: the reader's own objective, and imports that the text names.
PRESUMED: dict[str, object] = {
    "hyperbo": hyperbo,
    "objective": lambda trial: trial.suggest_float("learning_rate", 1e-4, 1.0, log=True),
    "prior": hyperbo.load_prior("pd1-mini/h-ekl"),
    "IntDistribution": optuna.distributions.IntDistribution,
    "pandas": pandas,
    "polars": polars,
    "duckdb": duckdb,
    "datasets": datasets,
    "tfds": tfds,
    "mlcroissant": mlcroissant,
}


@pytest.fixture(scope="session")
def material(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the pages take for granted: a data folder, a place, trials as CSV, an Optuna database."""
    folder = tmp_path_factory.mktemp("documents")
    pd1_builder.build("pd1/mini", "1.0.0", data_dir=folder / "data")
    done = CliRunner().invoke(
        app, f"data publish pd1/mini:1.0.0 --to {folder / 'place'} --data {folder / 'data'}".split()
    )
    assert done.exit_code == 0, done.output
    random = np.random.default_rng(0)
    rows = []
    for task in "abcd":
        for trial in range(12):
            rate, momentum = 10 ** random.uniform(-4, 0), random.uniform(0.0, 0.99)
            rows.append(f"{task},{trial},{rate},{momentum},{(np.log10(rate) + 2) ** 2 + momentum}\n")
    for name, some in (("trials.csv", rows[:36]), ("more.csv", rows[36:])):
        (folder / name).write_text("task,trial,learning_rate,momentum,loss\n" + "".join(some))
    # A guide shows a space file of these trials.
    (guide,) = re.findall(r"```toml\n(.*?)```", (ROOT / "docs/guides/own-dataset.md").read_text(), re.S)
    (folder / "space.toml").write_text(guide)
    pd1_builder.add("mine", [folder / "trials.csv"], folder / "space.toml", data_dir=folder / "earlier")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    for name in "ab":
        study = optuna.create_study(storage=f"sqlite:///{folder / 'runs.db'}", study_name=name)
        study.optimize(lambda trial: trial.suggest_float("lr", 1e-5, 1e-1, log=True), n_trials=6)
    return folder


@pytest.fixture
def page_folder(material: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, home and data folder of a page."""
    shutil.copytree(material, tmp_path, dirs_exist_ok=True)
    shutil.copytree(ROOT / "tests/pipelines/histories/recorded/ray", tmp_path / "ray_results")
    shutil.copytree(ROOT / "docs" / "examples", tmp_path / "docs" / "examples")
    for experiment in (tmp_path / "docs" / "examples").glob("*.toml"):
        experiment.write_text(smaller(experiment.read_text(encoding="utf-8")), encoding="utf-8")
    (tmp_path / "pd1").symlink_to("data/pd1")
    (tmp_path / "shipped").symlink_to(ROOT / "hyperbo" / "priors" / "shipped")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HYPERBO_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def shown(path: Path) -> list[Step]:
    """The steps of a page, with a reason where one is not run."""
    found = steps(path)
    lacking = "needs PyTorch" if any("import torch" in step.text for step in found) and not TORCH else ""
    return [replace(step, not_run=step.not_run or LEFT_OUT.get(step.text, lacking)) for step in found]


def smaller(text: str) -> str:
    for shown, run in SMALLER.items():
        text = re.sub(shown, run, text, flags=re.M)
    return text


def run(step: Step, names: dict[str, object]) -> str:
    """Run a step, and return what went wrong, if anything."""
    text = smaller(step.text)
    if step.is_python:
        try:
            exec(compile(text, "a block of a document", "exec"), names)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return ""
    done = CliRunner().invoke(
        app, [newest_evaluation() if word == "NEWEST" else word for word in shlex.split(text)]
    )
    error = "" if isinstance(done.exception, SystemExit | None) else f"\n{done.exception!r}"
    return f"hyperbo {text}\n{done.output}{error}" if done.exit_code else ""


def newest_evaluation() -> str:
    return str(max(Path("runs/evaluation").iterdir(), key=lambda folder: folder.stat().st_mtime))


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of other libraries, as users meet them
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_what_a_page_shows_runs(path: Path, page_folder: Path) -> None:
    if path.name in PULLS:
        shutil.rmtree("data/pd1")
    names = dict(PRESUMED)
    to_run = [step for step in shown(path) if not step.not_run]
    text = path.read_text(encoding="utf-8")
    if "trials/mine" in text and "data add mine" not in text:
        shutil.copytree("earlier/trials", "data/trials")
    if any("--out space.toml" in step.text for step in to_run):
        Path("space.toml").unlink()
    wrong = [(step.line, message) for step in to_run if (message := run(step, names))]
    assert not wrong, "\n\n".join(f"{path.name}:{line}: {message}" for line, message in wrong)


def test_what_is_run_and_what_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    all_steps = [(path, step) for path in PAGES for step in shown(path)]
    left = [(path, step) for path, step in all_steps if step.not_run]
    run = [step for _, step in all_steps if not step.not_run]
    blocks = sum(step.is_python for step in run)
    with capsys.disabled():
        print(f"\n{len(run) - blocks} commands and {blocks} blocks of Python are run, {len(left)} are not:")
        for path, step in left:
            print(f"  {path.relative_to(ROOT)}:{step.line}: {step.not_run}")
    assert len(run) > len(left)
    assert {step.text for _, step in all_steps} >= LEFT_OUT.keys()
