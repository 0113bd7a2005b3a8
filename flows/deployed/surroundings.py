"""What every unattended flow begins with, before JAX is imported; and who is told when one fails."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from flows.jobs import prepare_process

prepare_process()

# Name of a notification block of the Prefect server, as `slack-webhook/operators`.
NOTIFY = "HYPERBO_NOTIFY"


def run_name() -> str:
    """Name of a flow run: the service file's, and the version where one is given."""
    from prefect.runtime import flow_run

    given = flow_run.parameters
    return " ".join(str(part) for part in (Path(given["service"]).stem, given.get("version")) if part)


def notify(flow: Any, flow_run: Any, state: Any) -> None:
    """State hook: tell the operators of a run that failed, where a notification block is named."""
    # Importing them makes the kinds of notification blocks known.
    import prefect.blocks.notifications  # noqa: F401
    from prefect.blocks.core import Block

    name = os.environ.get(NOTIFY)
    if name:
        block: Any = Block.load(name)
        block.notify(f"{flow.name} {flow_run.name}: {state.name}: {state.message}", "hyperbo")


def options(**more: Any) -> dict[str, Any]:
    """Options that all unattended flows share."""
    return {
        "flow_run_name": run_name,
        "on_failure": [notify],
        "on_crashed": [notify],
        **more,
    }
