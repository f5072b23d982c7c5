"""Execute the notebooks of this folder and save their outputs: python docs/notebooks/execute.py [NAME …]."""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

HERE = Path(__file__).parent
LONGEST_S = 120
"""Seconds of one cell."""


def executed(path: Path) -> NotebookNode:
    """A notebook with the outputs that it has now, without what differs from run to run."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=LONGEST_S, kernel_name="python3").execute()
    for cell in notebook.cells:
        cell.metadata = NotebookNode()
        if (
            cell.cell_type == "code"
        ):  # stderr has warnings about the machine of the kernel only; a cell that fails raises
            cell.outputs = [one for one in cell.outputs if one.get("name") != "stderr"]
        for output in cell.get("outputs", ()):
            output.pop("metadata", None)
            if output.output_type in ("display_data", "execute_result"):
                output.metadata = NotebookNode()
    notebook.metadata.language_info = NotebookNode(name="python")
    return notebook


def main(names: list[str]) -> None:
    """Save the named notebooks, or all, with their outputs."""
    for path in sorted(HERE.glob("*.ipynb")):
        if not names or path.stem in names:
            nbformat.write(executed(path), path)
            sys.stdout.write(f"{path.name}: {path.stat().st_size / 1000:.0f} kB\n")


if __name__ == "__main__":
    main(sys.argv[1:])
