"""Make the pictures of the terminal from real commands in a fresh folder: python docs/terminal.py."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

HERE = Path(__file__).parent
WIDTH = 110
PICTURES = {
    "terminal-check": ["lynceus check job.yaml", "lynceus check mistake.yaml", "lynceus plan job.yaml"],
    "terminal-best": ["lynceus best pipeline", "lynceus whatif pipeline --deadline 1s,10s,30s"],
    "terminal-help": ["lynceus --help"],
}
"""The commands of each picture, in the order in which they are typed."""
_FETCHED = re.compile(r"@font-face \{.*?\}\s*|<!--.*?-->\s*", re.DOTALL)


def job_of_the_guide() -> str:
    """The job file of docs/guide.md."""
    found = re.search(r"```yaml\n(# job\.yaml\n.*?)```", (HERE / "guide.md").read_text(encoding="utf-8"), re.DOTALL)
    assert found
    return found[1]


def typed(command: str, folder: Path, environment: dict[str, str]) -> Text:
    """A command and what it prints, in the colours of a terminal."""
    done = subprocess.run(
        command, shell=True, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    assert done.returncode in (0, 2), done.stdout.decode()
    return Text.assemble(("$ ", "green"), (command, "bold"), "\n", Text.from_ansi(done.stdout.decode()), "\n")


def picture(name: str, folder: Path, environment: dict[str, str]) -> Path:
    """Save the picture of some commands."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True)
        for command in PICTURES[name]:
            console.print(typed(command, folder, environment), soft_wrap=False)
    file = HERE / "images" / f"{name}.svg"
    svg = console.export_svg(title="lynceus", unique_id=name)
    # Fonts of another host would be fetched by every reader; those of the machine do.
    svg = _FETCHED.sub("", svg).replace("Fira Code", "DejaVu Sans Mono")
    file.write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n", encoding="utf-8")
    return file


def main() -> None:
    """Write all pictures."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("LYNCEUS")},
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": str(WIDTH),
        "FORCE_COLOR": "1",
        "TERM": "xterm-256color",
    }
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        job = job_of_the_guide()
        (folder / "job.yaml").write_text(job, encoding="utf-8")
        (folder / "mistake.yaml").write_text(job.replace("{int:", "{stepp: 2, int:"), encoding="utf-8")
        for command in ("seq 500000 | shuf > data.txt", "lynceus run job.yaml --yes"):
            subprocess.run(command, shell=True, cwd=folder, env=environment, check=True, capture_output=True)
        for name in PICTURES:
            file = picture(name, folder, environment)
            sys.stdout.write(f"{file.relative_to(HERE.parent)}: {file.stat().st_size / 1000:.0f} kB\n")


if __name__ == "__main__":
    main()
