"""`lynceus prices`: what machines cost, the source of the prices, and their age."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lynceus.cli.arguments import StorageOption, StudyArgument, named_study
from lynceus.cli.output import Output, OutputOption, console, counted, echo, print_json, safe
from lynceus.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lynceus.prices.offer import Catalog, Offer

prices = typer.Typer(name="prices", help="Prices of machines, with their source and age.", no_args_is_help=True)

CloudOption = Annotated[str | None, typer.Option("--cloud", help="The cloud of the prices: aws, gcp, azure, …")]


@prices.command("list")
def list_(
    infra: Annotated[str, typer.Option(help="A cloud, or one of its regions: aws, aws/us-east-1.")] = "*",
    cpus: Annotated[str | None, typer.Option(help="vCPUs: 4 (exactly), 4+ (at least), 4-8.")] = None,
    memory: Annotated[str | None, typer.Option(help="Memory in GiB: 16, 16+, 16-64.")] = None,
    accelerators: Annotated[str | None, typer.Option("--accelerators", "--gpus", help="Such as T4:1.")] = None,
    instance_type: Annotated[str | None, typer.Option(help="A name, perhaps with *: m5.*.")] = None,
    spot: Annotated[bool, typer.Option("--spot", help="Only machines with a spot price, sorted by it.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="The most lines to print; JSON has them all.")] = 50,
    output: OutputOption = Output.TABLE,
) -> None:
    """List machines and their prices, cheapest first."""
    from lynceus.prices.requirements import Infra, Range, Requirements, parse_accelerator
    from lynceus.prices.store import catalogs

    known = catalogs()
    wanted = Requirements(
        (Infra.parse(infra),),
        () if instance_type is None else (instance_type,),
        None if cpus is None else Range.parse(cpus, "cpus"),
        None if memory is None else Range.parse(memory, "memory"),
        () if accelerators is None else (parse_accelerator(accelerators),),
    )
    found = wanted.select(known, (spot,))
    found.sort(key=lambda one: (one.price(spot) or 0.0, one.infra, one.instance_type))
    if output is Output.JSON:
        _print_offers_json(found, known)
        return
    _print_offers(found[:limit])
    if len(found) > limit:
        echo(f"{len(found) - limit} more; narrow the search, or raise --limit.")
    _print_sources(found, known)


@prices.command()
def show(
    instance_type: Annotated[str, typer.Argument(help="A machine, such as m5.xlarge.")],
    output: OutputOption = Output.TABLE,
) -> None:
    """Show one machine in every region, with its zones, the source of its prices and their age."""
    from lynceus.prices.store import catalogs

    known = catalogs()
    found = [one for catalog in known.values() for one in catalog.offers if one.instance_type == instance_type]
    if not found:
        names = sorted({one.instance_type for catalog in known.values() for one in catalog.offers})
        raise InputError(
            f"show: no catalog has the machine {instance_type!r}.{did_you_mean(instance_type, names)} "
            "Newer catalogs may: lynceus prices refresh."
        )
    if output is Output.JSON:
        _print_offers_json(found, known)
        return
    _print_offers(found)
    for one in found:
        for zone, price, spot in one.zones:
            echo(f"  {one.infra}/{zone}: {_usd(price)} on demand, {_usd(spot)} spot")
    _print_sources(found, known)


@prices.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="A CSV file in the format of SkyPilot's catalogs.")],
    cloud: CloudOption = None,
    as_of: Annotated[
        str | None, typer.Option(help="The date of the prices (2026-11-15); by default that of the file.")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Store the prices of a file; they replace the known prices of this cloud."""
    from lynceus.prices.catalog_file import cloud_name
    from lynceus.prices.refresh import cloud_of, file_of
    from lynceus.prices.store import PriceStore, day_s

    read = file_of(file)
    named = cloud_name(cloud_of(file.resolve(), cloud))
    kept = PriceStore().keep(read.text, named, str(file), read.as_of_s if as_of is None else day_s(as_of))
    _print_kept([kept], output)


@prices.command()
def refresh(
    cloud: Annotated[list[str] | None, typer.Option("--cloud", help="Only this cloud; may be repeated.")] = None,
    place: Annotated[
        str | None,
        typer.Option(
            "--from", help="An address or a folder, with {cloud} for the cloud; SkyPilot's catalog by default."
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Fetch newer prices. If that fails, the old prices stay."""
    from lynceus.prices.catalog_file import CLOUDS, cloud_name
    from lynceus.prices.refresh import refresh as refresh_cloud
    from lynceus.prices.store import PriceStore

    store = PriceStore()
    kept = []
    for one in cloud or CLOUDS:
        kept.append(refresh_cloud(store, cloud_name(one), place))
        if output is Output.TABLE:
            _print_kept(kept[-1:], output)  # at once, because the next cloud may fail
    if output is Output.JSON:
        _print_kept(kept, output)


@prices.command()
def apply(
    study: StudyArgument = None,
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Continue a study at today's prices, or at those of its job file if that is named. Past times and charges stay as they were."""
    from lynceus.library.price_updates import apply_prices

    one, found = apply_prices(named_study(study, storage, "ignore"), study)
    if output is Output.JSON:
        print_json({"study": one.name, "changes": found.changes})
        return
    for change in found.changes:
        echo(f"  {change}")
    changed = f"{counted(len(found.changes), 'price')} changed" if found.changes else "its prices are up to date"
    echo(f"{one.name}: {changed}.")


def _print_kept(kept: list[Catalog], output: Output) -> None:
    if output is Output.JSON:
        print_json({"catalogs": [{**_catalog_facts(one), "machines": len(one.offers)} for one in kept]})
        return
    for one in kept:
        regions = len({offer.region for offer in one.offers})
        echo(f"{counted(len(one.offers), 'price')} in {counted(regions, 'region')}: {one.about()}")
        _warn(one)


def _print_offers(found: Sequence[Offer]) -> None:
    from rich.table import Table

    table = Table("machine", "infra", box=None, header_style="bold")
    for heading in ("vCPUs", "GiB", "accelerators", "on demand $/h", "spot $/h", "spot/on demand"):
        table.add_column(heading, justify="right")
    for one in found:
        share = ""
        if one.usd_per_hour is not None and one.spot_usd_per_hour is not None:
            share = f"{one.spot_usd_per_hour / one.usd_per_hour:.0%}".replace("%", " %")
        gpus = safe(f"{one.accelerator}:{one.accelerators:g}") if one.accelerators else ""
        cells = (f"{one.vcpus:g}", f"{one.memory_gib:g}", gpus, _usd(one.usd_per_hour), _usd(one.spot_usd_per_hour))
        table.add_row(safe(one.instance_type), safe(one.infra), *cells, share)
    console().print(table)


def _print_offers_json(found: Sequence[Offer], known: Mapping[str, Catalog]) -> None:
    used = [_catalog_facts(catalog) for catalog in _catalogs(found, known)]
    print_json({"catalogs": used, "machines": [_offer_facts(one) for one in found]})


def _print_sources(found: Sequence[Offer], known: Mapping[str, Catalog]) -> None:
    used = _catalogs(found, known)
    for catalog in used:
        echo(f"prices: {catalog.about()}")
    for catalog in used:
        _warn(catalog)


def _catalogs(found: Sequence[Offer], known: Mapping[str, Catalog]) -> list[Catalog]:
    """The catalogs of some offers."""
    return [known[cloud] for cloud in dict.fromkeys(one.cloud for one in found)]


def _warn(catalog: Catalog) -> None:
    for warning in (catalog.warning(), catalog.spot_warning()):
        if warning is not None:
            echo(f"lynceus: {warning}", err=True)


def _usd(price: float | None) -> str:
    return "–" if price is None else f"{price:.4f}"


def _catalog_facts(catalog: Catalog) -> dict[str, Any]:
    return {
        "cloud": catalog.cloud,
        "source": catalog.source,
        "as_of": catalog.date,
        "age_days": round(catalog.age_days(), 2),
        "stale": catalog.stale(),
        "spot_note": catalog.spot_note or None,
    }


def _offer_facts(one: Offer) -> dict[str, Any]:
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
