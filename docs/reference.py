"""The generated pages of the documents: the API reference and the command reference, in Markdown.

    python docs/reference.py FOLDER

The API reference has a page for each room, made from its `__all__` and its docstrings; nothing is imported.
The command reference is what Typer writes of the command `hyperbo`. Both take a few seconds.
"""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import griffe

ROOT = Path(__file__).resolve().parent.parent
# The packages from the lowest up, and their folders.
FLOORS = {
    "hyperbo": ROOT / "hyperbo",
    "hyperbo_pipelines": ROOT / "pipelines" / "hyperbo_pipelines",
    "pd1_builder": ROOT / "pd1_builder",
    "hyperbo_flows": ROOT / "flows" / "hyperbo_flows",
}

# Code stays as it is; elsewhere in the text of a help, Markdown would take `<name>` for HTML.
_CODE_OR_MARKUP = re.compile(r"(`[^`\n]+`|^```(?:.*\n)+?```$)|<", re.M)


def load_floors() -> dict[str, griffe.Module]:
    """Read the sources of the four packages, by name."""
    # griffe warns about docstring sections of attributes that it cannot see, as those of decorated classes.
    logging.getLogger("griffe").setLevel(logging.ERROR)
    loader = griffe.GriffeLoader(
        search_paths=sorted({folder.parent for folder in FLOORS.values()}),
        allow_inspection=False,
        docstring_parser="google",
        docstring_options={"returns_multiple_items": False},
    )
    floors = {name: loader.load(name) for name in FLOORS}
    return {name: floor for name, floor in floors.items() if isinstance(floor, griffe.Module)}


def rooms(module: griffe.Module) -> Iterator[griffe.Module]:
    """The packages at or below a module that have an `__all__`."""
    if module.exports:
        yield module
    for _, below in sorted(module.modules.items()):
        if below.is_init_module:
            yield from rooms(below)


def public(room: griffe.Module, floors: dict[str, griffe.Module]) -> dict[str, griffe.Object | None]:
    """What a room exports, by name; None where its definition cannot be found."""
    return {
        name: resolve(room.imports.get(name, f"{room.path}.{name}"), floors)
        for name in map(str, room.exports or ())
    }


def resolve(path: str, floors: dict[str, griffe.Module]) -> griffe.Object | None:
    """The definition that a dotted path such as `hyperbo.gp.Posterior.mean` names; None where there is none.

    Names that a module imports are followed to their definition.
    """
    floor, *parts = path.split(".")
    found: griffe.Object | None = floors.get(floor)
    for position, part in enumerate(parts, start=1):
        if found is None:
            return None
        member, imported = found.members.get(part), found.imports.get(part)
        # A room may export a function with its module's name. Where the path goes on, it means the module.
        is_module = isinstance(member, griffe.Module) and position < len(parts)
        if imported is not None and not is_module:
            member = resolve(imported, floors)
        found = member if isinstance(member, griffe.Object) else None
    return found


def page(room: griffe.Module, floors: dict[str, griffe.Module]) -> str:
    """The page of a room: an entry for each name that it exports."""
    lines = [f"# {room.path}", "", room.docstring.value if room.docstring else "", ""]
    for name, found in public(room, floors).items():
        lines += [f"## {name}", ""]
        if found is not None:
            lines += entry(found)
    return "\n".join(lines).rstrip() + "\n"


def entry(found: griffe.Object) -> list[str]:
    """Signature and docstring of one name; of a class, those of its public methods too."""
    lines = ["```python", _signature(found), "```", "", f"Defined in `{found.path}`.", "", *_text(found)]
    if isinstance(found, griffe.Class):
        for name, method in found.functions.items():
            if not name.startswith("_") and method.docstring:
                lines += [
                    f"### {found.name}.{name}",
                    "",
                    "```python",
                    _signature(method),
                    "```",
                    "",
                    *_text(method),
                ]
    return lines


def _signature(found: griffe.Object) -> str:
    if isinstance(found, griffe.Attribute):
        return (
            f"{found.name} = {found.value}"
            if found.value is not None
            else f"{found.name}: {found.annotation}"
        )
    function = found.functions.get("__init__") if isinstance(found, griffe.Class) else found
    if not isinstance(function, griffe.Function):
        return f"class {found.name}"
    written = str(function.signature()).replace("__init__", found.name, 1)
    return f"class {written}".removesuffix(" -> None") if found is not function else written


def _text(found: griffe.Object) -> list[str]:
    lines: list[str] = []
    for section in found.docstring.parsed if found.docstring else ():
        if isinstance(section.value, str):
            for paragraph in section.value.split("\n\n"):
                is_example = paragraph.startswith(">>>")
                lines += ["```python", paragraph, "```", ""] if is_example else [paragraph, ""]
        else:
            lines += [f"**{section.title or section.kind.value.capitalize()}**", ""]
            lines += [_item(item) for item in section.value] + [""]
    return lines


def _item(item: griffe.DocstringElement) -> str:
    # Of an error, the annotation is its name.
    name = getattr(item, "name", "") or str(item.annotation or "")
    text = " ".join(item.description.split())
    return f"- `{name}`: {text}" if name else f"- {text}"


def write_api(folder: Path) -> list[Path]:
    """Write the page of each room, and `index.md` that lists them."""
    folder.mkdir(parents=True, exist_ok=True)
    floors = load_floors()
    written = []
    index = ["# Python API", "", "What the rooms export, made of their docstrings.", ""]
    for floor in floors.values():
        for room in rooms(floor):
            path = folder / f"{room.path}.md"
            path.write_text(page(room, floors), encoding="utf-8")
            written.append(path)
            summary = room.docstring.value.splitlines()[0] if room.docstring else ""
            index.append(f"- [{room.path}]({path.name}): {summary}")
    (folder / "index.md").write_text("\n".join(index) + "\n", encoding="utf-8")
    return written


def write_commands(folder: Path) -> Path:
    """Write `commands.md`: usage, arguments and options of every command."""
    typer = [sys.executable, "-m", "typer", "hyperbo_flows.cli.main", "utils", "docs", "--name", "hyperbo"]
    done = subprocess.run(typer, capture_output=True, text=True, check=True, cwd=ROOT)
    path = folder / "commands.md"
    text = _CODE_OR_MARKUP.sub(lambda found: found[1] or r"\<", done.stdout)
    path.write_text(text, encoding="utf-8")
    return path


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python docs/reference.py FOLDER")
    target = Path(sys.argv[1])
    print(f"{len(write_api(target / 'api')) + 1} pages in {target}, and {write_commands(target)}")
