"""Where the parts of an evaluation run: threads of this process, or a Dask cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from hyperbo.errors import InvalidInputError, NotAvailableError


@dataclass(frozen=True)
class Compute:
    """How the parts of an evaluation are spread.

    Attributes:
      runner: threads of the process, or Dask.
      workers: threads, or workers of a Dask cluster that is started for the flow.
      address: of a Dask scheduler that runs already, such as `tcp://scheduler:8786`; empty for none. Its
        workers must see the folders of the service.
    """

    runner: Literal["threads", "dask"] = "threads"
    workers: int = 1
    address: str = ""

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise InvalidInputError(f"workers = {self.workers}", where="compute", fix="give at least one")
        if self.address and self.runner != "dask":
            raise InvalidInputError(
                f"address = {self.address!r} of {self.runner}", where="compute", fix='write runner = "dask"'
            )


def task_runner(compute: Compute) -> Any:
    """The Prefect task runner.

    Raises:
      NotAvailableError: the package for Dask is not installed.
    """
    if compute.runner == "threads":
        from prefect.task_runners import ThreadPoolTaskRunner

        return ThreadPoolTaskRunner(max_workers=compute.workers)
    try:
        from prefect_dask.task_runners import DaskTaskRunner
    except ImportError as error:
        raise NotAvailableError("the runner dask needs prefect-dask: pip install 'hyperbo[dask]'") from error
    if compute.address:
        return DaskTaskRunner(address=compute.address)
    return DaskTaskRunner(
        cluster_kwargs={"n_workers": compute.workers, "threads_per_worker": 1, "dashboard_address": None}
    )
