"""Build the documentation site: python docs/site/build.py [FOLDER]. Everything that Sphinx warns of, broken links included, is an error.

Pages that people read in the repository are copied, and reference pages are written from the code. Links to files outside docs/ become
pages of the site (changelog, examples …) or plain names of files.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

HERE = Path(__file__).parent
DOCS, ROOT = HERE.parent, HERE.parents[1]
sys.path.insert(0, str(HERE))

from lynceus.version import __version__  # noqa: E402
from reference import write  # noqa: E402

OUTSIDE = {
    "README.md": "project/readme.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security-policy.md",
    "examples/README.md": "project/examples.md",
    "src/lynceus_lab/experiments/README.md": "project/experiments.md",
    "tests/attack/README.md": "project/attack.md",
}
"""Pages of the repository that are pages of the site, too."""
_LINK = re.compile(r"(?<!\!)\[([^\]]*)\]\(([^)\s]+)\)")


def stage(source: Path) -> None:
    """All pages of the site, with links that lead to pages of the site."""
    shutil.copytree(DOCS, source, ignore=shutil.ignore_patterns("__pycache__", "*.py", "site", ".lynceus"))
    shutil.copytree(HERE / "static", source / "static")
    shutil.copytree(HERE / "templates", source / "templates")
    shutil.copy(ROOT / "src" / "lynceus" / "server" / "static" / "icon.svg", source / "static")
    shutil.copy(HERE / "conf.py", source)
    write(source)
    for page in sorted(source.glob("*.md")):
        page.write_text(
            relinked(page.read_text(encoding="utf-8"), Path("docs") / page.name, Path(page.name)), encoding="utf-8"
        )
    for outside, inside in OUTSIDE.items():
        (source / inside).parent.mkdir(exist_ok=True)
        text = (ROOT / outside).read_text(encoding="utf-8").replace("](docs/images/", "](../images/")
        (source / inside).write_text(relinked(text, Path(outside), Path(inside)), encoding="utf-8")


def relinked(text: str, place: Path, inside: Path) -> str:
    """The text of a page at `place` in the repository, for `inside` on the site."""

    def replace(found: re.Match[str]) -> str:
        shown, link = found[1], found[2]
        if re.match(r"[a-z]+:", link):
            return found[0]
        path, sign, anchor = link.partition("#")
        target = (ROOT / place).parent.joinpath(path).resolve() if path else ROOT / place
        if not target.exists():
            raise SystemExit(f"{place}: the link {link} leads nowhere.")
        name = target.relative_to(ROOT).as_posix()
        page = OUTSIDE.get(name) or (
            name.removeprefix("docs/") if name.startswith("docs/") and target.is_file() else None
        )
        if page is None:
            return shown if "`" in shown else f"{shown} (`{name}`)"
        if page.endswith(".py"):
            return shown if "`" in shown else f"{shown} (`{name}`)"
        if shown == path:
            shown = first_heading(target).partition(":")[0]  # here people read titles, not names of files
        up = "../" * (len(inside.parts) - 1)
        if anchor and f'<a id="{anchor}">' in target.read_text(encoding="utf-8"):  # Sphinx knows headings only
            return f'<a href="{up}{Path(page).with_suffix(".html")}#{anchor}">{shown}</a>'
        return f"[{shown}]({up}{page}{sign}{anchor})"

    return _LINK.sub(replace, text)


def build(folder: Path) -> Path:
    """Build this version beside those that are there; returns its first page."""
    work = folder / ".source"
    shutil.rmtree(work, ignore_errors=True)
    shutil.rmtree(folder / __version__, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    stage(work)
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "-d", str(folder / ".cache")]
    subprocess.run([*command, str(work), str(folder / __version__)], check=True)
    shutil.rmtree(folder / "jupyter_execute", ignore_errors=True)  # copies of the pictures of notebooks
    if lost := broken(folder / __version__):
        raise SystemExit("These links lead nowhere:\n" + "\n".join(lost))
    versions = sorted((path.name for path in folder.iterdir() if (path / "index.html").is_file()), reverse=True)
    (folder / "versions.json").write_text(json.dumps(versions), encoding="utf-8")
    start = f"{__version__}/index.html"
    (folder / "index.html").write_text(
        f'<!DOCTYPE html><meta charset="utf-8"><title>Lynceus</title><meta http-equiv="refresh" content="0; url={start}">\n',
        encoding="utf-8",
    )
    pages = "\n".join(
        f"- [{first_heading(page)}]({page.relative_to(work).with_suffix('.html')})"
        for page in sorted(work.rglob("*.md"))
    )
    (folder / __version__ / "llms.txt").write_text(f"# Lynceus {__version__}\n\n{pages}\n", encoding="utf-8")
    return folder / __version__ / "index.html"


def broken(site: Path) -> list[str]:
    """What the finished pages link to and show that is not there: files, and places in pages."""
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    places = {path: set(re.findall(r'\bid="([^"]+)"', text)) for path, text in pages.items()}
    found = []
    for path, text in pages.items():
        for link in dict.fromkeys(re.findall(r'\b(?:href|src)="([^"]*)"', text)):
            if re.match(r"[a-z]+:|//", link):
                continue
            name, _, place = html.unescape(link).partition("#")
            target = (path.parent / unquote(name.partition("?")[0])).resolve() if name else path
            if not target.exists() or (place and target in places and unquote(place) not in places[target]):
                found.append(f"{path.relative_to(site)}: {link}")
    return found


def first_heading(page: Path) -> str:
    """The title of a page."""
    found = re.search(r"^# (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else page.stem


if __name__ == "__main__":
    first = build(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "site")
    sys.stdout.write(f"{first}\n")
