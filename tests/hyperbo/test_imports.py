from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEAVY = ("tensorflow", "tensorflow_datasets", "apache_beam", "prefect", "matplotlib", "optuna")

PROGRAM = """
import importlib, json, pkgutil, sys
import hyperbo
names = [m.name for m in pkgutil.walk_packages(hyperbo.__path__, "hyperbo.")]
for name in names:
    pages, optuna = "hyperbo.evaluation.pages.", ("hyperbo.tuning.opt", "hyperbo.tuning.tuner")
    if not ("figure" in name or "torch" in name or name.startswith((pages, *optuna))):
        importlib.import_module(name)
print(json.dumps([names, sorted(name.partition(".")[0] for name in sys.modules)]))
"""

PRECISION = """
import jax, jax.numpy as jnp
from gp_cases import tuning_data
from hyperbo.methods import STBO, Rand
from hyperbo.pretrain import Job
from hyperbo.bayesopt.offline import Run, simulate
data = tuning_data()
STBO().fit([Job(data, 0)])
simulate([Run(Rand().policy(None, data.tasks[0]), data.tasks[0], 0)], 1)
print(jax.config.jax_enable_x64, jnp.zeros(1).dtype)
"""


def run(program: str) -> str:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "tests/support")))}
    return subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    ).stdout


def test_importing_hyperbo_pulls_in_no_pipeline_no_flow_no_plots_and_no_optuna() -> None:
    names, loaded = json.loads(run(PROGRAM))
    assert {
        "hyperbo.gp.numerics",
        "hyperbo.methods.single_task.stbo",
        "hyperbo.priors.file",
        "hyperbo.bayesopt.offline",
    } <= set(names)
    assert "jax" in loaded
    assert not set(HEAVY) & set(loaded)
    assert not {"hyperbo_pipelines", "pd1_builder", "hyperbo_flows"} & set(loaded)


def test_calling_hyperbo_leaves_the_precision_of_jax_alone() -> None:
    assert run(PRECISION) == "False float32\n"


def test_what_checks_files_is_not_imported_before_a_file_is_read() -> None:
    assert run("import sys, hyperbo, hyperbo_flows.cli.main; print('pydantic' in sys.modules)") == "False\n"
