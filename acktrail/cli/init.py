"""`acktrail init`: write a first settings file."""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from acktrail.errors import UsageError
from acktrail.settings.template import Answers, policy_text, settings_text

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


@click.command()
@click.argument("file", default="acktrail.toml", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--cluster", metavar="NAME", help="Name of the cluster, e.g. prod-eu.")
@click.option(
    "--lake", metavar="URI", help="Where the tables will be: a directory or s3://bucket/prefix."
)
@click.option("--bootstrap-servers", metavar="HOST:PORT,...", help="The brokers.")
@click.option("--no-kafka", is_flag=True, help="No source reads from the brokers.")
@click.option("--security", type=click.Choice(PROTOCOLS), help="How the brokers are reached.")
@click.option("--sasl-mechanism", metavar="NAME", help="E.g. SCRAM-SHA-512.")
@click.option("--sasl-username", metavar="NAME", help="User of acktrail on the brokers.")
@click.option("--password-file", metavar="FILE", help="File with the SASL password.")
@click.option("--ca-file", metavar="FILE", help="CA of the brokers' certificates.")
@click.option("--logs", multiple=True, metavar="GLOB", help="Log files; can be repeated.")
@click.option("--no-logs", is_flag=True, help="Logs are not collected.")
@click.option("--zone", metavar="NAME", help="Time zone of log times, e.g. Europe/Berlin.")
@click.option("--prometheus", metavar="URL", help="A Prometheus server with the metrics.")
@click.option("--scrape", multiple=True, metavar="URL", help="A JMX exporter; can be repeated.")
@click.option(
    "--statistics", multiple=True, metavar="GLOB", help="Files of librdkafka's statistics."
)
@click.option("--no-metrics", is_flag=True, help="Metrics are not collected.")
@click.option("--audited", multiple=True, metavar="TOPIC", help="Audited topic; can be repeated.")
@click.option("--no-audits", is_flag=True, help="No topic is audited.")
@click.option("--alertmanager", multiple=True, metavar="URL", help="Alertmanager; can be repeated.")
@click.option("--no-alertmanager", is_flag=True, help="Alerts stay in the outbox.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
def command(file: Path, force: bool, **given: Any) -> None:
    """Write a commented settings file and a policy file for your cluster.

    On a terminal it asks for everything that no flag gives. policy.yaml is written beside FILE
    (acktrail.toml in the working directory). Then run `acktrail doctor` to test the settings.

    Example:

    \b
        acktrail init
        acktrail init --cluster prod-eu --lake /var/lib/acktrail/lake
            --bootstrap-servers kafka-1:9092 --logs '/var/log/orders/*.log' --zone Europe/Berlin
            --prometheus http://prometheus:9090 --no-audits --no-alertmanager
    """
    policy = file.absolute().with_name("policy.yaml")
    existing = [str(path) for path in (file, policy) if path.exists()]
    if existing and not force:
        raise UsageError(f"{' and '.join(existing)} exist already; --force overwrites them.")
    _refuse_both(given)
    if sys.stdin.isatty() and sys.stderr.isatty():
        _ask(given)
    _refuse_missing(given)
    answers = _answers(given)
    text = settings_text(answers, str(policy))
    _check(text)
    for path, content in ((file, text), (policy, policy_text(answers))):
        try:
            path.write_text(content, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror}.") from None
    click.echo(
        f"Wrote {file} and {file.with_name(policy.name)}.\nNext: acktrail doctor --config {file}",
        err=True,
    )


_TOPICS: dict[str, tuple[tuple[str, ...], str]] = {
    # what must be answered: flags that answer it, and the one that says there is none
    "cluster": (("cluster",), ""),
    "lake": (("lake",), ""),
    "kafka": (("bootstrap_servers",), "no_kafka"),
    "logs": (("logs",), "no_logs"),
    "metrics": (("prometheus", "scrape", "statistics"), "no_metrics"),
    "audits": (("audited",), "no_audits"),
    "alerts": (("alertmanager",), "no_alertmanager"),
}


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _refuse_both(given: dict[str, Any]) -> None:
    for names, without in _TOPICS.values():
        for name in names:
            if without and given[without] and given[name]:
                raise UsageError(f"{_flag(name)} and {_flag(without)} exclude each other.")
    if given["audited"] and given["no_kafka"]:
        raise UsageError(
            "--audited needs --bootstrap-servers: audited topics are read by acktrail."
        )


def _refuse_missing(given: dict[str, Any]) -> None:
    """UsageError with the flags that are still needed."""
    missing = []
    for names, without in _TOPICS.values():
        if not any(given[name] for name in (*names, *([without] if without else []))):
            missing.append(" or ".join(_flag(n) for n in (*names, *([without] if without else []))))
    if given["logs"] and not given["zone"]:
        missing.append("--zone")
    if given["audited"] and not given["bootstrap_servers"]:
        missing.append("--bootstrap-servers")
    if missing:
        raise UsageError(
            "Not on a terminal, so these flags are needed too:\n"
            + "\n".join(f"  {flag}" for flag in dict.fromkeys(missing))
        )


def _ask(given: dict[str, Any]) -> None:
    """Fill what the flags left open by asking; an empty answer means: there is none."""
    for name, question, default in (
        ("cluster", "Name of the cluster", "default"),
        ("lake", "Directory (or object store) of the lake", str(Path("lake").absolute())),
    ):
        given[name] = given[name] or click.prompt(question, default=default, err=True)
    asked: list[tuple[str, str, str, Callable[[str], Any]]] = [
        ("kafka", "bootstrap_servers", "Brokers, as host:port,host:port", str),
        ("logs", "logs", "Log files, as globs separated by commas", _several),
        ("metrics", "prometheus", "Address of a Prometheus server", str),
        ("metrics", "scrape", "Or addresses of JMX exporters, separated by commas", _several),
        ("metrics", "statistics", "Or files of librdkafka's statistics, as globs", _several),
        ("audits", "audited", "Topics whose producers are audited, separated by commas", _several),
        ("alerts", "alertmanager", "Addresses of Alertmanager, separated by commas", _several),
    ]
    for topic, name, question, read in asked:
        names, without = _TOPICS[topic]
        if given[without] or any(given[other] for other in names):
            continue
        if name == "audited" and not given["bootstrap_servers"]:
            given[without] = True
            continue
        said = click.prompt(f"{question} (empty: none)", default="", show_default=False, err=True)
        given[name] = read(said.strip())
        given[without] = not said.strip() and name == names[-1]
    if given["logs"] and not given["zone"]:
        given["zone"] = click.prompt("Time zone of the logs", default=_own_zone(), err=True)


def _several(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _own_zone() -> str:
    """The time zone of this machine; UTC where it does not say."""
    named = os.environ.get("TZ", "").lstrip(":") or os.path.realpath("/etc/localtime")
    zone = named.partition("zoneinfo/")[2] or named
    return zone if not zone.startswith("/") else "UTC"


def _answers(given: dict[str, Any]) -> Answers:
    sasl = (given["security"] or "").startswith("SASL") or bool(given["sasl_mechanism"])
    security = given["security"] or ("SASL_SSL" if sasl else "SSL" if given["ca_file"] else "")
    if sasl and not (given["sasl_mechanism"] and given["sasl_username"]):
        raise UsageError("SASL needs --sasl-mechanism and --sasl-username.")
    return Answers(
        cluster=given["cluster"],
        lake=given["lake"],
        bootstrap_servers=given["bootstrap_servers"] or "",
        security=security or "PLAINTEXT",
        sasl_mechanism=given["sasl_mechanism"] or "",
        sasl_username=given["sasl_username"] or "",
        password_file=given["password_file"] or "",
        ca_file=given["ca_file"] or "",
        logs=tuple(given["logs"]),
        zone=given["zone"] or "UTC",
        prometheus=given["prometheus"] or "",
        scrape=tuple(given["scrape"]),
        statistics=tuple(given["statistics"]),
        audited_topics=tuple(given["audited"]),
        alertmanager=tuple(given["alertmanager"]),
    )


def _check(text: str) -> None:
    """ConfigError where the settings would be refused when read: nothing is written then."""
    from acktrail.settings.load import checked

    checked(tomllib.loads(text), "These answers are wrong, and nothing was written:")
