"""The version of the code behind a result: the package's version and a hash over the sources."""

from __future__ import annotations

import hashlib
from importlib.util import find_spec
from pathlib import Path

from hyperbo import __version__
from hyperbo.errors import NotAvailableError

_CODE_SUFFIXES = frozenset((".py", ".html", ".css", ".toml"))


def code_version(*packages: str) -> str:
    """Identify the code of some packages, without importing them.

    The hash is over the names and contents of their code: Python files, and the templates, style sheets and
    presets beside them. It depends on neither the place of
    installation nor file times nor line endings, and so is equal for a checkout and a wheel built from it.

    Args:
      packages: names of top-level packages; their order does not matter. None: `hyperbo` alone.

    Returns:
      `<version>+<12 hexadecimal digits>`.

    Raises:
      NotAvailableError: a package is not installed.

    >>> version, digest = code_version("hyperbo").split("+")
    >>> len(digest)
    12
    """
    digest = hashlib.sha256()
    for package in sorted(set(packages or ("hyperbo",))):
        for name, source in _sources(package):
            content = source.read_bytes().replace(b"\r\n", b"\n")
            digest.update(f"{name}\0{len(content)}\0".encode())
            digest.update(content)
    return f"{__version__}+{digest.hexdigest()[:12]}"


def _sources(package: str) -> list[tuple[str, Path]]:
    # A top-level name is found without running its code; a dotted one would import its parents.
    spec = find_spec(package) if "." not in package else None
    if spec is None or not spec.submodule_search_locations:
        raise NotAvailableError(f"no package {package!r} is installed whose code could be identified")
    root = Path(next(iter(spec.submodule_search_locations)))
    return sorted(
        (f"{package}/{path.relative_to(root).as_posix()}", path)
        for path in root.rglob("*")
        if path.suffix in _CODE_SUFFIXES
    )
