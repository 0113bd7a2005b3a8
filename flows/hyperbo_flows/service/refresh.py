"""Refresh: what is new in the sources becomes the next version, and everyone is told."""

from __future__ import annotations

from hyperbo_flows.service import surroundings  # isort: skip - before anything that imports JAX

from pathlib import Path
from typing import Any

# Its import blocks the imports of all other threads; so it comes before Prefect has threads.
import tensorflow_datasets  # noqa: F401
from prefect import flow, task
from prefect.artifacts import create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.tasks import exponential_backoff

from hyperbo.errors import InvalidInputError, UnreachableError
from hyperbo_flows.process.progress import say
from hyperbo_flows.service.artifacts import artifact_key
from hyperbo_flows.service.contest import is_open
from hyperbo_flows.service.events import tell
from hyperbo_flows.service.intake import Intake, newest, take_in, terms
from hyperbo_flows.service.settings import Service, read_service
from hyperbo_flows.service.sources import SourceFile, SourceState, fetched, listing
from pd1_builder.compare.release_checks import task_changes
from pd1_builder.version.catalog import find
from pd1_builder.version.manifest import Manifest

SOURCES = ("archive", "inbox")


def _can_pass(task: Any, task_run: Any, state: Any) -> bool:
    """Whether a fault may be gone in seconds: that of a network or a disk, and not that of the input."""
    try:
        state.result()
    except (UnreachableError, OSError):
        return True
    except Exception:
        return False
    return False


# Options of tasks that use networks and disks.
_TRIED_AGAIN: dict[str, Any] = {
    "retries": 3,
    "retry_delay_seconds": exponential_backoff(2),
    "retry_jitter_factor": 0.5,
    "retry_condition_fn": _can_pass,
    "persist_result": False,
    "cache_policy": NO_CACHE,
}


@flow(name="refresh", timeout_seconds=12 * 3600, **surroundings.OPTIONS)
def refresh(service: str) -> str:
    """Publish a version where the sources have something new; where they have not, say so and stop.

    A source that cannot be reached does not hold up the other: the run goes on, and fails at its end.

    Args:
      service: path of the service file.

    Returns:
      The newest version; empty where there is none.

    Raises:
      UnreachableError: a source could not be reached; what the other had is published.
      InvalidInputError: nothing new could be used; names the files and why.
      HyperBOError: a version cannot be published.
    """
    settings = read_service(Path(service))
    listings, unreachable = _look_at_all(settings)
    states = {
        name: SourceState(settings.design.runs, f"{settings.dataset}-{name}", terms(settings))
        for name in SOURCES
    }
    here = newest(settings)
    new = {
        name: files
        for name, files in listings.items()
        if here is None or not states[name].holds(files, here.version)
    }
    if here is not None and not new:
        version = here.version
        if listings:
            say(f"{settings.dataset}: nothing new since {version}")
        if is_open(settings, version):
            # The chain was broken off, or is going on: then the run that this starts ends at once.
            tell("dataset.published", settings, version, manifest_hash=here.content_hash)
    else:
        intake = publish(settings, new.get("archive", ()), listings.get("inbox", ()))
        if intake.unreachable:
            unreachable.append(intake.unreachable)
            del listings["archive"]
        version = _tell(settings, intake)
        for name, files in listings.items():
            if version and not (name == "inbox" and intake.unsettled):
                states[name].record(files, version)
    if unreachable:
        raise UnreachableError("; ".join(unreachable))
    return version


def _look_at_all(service: Service) -> tuple[dict[str, tuple[SourceFile, ...]], list[str]]:
    """The files of each source by its name, and why other sources could not be reached."""
    listings, unreachable = {}, []
    for name in SOURCES:
        url = getattr(service.source, name)
        try:
            listings[name] = look(name, url) if url else ()
        except (UnreachableError, TimeoutError) as error:
            say(f"{service.dataset}: {name} not reached: {error}")
            unreachable.append(str(error))
    return listings, unreachable


@task(task_run_name="look at {source}", timeout_seconds=120, **_TRIED_AGAIN)
def look(source: str, url: str) -> tuple[SourceFile, ...]:
    """List the files of a source."""
    return listing(url)


@task(task_run_name="fetch {file.name}", timeout_seconds=6 * 3600, **_TRIED_AGAIN)
def fetch(file: SourceFile, folder: Path) -> Path:
    """Copy a file of a source to this machine."""
    return fetched(file, folder)


@task(timeout_seconds=6 * 3600, **_TRIED_AGAIN)
def publish(service: Service, archive: tuple[SourceFile, ...], inbox: tuple[SourceFile, ...]) -> Intake:
    """Build, check and publish; one build of a version at a time, whoever runs it."""
    # A file of this machine needs neither further attempts nor a task of its own.
    return take_in(
        service,
        archive,
        inbox,
        lambda file, folder: fetched(file, folder) if file.is_here else fetch(file, folder),
    )


def _tell(service: Service, intake: Intake) -> str:
    """Say and tell what became of the sources, and return the newest version."""
    for name, reason in (intake.refused | intake.unsettled).items():
        done = "refused" if name in intake.refused else "left for later"
        say(f"{service.dataset}: {name} {done}: {reason}")
    if intake.manifest is None:
        if intake.refused:
            raise InvalidInputError(
                f"no version of {service.dataset} could be made",
                where=service.source.inbox or service.source.archive,
                fix="see the reasons above",
            )
        say(f"{service.dataset}: no trials yet")
        return ""
    manifest = intake.manifest
    published = ", ".join(intake.published)
    say(f"{service.dataset}: {published or 'nothing new'}; the newest is {manifest.version}")
    if intake.refused:
        tell("trials.refused", service, manifest.version, files=intake.refused)
    if intake.published:
        create_table_artifact(
            key=artifact_key("version", service.dataset),
            table=_rows(service, manifest),
            description=f"{published}, content {manifest.content_hash}",
        )
    if intake.published or is_open(service, manifest.version):
        tell("dataset.published", service, manifest.version, manifest_hash=manifest.content_hash)
    return manifest.version


def _rows(service: Service, manifest: Manifest) -> list[dict[str, object]]:
    """What changed of each task, for the page of the run."""
    data_dir = service.design.data_dir
    folder = find(manifest.reference, data_dir).folder
    if manifest.parent is None:
        counts: dict[str, int] = {}
        for tasks in manifest.counts.values():
            for name, statuses in tasks.items():
                counts[name] = counts.get(name, 0) + sum(statuses.values())
        return [{"task": name, "records": count} for name, count in counts.items()]
    parent = find(f"{service.dataset}:{manifest.parent}", data_dir).folder
    return [
        {
            "task": each.task,
            "before": each.before,
            "added": each.added,
            "removed": each.removed,
            "repeated inputs": each.repeated,
            "drift of y": f"{each.drift:.2f}",
        }
        for each in task_changes(parent, folder)
    ]
