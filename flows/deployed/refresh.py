"""Refresh: what is new in the sources becomes the next version, and everyone is told."""

from __future__ import annotations

from flows.deployed import surroundings  # isort: skip - before anything that imports JAX

from pathlib import Path
from typing import Any

# While it is imported, no other thread can import anything; so it is, before Prefect has threads.
import tensorflow_datasets  # noqa: F401
from prefect import flow, task
from prefect.artifacts import create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.tasks import exponential_backoff

from flows.artifacts import artifact_key
from flows.contest_failures import is_open
from flows.events import tell
from flows.intake import Intake, newest, take_in, terms
from flows.progress import say
from flows.service import Service, read_service
from flows.sources import SourceFile, SourceState, fetched, listing
from hyperbo.errors import InvalidInputError, UnreachableError
from pd1_builder.catalog import find
from pd1_builder.manifest import Manifest
from pd1_builder.release_checks import task_changes

SOURCES = ("archive", "inbox")


def can_pass(task: Any, task_run: Any, state: Any) -> bool:
    """Whether a fault may be gone in seconds: one of a network or a disk, and none of what was given."""
    try:
        state.result()
    except (UnreachableError, OSError):
        return True
    except Exception:
        return False
    return False


# Of tasks that reach for what is not this process's own.
_TRIED_AGAIN: dict[str, Any] = {
    "retries": 3,
    "retry_delay_seconds": exponential_backoff(2),
    "retry_jitter_factor": 0.5,
    "retry_condition_fn": can_pass,
    "persist_result": False,
    "cache_policy": NO_CACHE,
}


@flow(name="refresh", timeout_seconds=12 * 3600, **surroundings.options())
def refresh(service: str) -> str:
    """Publish a version where the sources have something new; where not, say so and stop.

    A source that cannot be reached does not hold up the other: the run goes on, and fails at its end.

    Args:
      service: the service file.

    Returns:
      The newest version; empty where there is none.

    Raises:
      UnreachableError: a source could not be reached; what the other had is published.
      InvalidInputError: nothing new could be used; names the files and why.
      HyperBOError: a version cannot be published.
    """
    of = read_service(Path(service))
    listings, unreachable = _look_at_all(of)
    states = {name: SourceState(of.design.runs, f"{of.dataset}-{name}", terms(of)) for name in SOURCES}
    here = newest(of)
    new = {
        name: files
        for name, files in listings.items()
        if here is None or not states[name].holds(files, here.version)
    }
    if here is not None and not new:
        version = here.version
        if listings:
            say(f"{of.dataset}: nothing new since {version}")
        if is_open(of, version):
            # The chain was broken off, or goes on: a run that is going makes the one that this starts end.
            tell("dataset.published", of, version, manifest_hash=here.content_hash)
    else:
        outcome = publish(of, new.get("archive", ()), listings.get("inbox", ()))
        if outcome.unreachable:
            unreachable.append(outcome.unreachable)
            del listings["archive"]
        version = _tell(of, outcome)
        for name, files in listings.items():
            if version and not (name == "inbox" and outcome.unsettled):
                states[name].record(files, version)
    if unreachable:
        raise UnreachableError("; ".join(unreachable))
    return version


def _look_at_all(service: Service) -> tuple[dict[str, tuple[SourceFile, ...]], list[str]]:
    """The files of each source, by its name; and why sources could not be reached."""
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
    # A file of this machine needs no attempts, and no run of a task to be shown.
    return take_in(
        service,
        archive,
        inbox,
        lambda file, folder: fetched(file, folder) if file.is_here else fetch(file, folder),
    )


def _tell(service: Service, outcome: Intake) -> str:
    """Say and tell what became of the sources; the newest version.

    Raises:
      InvalidInputError: there is no version, for no file could be used.
    """
    for name, reason in (outcome.refused | outcome.unsettled).items():
        done = "refused" if name in outcome.refused else "left for later"
        say(f"{service.dataset}: {name} {done}: {reason}")
    if outcome.manifest is None:
        if outcome.refused:
            raise InvalidInputError(
                f"no version of {service.dataset} could be made",
                where=service.source.inbox or service.source.archive,
                fix="see the reasons above",
            )
        say(f"{service.dataset}: no trials yet")
        return ""
    manifest = outcome.manifest
    published = ", ".join(outcome.published)
    say(f"{service.dataset}: {published or 'nothing new'}; the newest is {manifest.version}")
    if outcome.refused:
        tell("trials.refused", service, manifest.version, files=outcome.refused)
    if outcome.published:
        create_table_artifact(
            key=artifact_key("version", service.dataset),
            table=_rows(service, manifest),
            description=f"{published}, content {manifest.content_hash}",
        )
    if outcome.published or is_open(service, manifest.version):
        tell("dataset.published", service, manifest.version, manifest_hash=manifest.content_hash)
    return manifest.version


def _rows(service: Service, manifest: Manifest) -> list[dict[str, object]]:
    """What changed by task, for the page of the run."""
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
