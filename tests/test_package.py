"""The public face of the package: every promised name is there, documented, and costs nothing until it is used."""

import re
from pathlib import Path

import pytest

import lynceus
from readers import ROOT


@pytest.mark.parametrize("name", lynceus.__all__)
def test_every_promised_name_is_there_and_documented(name: str) -> None:
    assert getattr(lynceus, name).__doc__
    assert name in dir(lynceus)


def test_homes_and_promises_agree() -> None:
    assert sorted(name for names in lynceus._HOMES.values() for name in names) == sorted(lynceus.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'optimise'"):
        lynceus.optimise  # noqa: B018


def test_a_missing_extra_is_named_by_the_distribution_that_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "acme_lynceus-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-lynceus\nVersion: 1.0\n")
    (info / "top_level.txt").write_text("lynceus\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert str(lynceus.MissingExtraError("Plots", "plot")) == (
        "Plots need an optional package: pip install 'acme-lynceus[plot]'"
    )


def test_the_version_has_release_notes() -> None:
    """The newest section of the changelog is that of this version, with its date, or what is not released yet."""
    newest = re.search(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest
    assert newest[1] == "Unreleased" or re.fullmatch(rf"{re.escape(lynceus.__version__)} - 20\d\d-\d\d-\d\d", newest[1])
