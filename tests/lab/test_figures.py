"""Figures: a policy has the same colour in every panel."""

import pytest

from lynceus_lab.figures import _picture, _places, _strong, draw

pyplot = pytest.importorskip("matplotlib.pyplot")


def line(label, y=1.0):
    return {"label": label, "x": [1.0, 2.0], "y": [y, y], "low": [y, y], "high": [y, y]}


def panel(*labels):
    return {"title": "job", "x": "", "y": "", "lines": [line(label) for label in labels]}


def drawn(kind, policies, *panels):
    figure = {"kind": kind, "title": "Mine", "log": False}
    picture = _picture(figure, list(panels), _places({"policies": policies}, list(panels)), frozenset())
    pyplot.close(picture)
    return picture


def colours(axis):
    return {one.get_label(): (one.get_color(), one.get_linestyle()) for one in axis.get_lines()}


def test_a_policy_has_one_colour_in_all_panels_and_the_legend_has_all_policies():
    picture = drawn("cdf", ["a", "b", "c"], panel("a", "c"), panel("b", "c"))
    first, second = (colours(axis) for axis in picture.axes)
    assert first["c"] == second["c"] == ("C2", "-")
    assert second["b"] == ("C1", "-")
    (legend,) = picture.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b", "c"]


@pytest.mark.parametrize("kind", ["cdf", "by-variant"])
def test_more_than_ten_lines_look_different(kind):
    labels = [f"policy {number}" for number in range(25)]
    (axis,) = drawn(kind, labels, panel(*labels)).axes
    lines = axis.get_lines() if kind == "cdf" else [container[0] for container in axis.containers]
    assert len({(one.get_color(), one.get_linestyle(), one.get_marker()) for one in lines}) == 25


def test_jobs_have_colours_where_they_are_the_lines():
    (axis,) = drawn("table-cno", ["a", "b"], panel("job 1", "job 2")).axes
    assert colours(axis) == {"job 1": ("C0", "-"), "job 2": ("C1", "-")}


@pytest.mark.parametrize(("value", "never"), [("inf", True), ("nan", False), (2.0, False)])
def test_an_infinite_value_is_labelled_never(tmp_path, value, never):
    ends = {"x": ["lost"], "low": ["nan"], "high": ["nan"]}
    lines = [{**ends, "label": "lost", "y": [value]}, {**ends, "label": "found", "y": [2.0]}]
    curves = [
        {"kind": "bars", "title": "Money", "log": True, "panels": [{"title": "job", "x": "", "y": "", "lines": lines}]}
    ]
    summary = {"name": "mine", "policies": ["lost", "found"], "baseline": None, "also": [], "curves": curves}
    (picture,) = draw(summary, tmp_path, ("svg",))
    text = picture.read_text(encoding="utf-8")
    assert ("<!-- never -->" in text) == never
    assert text.index("<!-- lost -->") < text.index("<!-- found -->")


def test_baselines_have_thick_lines():
    lines = [{"label": label, "x": [1.0, 2.0], "y": [0.5, 1.0]} for label in ("base", "default", "other")]
    figure = {"kind": "cdf", "title": "", "log": False}
    panels = [{"title": "", "x": "", "y": "", "lines": lines}]
    summary = {"policies": ["base", "default", "other"], "baseline": "base", "also": ["default"]}
    picture = _picture(figure, panels, _places(summary, panels), _strong(summary))
    widths = [line.get_linewidth() for line in picture.axes[0].lines]
    assert widths[0] == widths[1] > widths[2]
