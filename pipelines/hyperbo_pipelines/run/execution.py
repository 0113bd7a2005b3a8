"""Execution: in which processes Beam runs a pipeline."""

from __future__ import annotations

import logging
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, get_args

from hyperbo import errors
from hyperbo.errors import HyperBOError, InvalidInputError

# Beam's third mode, multi_threading, loses rows without an error.
RunningMode = Literal["in_memory", "multi_processing", "external"]


@dataclass(frozen=True)
class Execution:
    """In which processes Beam runs a pipeline; the records do not depend on it.

    Attributes:
      mode: `in_memory`, in this process; `multi_processing`, in worker processes that it starts;
        `external`, on a pool of workers that is already running and sees the same files.
      workers: number of worker processes.
      worker_pool: address of the pool, `host:port`.
      beam_arguments: command-line arguments of Beam for another runner; they replace the other attributes.
    """

    mode: RunningMode = "in_memory"
    workers: int = 1
    worker_pool: str = ""
    beam_arguments: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.mode not in get_args(RunningMode) or self.workers < 1:
            raise InvalidInputError(
                f"running mode {self.mode!r} with {self.workers} workers",
                fix=f"the mode is one of {', '.join(get_args(RunningMode))}; workers is at least 1",
            )
        if (self.mode == "external") != bool(self.worker_pool):
            raise InvalidInputError(
                f"running mode {self.mode!r} with the worker pool {self.worker_pool!r}",
                fix="give the address of a worker pool with external, and only with it",
            )

    def run(self, build: Callable[[Any], Any]) -> None:
        """Run the pipeline whose transforms `build` adds to an empty one.

        Raises:
          InvalidInputError: a transform refused its input, in this or another process.
          HyperBOError: a worker process died, or the pipeline failed in another way.
        """
        from hyperbo_pipelines.run.worker_loss import noticing_lost_workers

        beam_log = logging.getLogger("apache_beam")
        level = beam_log.level
        # Errors are raised; Beam would also log them, with all its stages.
        beam_log.setLevel(logging.CRITICAL)
        try:
            with noticing_lost_workers(), _as_outside_of_notebooks():
                self._run(build)
        except Exception as error:
            raise _plain(error) from error
        finally:
            beam_log.setLevel(level)

    def _run(self, build: Callable[[Any], Any]) -> None:
        import apache_beam as beam
        from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions
        from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner
        from apache_beam.transforms import environments as beam_environments

        environments: Any = beam_environments  # A decorator hides the types of its classes.
        if self.beam_arguments:
            runner, options = None, PipelineOptions(list(self.beam_arguments))
        else:
            match self.mode:
                case "in_memory":
                    environment = environments.EmbeddedPythonEnvironment.default()
                case "multi_processing":
                    # -P: the working directory may hold files of the user named like modules.
                    worker = f"{shlex.quote(sys.executable)} -P -m hyperbo_pipelines.run.worker"
                    environment = environments.SubprocessSDKEnvironment.from_command_string(worker)
                case "external":
                    environment = environments.ExternalEnvironment(self.worker_pool)
            runner = FnApiRunner(environment)
            options = PipelineOptions([f"--direct_num_workers={self.workers}"])
            # The environment decides where the work runs; a running mode would override it.
            options.view_as(DirectOptions).direct_running_mode = None
        with beam.Pipeline(runner, options=options) as pipeline:
            build(pipeline)


@contextmanager
def _as_outside_of_notebooks() -> Iterator[None]:
    """Keep Beam from its labels for notebooks: their module cannot be imported with pandas 3."""
    from apache_beam.utils import interactive_utils

    found = interactive_utils.is_in_ipython
    interactive_utils.is_in_ipython = lambda: False
    try:
        yield
    finally:
        interactive_utils.is_in_ipython = found


# Beam's name of the failed step, and an error of this project in a worker's traceback.
_STEP = re.compile(r" \[while running '.*'\]", re.DOTALL)
_OURS = re.compile(r"^hyperbo\.errors\.(\w+): (.*)$", re.MULTILINE)


def _plain(error: Exception) -> Exception:
    """An error without the text that Beam and its workers add."""
    if isinstance(error, HyperBOError):
        return type(error)(_STEP.sub("", str(error)))
    if isinstance(error, OSError):
        return error
    text = str(error)
    if told := _OURS.findall(text):
        name, message = told[-1]
        return getattr(errors, name)(_STEP.sub("", message))
    last = text.strip().splitlines()[-1:] or [type(error).__name__]
    return HyperBOError(f"the pipeline failed: {_STEP.sub('', last[0])}")
