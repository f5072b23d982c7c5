"""Routes of the HTML pages and their static files. The pages fetch their data from the API."""

from __future__ import annotations

import functools
from pathlib import Path
from string import Template

from fastapi import APIRouter, Response
from fastapi.responses import HTMLResponse
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from lynceus.reports.bundle import module_paths

STATIC = Path(__file__).parents[1] / "static"
TITLES = {
    "studies": "Studies",
    "study": "Study",
    "trial": "Trial",
    "compare": "Compare",
    "jobs": "Jobs",
    "job": "Job",
    "login": "Sign in",
    "not_found": "Not found",
}
"""The title of each page until its script sets another one; `static/pages` has the scripts."""

routes = APIRouter(include_in_schema=False)


@functools.cache
def page_html(name: str) -> str:
    """A page that loads its script, and preloads every module that the script imports."""
    entry = f"pages/{name}.js"
    modules = module_paths(entry, lambda path: (STATIC / path).read_text(encoding="utf-8"))
    preload = [f'<link rel="modulepreload" href="/static/{path}">' for path in sorted(set(modules) - {entry})]
    template = Template((STATIC.parent / "page.html").read_text(encoding="utf-8"))
    return template.substitute(title=TITLES[name], preload="\n".join(preload), entry=entry)


def _page(name: str, status: int = 200) -> HTMLResponse:
    return HTMLResponse(page_html(name), status, headers={"Cache-Control": "no-cache"})


@routes.get("/")
def index() -> HTMLResponse:
    """All studies."""
    return _page("studies")


@routes.get("/studies/{name}")
def study_page(name: str) -> HTMLResponse:
    """One study."""
    return _page("study")


@routes.get("/studies/{name}/trials/{number}")
def trial_page(name: str, number: str) -> HTMLResponse:
    """One trial."""
    return _page("trial")


@routes.get("/jobs")
def jobs_page() -> HTMLResponse:
    """All recurring jobs."""
    return _page("jobs")


@routes.get("/jobs/{name}")
def job_page(name: str) -> HTMLResponse:
    """One recurring job."""
    return _page("job")


@routes.get("/compare")
def compare_page() -> HTMLResponse:
    """Two studies."""
    return _page("compare")


@routes.get("/login")
def login_page() -> HTMLResponse:
    """Sign in."""
    return _page("login")


def not_found_page() -> HTMLResponse:
    """Unknown addresses."""
    return _page("not_found", 404)


class StaticAssets(StaticFiles):
    """Scripts, styles and images of the pages; browsers check each time whether they are up to date."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """A file, or 404."""
        response = await super().get_response(path, scope)
        response.headers["cache-control"] = "no-cache"
        return response
