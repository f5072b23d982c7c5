"""Sphinx settings of the documentation site; `build.py` stages the sources beside this file's copy."""

from pathlib import Path

from lynceus.version import __version__

project = "Lynceus"
author = "The Lynceus authors"
copyright = "The Lynceus authors, Apache-2.0"
version = release = __version__

extensions = ["myst_nb", "sphinx_copybutton"]  # myst_nb reads plain pages, too
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}
nb_execution_mode = "off"  # notebooks have their outputs, and a test that these are right
exclude_patterns = ["site"]
myst_heading_anchors = 4
myst_enable_extensions = ["deflist", "colon_fence"]
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
highlight_language = "text"
suppress_warnings = ["myst.header"]  # pages of results begin sections at several depths

html_theme = "furo"
html_title = f"Lynceus {version}"
html_static_path = ["static"]
html_favicon = "static/icon.svg"
html_css_files = ["site.css"]
html_js_files = ["versions.js"]
html_search_scorer = str(Path(__file__).parent / "static" / "scorer.js")
templates_path = ["templates"]
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b6e4f", "color-brand-content": "#0b6e4f"},
    "dark_css_variables": {"color-brand-primary": "#4cc9a0", "color-brand-content": "#4cc9a0"},
    "navigation_with_keys": True,
}
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "versions.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
