"""What all unattended flows share: a process prepared before JAX is imported, and options."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hyperbo_flows.process.environment import prepare_process

prepare_process()


def run_name() -> str:
    """Name of a flow run: the name of the service file, and the version where one is given."""
    from prefect.runtime import flow_run

    given = flow_run.parameters
    return " ".join(str(part) for part in (Path(given["service"]).stem, given.get("version")) if part)


def notify(flow: Any, flow_run: Any, state: Any) -> None:
    """Tell the operators about a run that failed, where a notification block is named: a state hook."""
    # The import makes the kinds of notification blocks known.
    import prefect.blocks.notifications  # noqa: F401
    from prefect.blocks.core import Block

    # As `slack-webhook/operators`.
    name = os.environ.get("HYPERBO_NOTIFY")
    if name:
        block: Any = Block.load(name)
        block.notify(f"{flow.name} {flow_run.name}: {state.name}: {state.message}", "hyperbo")


# The options that all unattended flows share.
OPTIONS: dict[str, Any] = {"flow_run_name": run_name, "on_failure": [notify], "on_crashed": [notify]}
