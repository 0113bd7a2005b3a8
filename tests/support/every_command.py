"""Every command with arguments, and the extras that it needs beside the base dependencies.

python every_command.py DATA                 run all in this environment; prints a line of JSON for each
python every_command.py DATA "data build"    run one, with its own extras only: others' modules are hidden
"""

from __future__ import annotations

import json
import shlex
import sys
from typing import Any

TUNED = "digits_simple_cnn_20"
# Arguments, with DATA for a folder that holds pd1/mini:1.0.0; the extras.
COMMANDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "demo": ("--runs runs --seeds 1 --iterations 2", ("build", "report")),
    "evaluate": ("--method Rand --data DATA --seeds 1 --iterations 2", ("report",)),
    "study": ("acquisition --method Rand --data DATA --seeds 1 --iterations 2", ("report",)),
    "tune": ("--prior pd1-mini/h-ekl --trials 1 --command 'echo 0.5'", ("optuna",)),
    "online": (
        f"--task {TUNED} --out online --data DATA --method Rand --seeds 1 --trials 1",
        ("build", "collect", "optuna", "report"),
    ),
    "collect": ("--preset none", ("build", "collect")),
    "report": ("none", ("report",)),
    "data build": ("pd1/mini:1.0.0 --raw none --data built", ("build",)),
    "data list": ("--data DATA", ()),
    "data info": ("pd1/mini:1.0.0 --data DATA", ()),
    "data diff": ("pd1/mini:1.0.0 pd1/mini:1.0.0 --data DATA", ()),
    "data verify": ("pd1/mini:1.0.0 --data DATA", ()),
    "data survey": ("pd1/mini:1.0.0 --out survey --data DATA", ("report",)),
    "data export": ("pd1/mini:9.0.0 --out export --data DATA", ("build", "tensorflow")),
    "data record": ("runs none --data built", ("build",)),
    "data add": ("mine none.csv --data built", ("build",)),
    "data space": ("none.csv", ("build",)),
    "data publish": ("pd1/mini:1.0.0 --to place --data DATA", ()),
    "data pull": ("pd1/mini:1.0.0 --from place --data pulled", ()),
    "data prune": ("pd1/mini:1.0.0 --data pulled", ()),
    "data catalogue": ("place --out site", ("report",)),
    "prior list": ("", ()),
    "prior current": ("pd1-mini/h-ekl", ()),
    "prior history": ("own/none", ()),
    "prior rollback": ("own/none", ()),
    "prior info": ("pd1-mini/h-ekl", ()),
    "prior explain": ("pd1-mini/h-ekl --out prior.html", ("report",)),
    "prior pull": ("own/none --from none", ()),
    "prior train": ("own/mine --dataset pd1/mini:9.0.0 --data DATA", ("optuna",)),
    "flows run": ("refresh --service none.toml", ("flows", "build", "optuna", "report")),
    "flows backfill": ("--from 1.0.0 --to 1.0.0 --service none.toml", ("flows", "build", "optuna", "report")),
    "arena divisions": ("", ()),
    "arena data": ("none --data DATA", ()),
    "arena run": ("none --data DATA", ("report",)),
    "arena verify": ("none.zip --data DATA", ("report",)),
    "arena merge": ("none.zip --out merged.zip", ()),
    "arena page": ("none.zip", ("report",)),
    "flows status": ("--service none.toml", ("flows", "build", "optuna", "report")),
}


class Blocked:
    """A finder that hides modules, as if they were not installed."""

    def __init__(self, modules: set[str]) -> None:
        self.modules = modules

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Refuse a module that is hidden."""
        if name.partition(".")[0] in self.modules:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def run(command: str, data: str) -> dict[str, Any]:
    """Run a command in this process.

    Returns:
      Its name, exit code and lines of standard error, and the type of an error that it did not catch.
    """
    from hyperbo_flows.cli.main import app
    from typer.testing import CliRunner

    arguments = shlex.split(COMMANDS[command][0].replace("DATA", data))
    result = CliRunner().invoke(app, [*command.split(), *arguments])
    uncaught = result.exception if not isinstance(result.exception, SystemExit | None) else None
    return {
        "command": command,
        "code": result.exit_code,
        "lines": result.stderr.splitlines(),
        "uncaught": repr(uncaught) if uncaught else "",
    }


def main(data: str, only: str = "") -> None:
    """Run all commands, or one of them with its own extras only."""
    if only:
        from hyperbo.storage.installation import EXTRA_MODULES

        allowed = {module for extra in COMMANDS[only][1] for module in EXTRA_MODULES[extra]}
        hidden = {module for modules in EXTRA_MODULES.values() for module in modules} - allowed
        sys.meta_path.insert(0, Blocked(hidden))
    for command in [only] if only else COMMANDS:
        print(json.dumps(run(command, data)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
