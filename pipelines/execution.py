"""Execution: where Beam runs a pipeline."""

from __future__ import annotations

import logging
import re
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from hyperbo import errors
from hyperbo.errors import HyperBOError, InvalidInputError

# Beam's third mode, multi_threading, loses rows without an error.
RunningMode = Literal["in_memory", "multi_processing", "external"]


@dataclass(frozen=True)
class Execution:
    """Where Beam runs a pipeline; the records do not depend on it.

    Attributes:
      mode: `in_memory`, in this process; `multi_processing`, in worker processes that are started for it;
        `external`, on a pool of workers that runs already and sees the same files.
      workers: number of worker processes.
      worker_pool: address of the pool, `host:port`.
      beam_arguments: command-line arguments of Beam in place of all this, for another runner.
    """

    mode: RunningMode = "in_memory"
    workers: int = 1
    worker_pool: str = ""
    beam_arguments: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.mode not in get_args(RunningMode) or self.workers < 1:
            raise InvalidInputError(
                f"running mode {self.mode!r} with {self.workers} workers",
                fix=f"use one of {', '.join(get_args(RunningMode))}, and at least one worker",
            )
        if (self.mode == "external") != bool(self.worker_pool):
            raise InvalidInputError(
                f"running mode {self.mode!r} with the worker pool {self.worker_pool!r}",
                fix="give the address of a worker pool with external, and only with it",
            )

    def run(self, build: Callable[[Any], Any]) -> None:
        """Run the pipeline that `build` puts together.

        Raises:
          InvalidInputError: a transform refused its input, in whichever process.
          HyperBOError: a worker process died, or the pipeline failed otherwise.
        """
        from pipelines.worker_loss import noticing_lost_workers

        beam_log = logging.getLogger("apache_beam")
        level = beam_log.level
        # What fails is raised; Beam would log it before, with all its stages.
        beam_log.setLevel(logging.CRITICAL)
        try:
            with noticing_lost_workers():
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

        environments: Any = beam_environments  # Its classes are made by a decorator that hides what they are.
        if self.beam_arguments:
            runner, options = None, PipelineOptions(list(self.beam_arguments))
        else:
            match self.mode:
                case "in_memory":
                    environment = environments.EmbeddedPythonEnvironment.default()
                case "multi_processing":
                    worker = f"{shlex.quote(sys.executable)} -m pipelines.worker"
                    environment = environments.SubprocessSDKEnvironment.from_command_string(worker)
                case "external":
                    environment = environments.ExternalEnvironment(self.worker_pool)
            runner = FnApiRunner(environment)
            options = PipelineOptions([f"--direct_num_workers={self.workers}"])
            # Where the work goes is said by the environment; a mode beside it would say it again, otherwise.
            options.view_as(DirectOptions).direct_running_mode = None
        with beam.Pipeline(runner, options=options) as pipeline:
            build(pipeline)


# How Beam spells where an error was met, and how a worker's traceback spells an error of this project's.
_STEP = re.compile(r" \[while running '.*'\]", re.DOTALL)
_OURS = re.compile(r"^hyperbo\.errors\.(\w+): (.*)$", re.MULTILINE)


def _plain(error: Exception) -> Exception:
    """An error without what Beam and its workers put around it."""
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
