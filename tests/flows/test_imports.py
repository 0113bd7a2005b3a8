"""What is imported where: Prefect and Typer in `flows`, and the sources that decide numbers."""

from __future__ import annotations

import ast

import pytest

from docs.reference import FLOORS
from hyperbo.storage.code_version import NUMERIC

MODULES = {
    ".".join(path.relative_to(folder.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for folder in FLOORS.values()
    for path in folder.rglob("*.py")
}


def imported(module, nested=True):
    """What a module imports, `TYPE_CHECKING` aside; with or without the imports in its functions."""
    found = set()

    def look(node):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                found.update(alias.name for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                names = [f"{child.module}.{alias.name}" for alias in child.names]
                found.update(name if name in MODULES else child.module for name in names)
            elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            elif nested or not isinstance(child, ast.FunctionDef):
                look(child)

    look(ast.parse(MODULES[module].read_text()))
    return found


def within(name, packages):
    return any(name == package or name.startswith(f"{package}.") for package in packages)


@pytest.mark.parametrize(
    ("room", "nested", "forbidden"),
    [
        ("hyperbo_flows.experiments", True, ("prefect", "prefect_dask", "typer")),
        ("hyperbo_flows.service", True, ("typer",)),
        # Experiments use this room without Prefect: what sets Prefect up imports it when it is called.
        ("hyperbo_flows.process", False, ("prefect", "typer")),
    ],
)
def test_only_flows_need_prefect_and_only_commands_typer(room, nested, forbidden):
    for module in MODULES:
        if within(module, [room]):
            assert not {name for name in imported(module, nested) if within(name, forbidden)}, module


# What numeric code uses, and no number depends on: errors, files, names of methods, progress.
NOT_NUMERIC = (
    "hyperbo_flows.experiments.evaluation_folder",
    "hyperbo_flows.experiments.ledger",
    "hyperbo_flows.experiments.methods",
    "hyperbo_flows.experiments.work",
    "hyperbo_flows.process",
    "hyperbo.errors",
    "hyperbo.storage.installation",
    "hyperbo.evaluation.records",
    "hyperbo.storage",
    "pd1_builder.version",
    "pd1_builder.distribution",
)


def test_numbers_are_decided_by_the_sources_that_are_named_so():
    for module in MODULES:
        if within(module, NUMERIC):
            used = {name for name in imported(module) if name in MODULES and not within(name, NUMERIC)}
            # The face of `pd1_builder` hands on the reader, which is numeric.
            assert not {name for name in used - {"pd1_builder"} if not within(name, NOT_NUMERIC)}, module
