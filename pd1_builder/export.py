"""Writing a version in another format of TFDS, for those who read it by `tfds.load` and tf.data."""

from __future__ import annotations

import importlib.util
import logging
from pathlib import Path

from hyperbo.errors import InvalidInputError, NotAvailableError
from pd1_builder.catalog import find
from pd1_builder.staging import lock_version, publish, stage
from pd1_builder.verification import verify
from pipelines.execution import Execution

_LOGGER = logging.getLogger(__name__)
_FORMAT = "tfrecord"


def export_tfrecord(
    reference: str, out: Path, data_dir: Path | None = None, execution: Execution | None = None
) -> Path:
    """Write a version as TFRecord files: the same records in the same order.

    Args:
      reference: `<name>/<config>:<version>`.
      out: a folder to be used as TFDS's `data_dir`; the version is written below it.
      data_dir: where versions are kept; None for `catalog.default_data_dir`.
      execution: where Beam runs; None for this process.

    Returns:
      The folder written, `<out>/<name>/<config>/<version>`, which appears when it is complete.

    Raises:
      NotAvailableError: there is no such version, or TensorFlow is not installed.
      VersionConflictError: the version is damaged.
      InvalidInputError: the folder exists already.
    """
    version = find(reference, data_dir)
    if importlib.util.find_spec("tensorflow") is None:
        raise NotAvailableError("TFRecord files need TensorFlow; install hyperbo[tensorflow]")
    target = out / version.dataset / version.version
    with lock_version(target, lambda: _LOGGER.info("%s: another export is running; waiting for it", target)):
        if target.exists():
            raise InvalidInputError(f"{target} exists already", fix="remove it, or export to another folder")
        manifest = verify(f"{version.dataset}:{version.version}", data_dir)
        with stage(target) as staging:
            folder = staging / version.version
            folder.mkdir()
            _write(version.folder, tuple(manifest.counts), version.dataset, folder, execution or Execution())
            publish(folder, target)
    return target


def _write(source: Path, splits: tuple[str, ...], dataset: str, folder: Path, execution: Execution) -> None:
    import pyarrow.parquet as pq
    import tensorflow_datasets as tfds
    from tensorflow_datasets.core.splits import SplitDict

    from pd1_builder.shards import write_shards
    from pipelines.columns import columns_of

    columns = columns_of(pq.read_schema(source / f"{splits[0]}.parquet"))
    name = dataset.partition("/")[0]
    written = write_shards(source, splits, columns, folder, name, _FORMAT, execution)
    # The version's own description: without it, TFDS would not know that the records have an order.
    info = tfds.builder_from_directory(str(source)).info
    info.set_file_format(_FORMAT, override=True, override_if_initialized=True)
    info.set_splits(SplitDict(written))
    info.write_to_directory(folder)
