"""Refresh: what is new in the sources becomes the next version, and everyone is told."""

from __future__ import annotations

from flows.deployed import surroundings  # isort: skip - before anything that imports JAX

from pathlib import Path

# While it is imported, no other thread can import anything; so it is, before Prefect has threads.
import tensorflow_datasets  # noqa: F401
from prefect import flow, task
from prefect.artifacts import create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.tasks import exponential_backoff

from flows.champion import is_decided
from flows.events import tell
from flows.intake import Intake, newest, take_in, terms
from flows.progress import say
from flows.service import Service, read_service
from flows.sources import SourceFile, SourceState, listing
from hyperbo.errors import InvalidInputError
from pd1_builder.catalog import find
from pd1_builder.manifest import Manifest
from pd1_builder.release_checks import task_changes

Listings = tuple[tuple[SourceFile, ...], tuple[SourceFile, ...]]


@flow(name="refresh", timeout_seconds=12 * 3600, **surroundings.options())
def refresh(service: str) -> str:
    """Publish a version where the sources have something new; where not, say so and stop.

    Args:
      service: the service file.

    Returns:
      The newest version; empty where there is none.

    Raises:
      InvalidInputError: nothing new could be used; names the files and why.
      HyperBOError: a source cannot be reached, or a version cannot be published.
    """
    of = read_service(Path(service))
    archive, inbox = look(of)
    states = {
        name: SourceState(of.design.runs, f"{of.dataset}-{name}", terms(of)) for name in ("archive", "inbox")
    }
    here = newest(of)
    seen = {
        name: here is not None and states[name].holds(files, here.version)
        for name, files in (("archive", archive), ("inbox", inbox))
    }
    if here is not None and all(seen.values()):
        say(f"{of.dataset}: nothing new since {here.version}")
        if not is_decided(of, here.version):
            # The chain was broken off, or goes on: a run that is going makes the one that this starts end.
            tell("dataset.published", of, here.version, manifest_hash=here.content_hash)
        return here.version
    outcome = publish(of, () if seen["archive"] else archive, inbox)
    for name, reason in (outcome.refused | outcome.unsettled).items():
        say(f"{of.dataset}: {name} {'refused' if name in outcome.refused else 'left for later'}: {reason}")
    if outcome.manifest is None:
        if outcome.refused:
            raise InvalidInputError(
                f"no version of {of.dataset} could be made",
                where=of.source.inbox or of.source.archive,
                fix="see the reasons above",
            )
        say(f"{of.dataset}: no trials yet")
        return ""
    version = outcome.manifest.version
    say(f"{of.dataset}: {', '.join(outcome.published) or 'nothing new'}; the newest is {version}")
    _tell(of, outcome)
    states["archive"].record(archive, version)
    if not outcome.unsettled:
        states["inbox"].record(inbox, version)
    return version


@task(
    retries=3,
    retry_delay_seconds=exponential_backoff(2),
    timeout_seconds=120,
    persist_result=False,
    cache_policy=NO_CACHE,
)
def look(service: Service) -> Listings:
    """List the sources; a network that is down for seconds is no failure."""
    source = service.source
    return (
        listing(source.archive) if source.archive else (),
        listing(source.inbox) if source.inbox else (),
    )


@task(persist_result=False, cache_policy=NO_CACHE, timeout_seconds=6 * 3600)
def publish(service: Service, archive: tuple[SourceFile, ...], inbox: tuple[SourceFile, ...]) -> Intake:
    """Build, check and publish; one build of a version at a time, whoever runs it."""
    return take_in(service, archive, inbox)


def _tell(service: Service, outcome: Intake) -> None:
    manifest = outcome.manifest
    assert manifest is not None
    if outcome.refused:
        tell("trials.refused", service, manifest.version, files=outcome.refused)
    if outcome.published:
        create_table_artifact(
            key=surroundings.artifact_key("version", service.dataset),
            table=_rows(service, manifest),
            description=f"{', '.join(outcome.published)}, content {manifest.content_hash}",
        )
    if outcome.published or not is_decided(service, manifest.version):
        tell("dataset.published", service, manifest.version, manifest_hash=manifest.content_hash)


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
