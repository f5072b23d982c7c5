"""Routes that change what a study is called, what is written on it, and whether it exists."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool

from lynceus.library.delete_study import delete_study
from lynceus.library.rename_study import rename_study
from lynceus.server import commands, schemas
from lynceus.server.command_runner import Run
from lynceus.server.context import context_of, run_slow, visitor_of
from lynceus.server.errors import HttpError, unknown_study
from lynceus.server.examples import example
from lynceus.server.schemas import StudyName
from lynceus.storage.sql.storage import Storage, StudyBusyError, StudyExistsError

routes = APIRouter()

_Force = Annotated[bool, Query(description="also end open trials, and delete what an executor cannot be asked about")]


@routes.post("/studies/{name}/note", operation_id="write_note", response_model=schemas.Note, responses=example("note"))
async def write_note(run: Run, body: schemas.WriteNote) -> dict[str, Any]:
    """Replace the note on a study. The storage keeps earlier ones among the events of the study."""
    return await run(commands.write_note(body.text, body.replaces), body)


@routes.post(
    "/studies/{name}/rename", operation_id="rename", response_model=schemas.Renamed, responses=example("rename")
)
async def rename(request: Request, name: StudyName, body: schemas.Rename) -> dict[str, Any]:
    """Give a study another name. Refused while trials are open or a worker runs it."""
    storage, by = context_of(request).storage, visitor_of(request).author

    def change() -> dict[str, Any]:
        _check_known(storage, name)
        try:
            return {"name": rename_study(storage, name, body.name, by=by).name}
        except (StudyBusyError, StudyExistsError) as error:
            raise HttpError(409, str(error)) from error

    renamed = await run_in_threadpool(change)
    context_of(request).events.check_now()
    return renamed


@routes.delete("/studies/{name}", operation_id="delete", response_model=schemas.Deleted, responses=example("delete"))
async def delete(request: Request, name: StudyName, force: _Force = False) -> dict[str, Any]:
    """Delete a study for good: its trials, their files, and what is left of their jobs. Refused while trials are open, unless forced."""
    storage, by = context_of(request).storage, visitor_of(request).author

    def change() -> dict[str, Any]:
        _check_known(storage, name)
        try:
            deletion = delete_study(storage, name, force=force, by=by)
        except StudyBusyError as error:
            raise HttpError(409, str(error)) from error
        return {"name": deletion.study, "trials": deletion.trials, "left": deletion.left}

    deleted = await run_slow(request, change)
    context_of(request).events.check_now()
    return deleted


def _check_known(storage: Storage, name: str) -> None:
    """Refuse a name that no study has, damaged ones included."""
    if not any(cursor.study == name for cursor in storage.cursors()):
        raise unknown_study(name)
