"""`lynceus run`: search for the best configuration of a job."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from lynceus.cli import exit_codes
from lynceus.cli.arguments import (
    LARGEST_SEED,
    JobFileArgument,
    MetricsOption,
    ParallelOption,
    PolicyOption,
    StorageOption,
    check_file_given,
    print_note,
)
from lynceus.cli.output import Output, OutputOption, console, counted
from lynceus.errors import InputError

if TYPE_CHECKING:
    from lynceus.jobfile.prepared_study import PreparedStudy
    from lynceus.library.open_study import OpenStudy


def run(
    file: JobFileArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before money is spent.")] = False,
    policy: PolicyOption = None,
    parallel: ParallelOption = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=LARGEST_SEED, help="Another random seed than the job file has.")
    ] = None,
    detach: Annotated[
        bool, typer.Option("--detach", help="Search in the background; see 'lynceus status' and 'lynceus stop'.")
    ] = False,
    metrics: MetricsOption = None,
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Run the job in different configurations until the best one is found. Shows the plan and asks before it spends money.

    Exit codes: 0 found, 2 bad input, 3 nothing meets the constraints, 4 infrastructure, 5 no money left in the budget
    of the project or the owner, 130 interrupted.
    """
    from lynceus.cli.plan import plan_text
    from lynceus.jobfile.checks import check_startable
    from lynceus.jobfile.prepared_study import prepare_file
    from lynceus.library.history import notes_of
    from lynceus.library.job_budgets import job_budgets
    from lynceus.library.open_study import refuse_edits

    check_file_given(file, "run", storage)
    prepared = prepare_file(file, policy)
    check_startable(prepared.job)
    refuse_edits(prepared.job, storage)  # before a plan that nobody can follow
    width = parallel or prepared.parallel
    if output is Output.TABLE:
        shared, notes = job_budgets(prepared.job, storage), notes_of(prepared, storage)
        console().print(plan_text(prepared, width, shared, notes))
    if not yes:
        _confirm(output)
    _search(prepared, storage, policy, seed, width, output, metrics, detach=detach)


def _search(
    prepared: PreparedStudy,
    storage: str | None,
    policy: str | None,
    seed: int | None,
    width: int,
    output: Output,
    metrics: str | None,
    *,
    detach: bool,
) -> None:
    """Open the study and search. A new study that ends before its first trial leaves nothing behind, unless it waits for money."""
    from lynceus.cli.background import start_worker
    from lynceus.cli.worker import work
    from lynceus.library.find import storage_url
    from lynceus.library.open_study import create_or_open
    from lynceus.library.unstarted import discard_unstarted, known_studies, remove_empty_storage

    url = storage_url(storage, prepared.job)
    before = known_studies(url)
    one = None
    try:
        one = create_or_open(prepared, storage, seed=seed)
        print_note(one.note)
        if one.study.observations or one.study.pending:
            _continue(one, policy, seed)
        if detach:
            start_worker(one, url, width, metrics)
        else:
            work(one, width, output, metrics)
    except BaseException as ended:
        if isinstance(ended, typer.Exit) and ended.exit_code == exit_codes.SHARED_BUDGET:
            raise
        new = one is not None and one.record.identity not in (before or ())
        if one is not None and new and discard_unstarted(one):
            print_note(f"{one.name}: no trial was started, so nothing was kept.")
        if before is None:
            if one is not None:
                one.storage.close()
            remove_empty_storage(url)
        raise


def _confirm(output: Output) -> None:
    if not sys.stdin.isatty() or output is Output.JSON:
        raise InputError(
            "run: this would spend money, and there is no terminal to ask for confirmation; add -y to go ahead."
        )
    if not typer.confirm("Go ahead?", default=False):
        raise typer.Exit(0)


def _continue(one: OpenStudy, policy: str | None, seed: int | None) -> None:
    """Say that a study continues; refuse another policy or seed."""
    from lynceus.library.price_updates import price_note
    from lynceus.problem.units import format_money

    study = one.study
    if (policy is not None and policy != study.policy.name) or (seed is not None and seed != study.seed):
        raise InputError(
            f"study {one.name!r} began with policy {study.policy.name} and seed {study.seed}, and keeps them for its whole life; "
            "leave --policy and --seed out, or give the job another name."
        )
    print_note(price_note(one))
    done = f"{counted(len(study.observations), 'trial')}, {format_money(study.spent_usd)} spent"
    print_note(f"{one.name}: continuing with {done}.")
