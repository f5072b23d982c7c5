"""`lynceus lab`: run declared experiments and compare them with what was published."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lynceus.errors import InfrastructureError, InputError
from lynceus_lab.lives_cli import lives
from lynceus_lab.progress import progress

if TYPE_CHECKING:
    from lynceus.replay.run import Until
    from lynceus_lab.cell import Cell
    from lynceus_lab.engines import Crashed
    from lynceus_lab.experiment import Experiment
    from lynceus_lab.trace_store import Store

STORE = Path(".lynceus/lab")
"""The default folder of traces."""
_FEW_SEEDS = 2
"""Seeds of `--quick` for an experiment that is not part of the quick set."""

lab = typer.Typer(
    name="lab",
    help="Reproduce published experiments on measured tables.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
lab.add_typer(lives)

Names = Annotated[list[str] | None, typer.Argument(help="Shipped experiments (see 'lynceus lab list') or YAML files.")]
Variants = Annotated[
    list[str] | None,
    typer.Option(
        "--variant",
        help="Only this variant, by its whole name or the first one, such as a budget; may be repeated.",
    ),
]
StoreFolder = Annotated[Path, typer.Option("--store", help="The folder of traces.")]


@lab.command("list")
def listing() -> None:
    """List the experiments."""
    from rich.table import Table

    from lynceus.cli.output import console
    from lynceus_lab.experiment import load_experiment, shipped_experiments

    table = Table("experiment", "source", "what it shows", "cells", "quick seeds")
    for name in shipped_experiments():
        experiment = load_experiment(name)
        spec = experiment.spec
        table.add_row(name, spec.source, spec.title, f"{len(experiment.cells()):,}", str(spec.quick or "–"))
    console().print(table)


@lab.command("run")
def run(
    names: Names = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help=f"Run the quick set; for named experiments, the seeds of the quick set, or {_FEW_SEEDS} if they are not part of it.",
        ),
    ] = False,
    everything: Annotated[bool, typer.Option("--all", help="All shipped experiments.")] = False,
    seeds: Annotated[int | None, typer.Option(help="Number of seeds instead of the experiment's own.")] = None,
    policy: Annotated[
        list[str] | None, typer.Option("--policy", "-p", help="Only this policy, by its label; may be repeated.")
    ] = None,
    variant: Variants = None,
    engine: Annotated[str, typer.Option(help="local, ray, or ray://HOST:PORT.")] = "local",
    workers: Annotated[int, typer.Option(help="Processes of the local engine.")] = 1,
    store: StoreFolder = STORE,
) -> None:
    """Run the missing cells of experiments; after an interruption, the next call continues."""
    from lynceus_lab.campaign import run_cells
    from lynceus_lab.engines import engine_named
    from lynceus_lab.trace_store import Store

    chosen = chosen_experiments(names, quick=quick, everything=everything)
    if seeds is not None and seeds < 1:
        raise InputError(f"--seeds: got {seeds}; give at least 1.")
    _check_labels(policy or [], chosen)
    cells = [
        cell
        for each in chosen
        for cell in each.cells(
            seeds or (min(each.spec.quick or _FEW_SEEDS, each.spec.seeds) if quick else None),
            policy or (),
            variant or (),
        )
    ]
    if not cells:
        raise InputError(f"--variant: no experiment has the variant {' or '.join(variant or [])}; its file lists them.")
    kept, how = Store(store), engine_named(engine, workers)
    missing = len(kept.missing(cells))
    with progress(missing) as report:
        ran = run_cells(cells, how, kept, report)
    typer.echo(
        f"{ran.asked:,} cells: {ran.found:,} were there already, {ran.made:,} were run now, {len(ran.crashed)} crashed."
    )
    _raise_crash(ran.crashed)


def _raise_crash(crashed: Sequence[Crashed]) -> None:
    """Report cells that crashed, after all others have run."""
    if crashed:
        first = crashed[0]
        raise InfrastructureError(
            f"lab: {len(crashed)} cells crashed, the first on {first.cell.setting.job} with seed {first.cell.seed}: "
            f"{first.reason}; all others are stored, run the command again to retry."
        )


def chosen_experiments(names: list[str] | None, *, quick: bool | None, everything: bool) -> list[Experiment]:
    """The experiments that a command line names; `quick` is None for commands without that option."""
    from lynceus_lab.experiment import load_experiment, shipped_experiments

    _check_data_folder()
    if names:
        return [load_experiment(name) for name in names]
    if not (quick or everything):
        options = "--all" if quick is None else "--quick or --all"
        raise InputError(f"lab: no experiment was named; 'lynceus lab list' shows them, or give {options}.")
    every = [load_experiment(name) for name in shipped_experiments()]
    return every if everything else [each for each in every if each.spec.quick]


def _check_data_folder() -> None:
    """Report a wrong folder of tables at once, not table by table during a long campaign."""
    named = os.environ.get("LYNCEUS_DATA")
    if named and not Path(named).is_dir():
        raise InputError(f"LYNCEUS_DATA: {Path(named).absolute()} is not a folder; set it to the folder of the tables.")


def _check_labels(labels: list[str], experiments: list[Experiment]) -> None:
    from lynceus.errors import hint

    known = list(dict.fromkeys(label for each in experiments for label in each.policies))
    for label in labels:
        if label not in known:
            raise InputError(f"--policy: none of the experiments has a policy {label!r}{hint(label, known)}")


@lab.command("verify")
def verify(
    names: Names = None,
    everything: Annotated[bool, typer.Option("--all", help="All shipped experiments.")] = False,
    per: Annotated[
        int,
        typer.Option(help="Cells of every setting to run again: the longest one, and others down to the shortest."),
    ] = 2,
    store: StoreFolder = STORE,
) -> None:
    """Run again some cells whose traces are from other code; if they are equal, adopt the other traces of their setting."""
    from lynceus_lab.trace_store import Store
    from lynceus_lab.verify import Verified
    from lynceus_lab.verify import verify as verified

    if per < 1:
        raise InputError(f"--per: got {per}; give at least 1.")

    def report(one: Verified) -> None:
        if one.differing:
            name = one.setting.written()["policy"]
            label = name if isinstance(name, str) else name.get("name", "policy")
            typer.echo(f"{one.setting.job}, {label}, seed {one.differing[0]}: today's code decides differently.")

    found = verified(chosen_experiments(names, quick=None, everything=everything), Store(store), per, report)
    same = [one for one in found if not one.differing]
    typer.echo(
        f"{len(found)} settings had only traces of other code: {len(same)} still give equal traces "
        f"({sum(one.adopted for one in same):,} further traces adopted), {len(found) - len(same)} do not."
    )


@lab.command("report")
def report(
    names: Names = None,
    quick: Annotated[bool, typer.Option("--quick", help="Only the experiments of the quick set.")] = False,
    store: StoreFolder = STORE,
    summaries: Annotated[Path, typer.Option(help="The folder of summaries (JSON and CSV).")] = Path("results"),
    out: Annotated[Path, typer.Option(help="The folder of pages and figures.")] = Path(".lynceus/results"),
    page: Annotated[Path | None, typer.Option(help="The page of all claims; by default results.md in --out.")] = None,
    svg: Annotated[bool, typer.Option("--svg/--no-svg", help="Also save figures as SVG.")] = True,
) -> None:
    """Summarise the traces, and write all claims with our numbers, tables and figures.

    Experiments without traces keep their stored summaries.
    """
    from lynceus_lab.changes_page import read_edition
    from lynceus_lab.experiment import shipped_experiments
    from lynceus_lab.report import read_summaries, write_pages, write_summaries
    from lynceus_lab.trace_store import Store

    experiments = chosen_experiments(names, quick=quick, everything=not quick)
    written = write_summaries(experiments, Store(store), summaries)
    overview = page or out / "results.md"
    found = read_summaries(summaries, list(shipped_experiments()))
    write_pages(found, out, overview, ("png", "svg") if svg else ("png",), edition=read_edition(summaries))
    typer.echo(
        f"{len(written)} summaries written to {summaries}, {len(found)} pages to {out}; all claims are in {overview}."
    )


@lab.command("calibrate")
def calibrate(
    problems: Annotated[
        list[str] | None, typer.Argument(help="Replay jobs, made/steps or made/valley; by default a few of each.")
    ] = None,
    policy: Annotated[str, typer.Option("--policy", "-p", help="A policy by name.")] = "lynceus",
    seeds: Annotated[int, typer.Option(min=1, help="Studies per problem, noise and limit.")] = 20,
    noise: Annotated[str, typer.Option(help="Standard deviations of ln time.")] = "0,0.05,0.1,0.25",
    outliers: Annotated[str, typer.Option(help="Shares of runs that take three times as long.")] = "0,0.05",
    confidence: Annotated[str, typer.Option(help="Confidences of the limit; 0 for a plain one.")] = "0,0.95",
    against: Annotated[
        Path | None,
        typer.Option(help="Claims of another version (its --out): its money is 1, its values stand in parentheses."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the claims of all studies to this file.")] = None,
) -> None:
    """Compare what studies of noisy jobs claim with the truth: cost, chance to keep the limit, intervals, money, regret."""
    from lynceus.policy.presets import preset
    from lynceus_lab.noisy_claims import PROBLEMS, cases, run_case
    from lynceus_lab.noisy_claims_table import lines, markdown, paired, read, write

    chosen, named = preset(policy), tuple(problems or PROBLEMS)
    reference = [] if against is None else read(against)
    kinds = cases(
        named, _numbers("--noise", noise), _numbers("--outliers", outliers), _numbers("--confidence", confidence)
    )
    claims = []
    for seed in range(seeds):
        claims += [run_case(case, chosen, seed) for case in kinds]
        typer.echo(f"{seed + 1} of {seeds} seeds", err=True)
        if out is not None:
            write(claims, out)
    before = paired(reference, claims)
    typer.echo(markdown(lines(claims, before), lines(before)), nl=False)


@lab.command("families")
def families(
    only: Annotated[str, typer.Option("--families", help="Families, separated by commas; by default all.")] = "",
    policies: Annotated[str, typer.Option(help="Labels of policies, separated by commas; by default all.")] = "",
    seeds: Annotated[int, typer.Option(min=1, help="Seeds per case; the same for all policies.")] = 20,
    until: Annotated[
        str, typer.Option(help="1.1: until a run within 10 % of the optimum; end: until the policy stops by itself.")
    ] = "1.1",
    workers: Annotated[int, typer.Option(help="Processes.")] = 1,
    file: Annotated[
        Path | None, typer.Option(help="A YAML file with families and policies instead of the shipped one.")
    ] = None,
    store: Annotated[Path, typer.Option(help="The file of results, one JSON line each.")] = STORE / "families.jsonl",
    run: Annotated[bool, typer.Option("--run/--no-run", help="Run what is missing, or only print the tables.")] = True,
    any_code: Annotated[
        bool,
        typer.Option("--any-code", help="Also use results of other versions of the code, and do not run them again."),
    ] = False,
    rows: Annotated[
        float,
        typer.Option(min=0.01, max=1.0, help="The share of a table's rows that each seed draws: jobs nobody has seen."),
    ] = 1.0,
) -> None:
    """Compare variants of a policy on families of jobs, and score each family with the variant that the others choose."""
    from lynceus_lab.engines import engine_named
    from lynceus_lab.families import evaluated, run_missing
    from lynceus_lab.families_file import SHIPPED, load_families
    from lynceus_lab.families_table import tables
    from lynceus_lab.family_ends import end_tables
    from lynceus_lab.family_results import LEVEL, ResultFile

    _check_data_folder()
    if until not in ("end", f"{LEVEL:g}"):
        raise InputError(f"--until: got {until!r}; choose {LEVEL:g} or end.")
    ends: Until = "end" if until == "end" else LEVEL
    declared = load_families(file or SHIPPED, _names(only), _names(policies), variants_only=until == "end", rows=rows)
    results = ResultFile(store)
    if run:
        engine = engine_named("local", workers)
        ran = run_missing(declared, range(seeds), ends, engine, results, any_code=any_code, watch=progress)
        _raise_crash(ran.crashed)
        typer.echo(f"{ran.asked:,} replays: {ran.found:,} were there already, {ran.made:,} were run now.", err=True)
    found = evaluated(declared, range(seeds), ends, results.read(), any_code=any_code)
    for line in (end_tables if until == "end" else tables)(declared, found, seeds):
        typer.echo(line)


@lab.command("serving")
def serving(
    only: Annotated[str, typer.Option("--tasks", help="Only tasks whose names contain this text.")] = "",
    policies: Annotated[str, typer.Option(help="Labels of policies, separated by semicolons; by default all.")] = "",
    seeds: Annotated[int, typer.Option(min=1, help="Seeds per task; the same for all policies.")] = 20,
    workers: Annotated[int, typer.Option(help="Processes.")] = 1,
    store: StoreFolder = STORE,
    run: Annotated[bool, typer.Option("--run/--no-run", help="Run what is missing, or only print the tables.")] = True,
) -> None:
    """Compare the default with other searches on tables of LLM serving and GPU training, and count measurements ended early."""
    from lynceus.errors import hint
    from lynceus_lab import serving as campaign
    from lynceus_lab.serving_report import lines
    from lynceus_lab.trace_store import Store

    _check_data_folder()
    labels = tuple(name.strip() for name in policies.split(";") if name.strip()) or campaign.POLICIES
    for label in labels:
        if label not in campaign.POLICIES:
            raise InputError(f"--policies: there is no {label!r}{hint(label, campaign.POLICIES)}")
    chosen, kept = campaign.tasks(only), Store(store)
    if run:
        _run_stored(campaign.cells(chosen, labels, seeds), kept, workers)
        if campaign.PEER in labels:
            _run_stored(campaign.peer_cells(chosen, seeds, kept), kept, workers)
    for line in lines(chosen, labels, seeds, kept):
        typer.echo(line)


def _run_stored(cells: Sequence[Cell], store: Store, workers: int) -> None:
    from lynceus_lab.campaign import run_cells
    from lynceus_lab.engines import engine_named

    with progress(len(store.missing(cells))) as report:
        ran = run_cells(cells, engine_named("local", workers), store, report)
    _raise_crash(ran.crashed)


@lab.command("prior")
def learn_prior(
    only: Annotated[str, typer.Option("--families", help="Families, separated by commas; by default all.")] = "",
    file: Annotated[Path | None, typer.Option(help="A YAML file with families instead of the shipped one.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the rows and of the draws.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Write to this file instead of printing.")] = None,
) -> None:
    """Learn the prior of the default's time model from families of jobs, over all of them and without each of them."""
    from lynceus_lab.families_file import SHIPPED, load_families
    from lynceus_lab.prior_learning import document, learn, text

    _check_data_folder()
    declared = load_families(file or SHIPPED, _names(only), variants_only=True)
    written = text(document(learn(declared, seed, lambda line: typer.echo(line, err=True)), seed))
    if out is None:
        typer.echo(written, nl=False)
        return
    try:
        out.write_text(written, encoding="utf-8")
    except OSError as error:
        raise InputError(f"--out: {out} cannot be written: {error.strerror}; choose another file.") from None


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _numbers(option: str, text: str) -> tuple[float, ...]:
    try:
        numbers = tuple(float(each) for each in text.split(","))
    except ValueError:
        numbers = (-1.0,)
    if not all(0 <= each < 1 for each in numbers):
        raise InputError(f"{option}: got {text!r}; give numbers of at least 0 and below 1, separated by commas.")
    return numbers
