"""Options that several commands share, so that they look and behave the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from acktrail.window import instant

if TYPE_CHECKING:
    from acktrail.lake import Lake
    from acktrail.settings import Loaded
    from acktrail.settings.model import LakeSettings

Command = TypeVar("Command", bound=Callable[..., Any])

FORMATS = ("text", "json", "csv")


def settings_options(command: Command) -> Command:
    """--config, --set and --lake; the command receives one `loaded: Loaded`."""

    def gather(
        config: str | None, given: tuple[str, ...], lake: str | None, **rest: Any
    ) -> dict[str, Any]:
        from acktrail.settings import load

        chosen = [*given, *([f"lake.uri={lake}"] if lake else [])]
        return {"loaded": load(config, chosen), **rest}

    def wrapped(**options: Any) -> Any:
        return command(**gather(**options))

    wrapped.__doc__ = command.__doc__
    wrapped.__name__ = command.__name__
    wrapped.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    for option in (
        click.option("--lake", metavar="URI", help="The lake: a directory or an object store."),
        click.option("--set", "given", multiple=True, metavar="KEY=VALUE", help="One setting."),
        click.option("--config", metavar="FILE", help="Settings file; else ./acktrail.toml."),
    ):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[return-value]


def above_zero(
    _context: click.Context, _parameter: click.Parameter, value: float | None
) -> float | None:
    """An option's callback: a number that time can be measured with."""
    if value is not None and not 0 < value <= 10_000_000:
        raise click.BadParameter("it must be a number above 0 and not above 10000000.")
    return value


def format_option(command: Command) -> Command:
    """--format text|json|csv, received as `output`."""
    return click.option(
        "--format", "output", type=click.Choice(FORMATS), default="text", show_default=True
    )(command)


def master_option(command: Command) -> Command:
    """--master URL, received as `master`: the settings' `spark.master` where it is not given."""
    return click.option(
        "--master",
        metavar="URL",
        callback=_known_master,
        help="Spark master, e.g. local[2], spark://host:7077, yarn.",
    )(command)


def _known_master(
    _context: click.Context, _parameter: click.Parameter, value: str | None
) -> str | None:
    from acktrail.settings.spark import known_master

    try:
        return known_master(value) if value else None
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def as_of_option(command: Command) -> Command:
    """--as-of T, received as `as_of: datetime`; now if not given."""
    return click.option(
        "--as-of",
        metavar="TIME",
        default=None,
        callback=lambda _ctx, _param, text: instant(text) if text else datetime.now(UTC),
        help="The moment asked about, e.g. 2026-01-31T07:00Z; now if not given.",
    )(command)


def open_lake(loaded: Loaded) -> Lake:
    """The lake the settings name, or the error that lists where it was looked for."""
    from acktrail.lake import Lake

    return Lake(loaded.require("lake.uri"), _storage_options(loaded.settings.lake))


def _storage_options(lake: LakeSettings) -> dict[str, str]:
    """The options of the lake's store, those in files included."""
    from acktrail.errors import ConfigError

    options = {key: value.get_secret_value() for key, value in lake.storage_options.items()}
    for name, file in lake.storage_option_files.items():
        try:
            options[name] = Path(file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not a text"
            raise ConfigError(
                f"lake.storage_option_files.{name}: {file} cannot be read: {reason}."
            ) from None
    return options


def lake_to_ask(loaded: Loaded) -> Lake:
    """As *open_lake*, for questions: UsageError where there is no table at all."""
    from acktrail.errors import UsageError

    lake = open_lake(loaded)
    if lake.is_empty():
        raise UsageError(
            f"There is no table at {lake.uri}. Check --lake (or `lake.uri`). For a new lake, "
            "run `acktrail agent --once`, then `acktrail run`."
        )
    return lake


def lake_to_keep(loaded: Loaded) -> Lake:
    """As *open_lake*, for what a scheduler may run before any agent has: an empty lake is noted."""
    lake = open_lake(loaded)
    if lake.is_empty():
        click.echo(f"There is no table at {lake.uri} yet. Check --lake (or `lake.uri`).", err=True)
    return lake
