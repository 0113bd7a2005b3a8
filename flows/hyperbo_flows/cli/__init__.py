"""The command `hyperbo`: Typer, one file for each noun. Nothing is computed here."""

__all__: list[str] = []
