"""Trying the draft of a space file on the rows that it was made from, before anyone sees it."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hyperbo.data.trial import Trial
from hyperbo.errors import InvalidInputError
from hyperbo_pipelines.histories.draft import SpaceDraft
from hyperbo_pipelines.trials.rows import find_trial_files
from hyperbo_pipelines.trials.space_file import read_space_file

_SHOWN = 3


def tried(draft: SpaceDraft, paths: Sequence[Path]) -> SpaceDraft:
    """The draft with a comment at its head: how many rows it reads, and why it rejects others.

    Raises:
      InvalidInputError: the draft is no space file, or a file cannot be read with it.
    """
    # Imported when it is used: it needs Beam.
    from hyperbo_pipelines.trials.parse import parse_file

    with tempfile.TemporaryDirectory(prefix="space-draft-") as folder:
        path = Path(folder) / "draft.toml"
        path.write_text(draft.to_toml(), encoding="utf-8")
        try:
            description = read_space_file(path)
        except InvalidInputError as error:
            # The file is gone when the message is read.
            where = error.where.replace(str(path), f"draft of a space file for {paths[0].name}")
            raise InvalidInputError(error.what, where=where, fix=error.fix) from error
    good, bad, reasons = 0, 0, []
    for file in find_trial_files(paths, description):
        for each in parse_file(file, description, "draft"):
            if isinstance(each, Trial):
                good += 1
            else:
                bad += 1
                if len(reasons) < _SHOWN:
                    reasons.append(f"{each.file}:{each.line}: {each.reason}")
    said = [f"Tried on the data: it reads {good} trials and rejects {bad} rows."]
    said += [f"Rejected: {reason}." for reason in reasons]
    notes = {**draft.notes, "": (*draft.notes.get("", ()), *said)}
    return replace(draft, notes=notes)
