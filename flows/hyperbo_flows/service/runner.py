"""How the flows run the parts of a step: as tasks in order, or spread over threads or a Dask cluster.

The functions import Prefect, and the module does not: a service file is read before Prefect is set up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from hyperbo.errors import InvalidInputError
from hyperbo.storage.installation import require_extras
from hyperbo_flows.experiments.work import Failures, Part, Runner
from hyperbo_flows.service.artifacts import shown_progress


@dataclass(frozen=True)
class Compute:
    """How the parts of an evaluation are spread.

    Attributes:
      runner: threads of the process, or Dask.
      workers: number of threads, or of workers of a Dask cluster that is started for the flow.
      address: address of a Dask scheduler that runs already, such as `tcp://scheduler:8786`; empty for none.
        Its workers must see the folders of the service.
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


def in_order(step: str) -> Runner:
    """Run the parts of a step one after another, each as a task of the flow that runs.

    Args:
      step: name of the step, for the names of the tasks.
    """
    part_task = _part_task(step)

    def run_all(work: Callable[[Part], Failures], parts: Iterable[Part]) -> list[Failures]:
        return [part_task(work, part) for part in parts]

    return Runner(run_all, progress=shown_progress)


def spread(step: str, name: str, compute: Compute) -> Runner:
    """Run the parts of a step in a flow of their own, as many at once as there are workers.

    Args:
      step: name of the step, and of the flow.
      name: name of the flow's run.
      compute: where the parts run.

    Raises:
      MissingExtraError: the package for Dask is not installed.
    """
    from prefect import flow

    part_task = _part_task(step)

    def run_all(work: Callable[[Part], Failures], parts: Iterable[Part]) -> list[Failures]:
        @flow(name=step, flow_run_name=name, task_runner=_task_runner(compute))
        def all_parts() -> list[Failures]:
            futures = [part_task.submit(work, part) for part in parts]
            return [future.result() for future in futures]

        return all_parts()

    return Runner(run_all, by_fold=True, progress=shown_progress)


def _part_task(step: str) -> Any:
    from prefect import task
    from prefect.cache_policies import NO_CACHE

    return task(task_run_name=f"{step} {{part}}", persist_result=False, cache_policy=NO_CACHE)(_work_on)


def _work_on(work: Callable[[Part], Failures], part: Part) -> Failures:
    return work(part)


def _task_runner(compute: Compute) -> Any:
    if compute.runner == "threads":
        from prefect.task_runners import ThreadPoolTaskRunner

        return ThreadPoolTaskRunner(max_workers=compute.workers)
    require_extras("dask", purpose="the runner dask")
    from prefect_dask.task_runners import DaskTaskRunner

    if compute.address:
        return DaskTaskRunner(address=compute.address)
    return DaskTaskRunner(
        cluster_kwargs={"n_workers": compute.workers, "threads_per_worker": 1, "dashboard_address": None}
    )
