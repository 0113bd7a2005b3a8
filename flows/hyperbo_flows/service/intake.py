"""Intake: new files of a service's sources become the next version of its dataset, or are refused."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

from hyperbo_pipelines.curate.raw_files import sha256_of
from hyperbo_pipelines.trials.space_file import read_space_file

from hyperbo.errors import InvalidInputError, NotAvailableError, UnreachableError
from hyperbo.storage.code_version import CURATION, code_version
from hyperbo_flows.experiments import ledger
from hyperbo_flows.service.settings import Service
from hyperbo_flows.service.sources import Fetch, SourceFile, fetched, fetched_archive
from pd1_builder import Manifest, add, build
from pd1_builder.compare.release_checks import check_release
from pd1_builder.release.next_version import can_be_added, next_release
from pd1_builder.version.catalog import find
from pd1_builder.version.makeable import newest_shipped
from pd1_builder.version.manifest import read_manifest


@dataclass
class Intake:
    """What became of the files of the sources.

    Attributes:
      manifest: the manifest of the newest version; None where there is none yet.
      published: the versions that were published, in their order.
      refused: why files were refused, by their names.
      unsettled: why files could not be read now, by their names; a file may still be being written.
      unreachable: why the archive could not be read; empty where it was read, or holds nothing new.
    """

    manifest: Manifest | None
    published: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    unsettled: dict[str, str] = field(default_factory=dict)
    unreachable: str = ""

    def follow(self, manifest: Manifest) -> None:
        """Go on from a version, which was published now unless it is the one before."""
        if self.manifest is None or manifest.version != self.manifest.version:
            self.published.append(manifest.reference)
        self.manifest = manifest


def newest(service: Service) -> Manifest | None:
    """The manifest of the newest version of a service's dataset; None where there is none."""
    try:
        return read_manifest(find(service.dataset, service.design.data_dir).folder)
    except NotAvailableError:
        return None


def terms(service: Service) -> str:
    """What decides, beside a file's content, whether the file is accepted: limits, space file and code."""
    space = service.source.space
    return "; ".join(
        (
            repr(service.checks),
            f"max_reject_share={service.source.max_reject_share!r}",
            f"space={sha256_of(Path(space)) if space else ''}",
            f"code={_code()}",
        )
    )


@cache
def _code() -> str:
    return code_version(*CURATION, "hyperbo_flows.service.intake")


def take_in(
    service: Service, archive: Sequence[SourceFile], inbox: Sequence[SourceFile], fetch: Fetch = fetched
) -> Intake:
    """Publish what is new in the sources: of an archive first, then of the inbox.

    A file that cannot be used does not hold up the others. It is refused, and tried again when its content or
    the terms change. An archive that cannot be reached does not hold up the inbox.

    Args:
      service: the service.
      archive: the file of the archive, or the raw files of its folder; none where the service has no archive.
      inbox: the files of the inbox.
      fetch: reads a file of a source, as `hyperbo_flows.service.sources.fetched` does.

    Raises:
      InvalidInputError: the space file cannot be read.
      HyperBOError: a version cannot be published, and its files are not the reason.
    """
    if service.source.space:
        read_space_file(Path(service.source.space))  # A fault of it must not be blamed on the files.
    intake = Intake(newest(service))
    if intake.manifest is None and not archive and (version := newest_shipped(service.dataset)):
        intake.follow(build(service.dataset, version, data_dir=service.design.data_dir))
    with tempfile.TemporaryDirectory(prefix="intake-") as scratch:
        if archive:
            _take_archive(service, archive, Path(scratch) / "archive", fetch, intake)
        if files := _usable(service, inbox, Path(scratch) / "inbox", fetch, intake):
            _take_files(service, files, intake)
    return intake


def _take_archive(
    service: Service, files: Sequence[SourceFile], scratch: Path, fetch: Fetch, intake: Intake
) -> None:
    name, identity = files[0].name, _refusal(service, repr([(each.url, each.stamp) for each in files]))
    earlier = ledger.find(service.design.runs, identity)
    if earlier is not None:
        intake.refused[name] = str(ledger.facts(earlier)["reason"])
        return
    try:
        if len(files) == 1:
            raw = fetched_archive(files[0], service.design.data_dir / "downloads", fetch)
        else:
            raw = {fetch(file, scratch).parent for file in files}.pop()
        manifest = next_release(
            service.dataset,
            raw,
            data_dir=service.design.data_dir,
            max_reject_share=service.source.max_reject_share,
            gate=partial(check_release, checks=service.checks),
        )
    except UnreachableError as error:
        intake.unreachable = str(error)
    except InvalidInputError as error:
        _refuse(service, name, identity, error, intake)
    else:
        intake.follow(manifest)


def _usable(
    service: Service, inbox: Sequence[SourceFile], scratch: Path, fetch: Fetch, intake: Intake
) -> list[Path]:
    """The files of the inbox that are new, can be read and were not refused before, on this machine."""
    is_known = can_be_added(service.dataset)
    manifest = intake.manifest
    held = {file.sha256 for file in (*manifest.raw_files, *manifest.exports)} if manifest else set()
    usable = []
    for file in inbox:
        if is_known is None or not is_known(Path(file.name)):
            intake.refused[file.name] = "not a kind of file that is read for this dataset"
            continue
        try:
            local = fetch(file, scratch)
            content = sha256_of(local)
        except (InvalidInputError, NotAvailableError, OSError) as error:
            intake.unsettled[file.name] = str(error)
            continue
        earlier = ledger.find(service.design.runs, _refusal(service, content))
        if earlier is not None:
            intake.refused[file.name] = str(ledger.facts(earlier)["reason"])
        elif content not in held:
            usable.append(local)
    return usable


def _take_files(service: Service, files: Sequence[Path], intake: Intake) -> None:
    """Publish the files. Where that fails, publish those that fit together, found one after another."""
    try:
        intake.follow(_add(service, files))
    except InvalidInputError as error:
        good: list[Path] = []
        if len(files) == 1:
            _refuse(service, files[0].name, _refusal(service, sha256_of(files[0])), error, intake)
        else:
            good = _fitting(service, files, intake)
        if good:
            intake.follow(_add(service, good))


def _fitting(service: Service, files: Sequence[Path], intake: Intake) -> list[Path]:
    """The files that can be added together. Each is tried in a copy of the dataset that is thrown away."""
    good: list[Path] = []
    for path in files:
        with tempfile.TemporaryDirectory(prefix="tried-") as scratch:
            _link_newest(service, Path(scratch))
            try:
                _add(service, [*good, path], Path(scratch))
            except InvalidInputError as error:
                _refuse(service, path.name, _refusal(service, sha256_of(path)), error, intake)
            else:
                good.append(path)
    return good


def _link_newest(service: Service, data_dir: Path) -> None:
    try:
        version = find(service.dataset, service.design.data_dir)
    except NotAvailableError:
        return
    place = data_dir / service.dataset / version.version
    place.parent.mkdir(parents=True)
    place.symlink_to(version.folder.absolute(), target_is_directory=True)
    if (downloads := service.design.data_dir / "downloads").is_dir():
        (data_dir / "downloads").symlink_to(downloads.absolute(), target_is_directory=True)


def _add(service: Service, files: Sequence[Path], data_dir: Path | None = None) -> Manifest:
    return add(
        service.dataset,
        files,
        Path(service.source.space) if service.source.space else None,
        data_dir=data_dir or service.design.data_dir,
        max_reject_share=service.source.max_reject_share,
        gate=partial(check_release, checks=service.checks),
    )


def _refuse(
    service: Service, name: str, identity: dict[str, str], error: InvalidInputError, intake: Intake
) -> None:
    intake.refused[name] = str(error)
    ledger.finish(service.design.runs, identity, lambda folder: None, {"file": name, "reason": str(error)})


def _refusal(service: Service, content: str) -> dict[str, str]:
    return {"kind": "refusal", "dataset": service.dataset, "content": content, "terms": terms(service)}
