"""What the arena keeps of its results: a bundle, with the machine and its times."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from hyperbo.evaluation.records.join import Evaluation
from hyperbo.methods import METHODS
from hyperbo_flows.arena.bundle import Bundle, Machine, ProtocolEntry, Seconds
from hyperbo_flows.arena.protocol import PROTOCOL, Protocol
from hyperbo_flows.arena.run import PartResult
from hyperbo_flows.experiments.methods import method_class, method_source
from hyperbo_flows.experiments.plan import libraries, numeric_code
from hyperbo_flows.process.environment import available_cores


def protocol_entry(protocol: Protocol) -> ProtocolEntry:
    """The number and the hash of a protocol."""
    return {"number": protocol.number, "sha256": protocol.sha256()}


def bundle_of(
    results: Mapping[str, PartResult], load: Sequence[float], protocol: Protocol = PROTOCOL
) -> Bundle:
    """The bundle of results that were made on this machine.

    Args:
      results: by part.
      load: the machine's load before and after, processes on average over a minute.
      protocol: by which they were made.
    """
    parts = {name: _without_times(result.evaluation) for name, result in results.items()}
    labels = dict.fromkeys(label for each in parts.values() for label in each.metadata["methods"])
    return Bundle(
        protocol_entry(protocol),
        (machine(results, load),),
        parts,
        {name: dict(result.does_not_apply) for name, result in results.items() if result.does_not_apply},
        {label: method_source(method_class(label)) for label in labels if label not in METHODS},
    )


def machine(results: Mapping[str, PartResult], load: Sequence[float]) -> Machine:
    """This machine, and the seconds of the runs of some parts."""
    return {
        "processor": _processor(),
        "cores": available_cores(),
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "libraries": libraries() | {name: metadata.version(name) for name in ("scipy", "pandas", "pyarrow")},
        "code_version": numeric_code(),
        "load": [round(each, 2) for each in load],
        "seconds": {name: seconds_of(each) for name, each in results.items()},
    }


def seconds_of(result: PartResult) -> dict[str, Seconds]:
    """Seconds of each method in a part: of what it learned, by prior; and of a choice.

    Compilation is in both. A choice is one of many that are simulated together. What is learned in less than
    a second is not told apart from 0.
    """
    given = result.evaluation.metadata["seconds"]
    learned, simulated = given.get("pre-train", {}), given.get("evaluate", {})
    assert isinstance(learned, dict)
    assert isinstance(simulated, dict)
    choices = result.evaluation.records["method"].value_counts()
    return {
        str(method): {
            "prior": learned.get(str(method), 0.0) / result.priors,
            "choice": simulated.get(str(method), 0.0) / int(count),
        }
        for method, count in choices.items()
    }


def _without_times(evaluation: Evaluation) -> Evaluation:
    """Times are told by machine, and never summed over several."""
    metadata: Any = {name: each for name, each in evaluation.metadata.items() if name != "total_seconds"}
    # As a file has it: lists in place of tuples.
    return Evaluation(evaluation.records, json.loads(json.dumps(metadata | {"seconds": {}})))


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()
