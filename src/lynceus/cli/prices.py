"""`lynceus prices`: what machines cost, where the prices come from, and how old they are."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lynceus.cli.output import Output, OutputOption, StorageOption, StudyArgument, console, print_json
from lynceus.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lynceus.prices import Catalog, Offer

prices = typer.Typer(name="prices", help="Prices of machines, with their source and age.", no_args_is_help=True)

CloudOption = Annotated[str | None, typer.Option("--cloud", help="Whose prices they are: aws, gcp, azure, …")]


@prices.command("list")
def list_(
    infra: Annotated[str, typer.Option(help="A cloud, or a region of it: aws, aws/us-east-1.")] = "*",
    cpus: Annotated[str | None, typer.Option(help="vCPUs: 4 (exactly), 4+ (at least), 4-8.")] = None,
    memory: Annotated[str | None, typer.Option(help="Memory in GiB: 16, 16+, 16-64.")] = None,
    accelerators: Annotated[str | None, typer.Option("--accelerators", "--gpus", help="Such as T4:1.")] = None,
    instance_type: Annotated[str | None, typer.Option(help="A name, perhaps with *: m5.*.")] = None,
    spot: Annotated[
        bool, typer.Option("--spot", help="Only machines with a spot price, cheapest first by it.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, help="Most lines that are printed; JSON has them all.")] = 50,
    output: OutputOption = Output.TABLE,
) -> None:
    """List machines and their prices, cheapest first."""
    from lynceus.prices import Amount, Place, Wanted, catalogs
    from lynceus.prices.wanted import accelerator_of

    place, known = Place.parse(infra), catalogs()
    wanted = Wanted(
        (place,),
        () if instance_type is None else (instance_type,),
        None if cpus is None else Amount.parse(cpus, "cpus"),
        None if memory is None else Amount.parse(memory, "memory"),
        () if accelerators is None else (accelerator_of(accelerators),),
    )
    found = wanted.offers(known, (spot,))
    found.sort(key=lambda one: (one.price(spot) or 0.0, one.infra, one.instance_type))
    used = {one.cloud: known[one.cloud] for one in found}
    if output is Output.JSON:
        print_json({"catalogs": [_about(one) for one in used.values()], "machines": [_facts(one) for one in found]})
        return
    _print_offers(found[:limit])
    if len(found) > limit:
        typer.echo(f"{len(found) - limit} more; narrow the search, or raise --limit.")
    _print_sources(used)


@prices.command()
def show(
    instance_type: Annotated[str, typer.Argument(help="A machine, such as m5.xlarge.")],
    output: OutputOption = Output.TABLE,
) -> None:
    """Show one machine in every region, with its zones, the source of its prices and their age."""
    from lynceus.prices import catalogs
    from lynceus.space.column import nearest

    known = catalogs()
    found = [one for catalog in known.values() for one in catalog.offers if one.instance_type == instance_type]
    if not found:
        names = sorted({one.instance_type for catalog in known.values() for one in catalog.offers})
        raise InputError(
            f"show: no catalog has the machine {instance_type!r}.{nearest(instance_type, names)} "
            "Newer catalogs may: lynceus prices refresh."
        )
    used = {one.cloud: known[one.cloud] for one in found}
    if output is Output.JSON:
        print_json({"catalogs": [_about(one) for one in used.values()], "machines": [_facts(one) for one in found]})
        return
    _print_offers(found)
    for one in found:
        for zone, price, spot in one.zones:
            typer.echo(f"  {one.infra}/{zone}: {_usd(price)} on demand, {_usd(spot)} spot")
    _print_sources(used)


@prices.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="A CSV file in the format of SkyPilot's catalogs.")],
    cloud: CloudOption = None,
    as_of: Annotated[str | None, typer.Option(help="The day of the prices (2026-11-15); else the file's own.")] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Keep the prices of a file; they take the place of those that were known for this cloud."""
    from lynceus.prices import PriceStore
    from lynceus.prices.read import cloud_name
    from lynceus.prices.refresh import cloud_of, file_of
    from lynceus.prices.store import day_s

    came = file_of(file)
    named = cloud_name(cloud_of(file.resolve(), cloud))
    kept = PriceStore().keep(came.text, named, str(file), came.as_of_s if as_of is None else day_s(as_of))
    _print_kept([kept], output)


@prices.command()
def refresh(
    cloud: Annotated[list[str] | None, typer.Option("--cloud", help="Only this cloud; may be repeated.")] = None,
    place: Annotated[
        str | None,
        typer.Option("--from", help="An address or a folder; {cloud} stands for the cloud. Else SkyPilot's catalog."),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Fetch newer prices. When they cannot be reached or read, the old ones stay."""
    from lynceus.prices import PriceStore
    from lynceus.prices.read import CLOUDS, cloud_name
    from lynceus.prices.refresh import refresh as fetched

    store = PriceStore()
    kept = []
    for one in cloud or CLOUDS:
        kept.append(fetched(store, cloud_name(one), place))
        if output is Output.TABLE:
            _print_kept(kept[-1:], output)  # at once: the next one may not be reached
    if output is Output.JSON:
        _print_kept(kept, output)


@prices.command()
def apply(
    study: StudyArgument = None,
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Let a study go on at today's prices (with a job file: at its prices). What was measured and charged stays as it was."""
    from lynceus.cli.opened import open_study
    from lynceus.cli.repricing import apply_prices

    one, found = apply_prices(open_study(study, storage, lambda _, record, __: record), study)
    if output is Output.JSON:
        print_json({"study": one.name, "changes": found.changes})
        return
    for change in found.changes:
        typer.echo(f"  {change}")
    told = "its prices are today's already." if not found.changes else f"{len(found.changes)} prices changed."
    typer.echo(f"{one.name}: {told}")


def _print_kept(kept: list[Catalog], output: Output) -> None:
    if output is Output.JSON:
        print_json({"catalogs": [{**_about(one), "machines": len(one.offers)} for one in kept]})
        return
    for one in kept:
        regions = len({offer.region for offer in one.offers})
        typer.echo(f"{len(one.offers)} prices in {regions} regions: {one.about()}")
        _warn(one)


def _print_offers(found: Iterable[Offer]) -> None:
    from rich.table import Table

    table = Table("machine", "infra", box=None, header_style="bold")
    for heading in ("vCPUs", "GiB", "accelerators", "on demand $/h", "spot $/h", "spot/on demand"):
        table.add_column(heading, justify="right")
    for one in found:
        share = ""
        if one.usd_per_hour is not None and one.spot_usd_per_hour is not None:
            share = f"{one.spot_usd_per_hour / one.usd_per_hour:.0%}".replace("%", " %")
        gpus = f"{one.accelerator}:{one.accelerators:g}" if one.accelerators else ""
        cells = (f"{one.vcpus:g}", f"{one.memory_gib:g}", gpus, _usd(one.usd_per_hour), _usd(one.spot_usd_per_hour))
        table.add_row(one.instance_type, one.infra, *cells, share)
    console().print(table)


def _print_sources(used: Mapping[str, Catalog]) -> None:
    for catalog in used.values():
        typer.echo(f"prices: {catalog.about()}")
    for catalog in used.values():
        _warn(catalog)


def _warn(catalog: Catalog) -> None:
    for said in (catalog.warning(), catalog.spot_warning()):
        if said is not None:
            sys.stderr.write(f"lynceus: {said}\n")


def _usd(price: float | None) -> str:
    return "–" if price is None else f"{price:.4f}"


def _about(catalog: Catalog) -> dict[str, Any]:
    return {
        "cloud": catalog.cloud,
        "source": catalog.source,
        "as_of": catalog.date,
        "age_days": round(catalog.age_days(), 2),
        "stale": catalog.stale(),
        "spot_note": catalog.spot_note or None,
    }


def _facts(one: Offer) -> dict[str, Any]:
    return {
        "infra": one.infra,
        "instance_type": one.instance_type,
        "vcpus": one.vcpus,
        "memory_gib": one.memory_gib,
        "accelerator": one.accelerator if one.accelerators else None,
        "accelerators": one.accelerators,
        "ghz": one.ghz,
        "usd_per_hour": one.usd_per_hour,
        "spot_usd_per_hour": one.spot_usd_per_hour,
        "zones": [{"zone": zone, "usd_per_hour": price, "spot_usd_per_hour": spot} for zone, price, spot in one.zones],
    }
