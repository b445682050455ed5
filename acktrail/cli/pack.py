"""`acktrail pack`: the Python environment of Spark's executors, as one archive."""

from __future__ import annotations

from pathlib import Path

import click

from acktrail.terminal.progress import Progress


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Replace FILE where it exists.")
def command(file: Path, force: bool) -> None:
    """Pack this Python environment for the executors of a Spark cluster.

    FILE (.tar.gz) gets the interpreter, acktrail and the packages that its tasks use, in the
    versions that are installed here; Spark itself is not in it. Each executor unpacks it into its
    own directory. The executors' hosts need the same operating system and processor type, and the
    Spark version of this pyspark; they need no Python. Pack again after every upgrade: a driver
    refuses an archive with other versions.

    Example:

    \b
        acktrail pack /srv/acktrail/environment.tar.gz
        acktrail pack --force /srv/acktrail/environment.tar.gz
        acktrail run --set spark.environment=/srv/acktrail/environment.tar.gz \\
            --master spark://spark-1:7077 --lake s3://bucket/lake
    """
    from pipelines import environment

    with Progress(environment.parts()) as progress:
        size = environment.pack(file.absolute(), overwrite=force, part=progress.part)
    click.echo(
        f"Wrote {file} ({size / 1e6:.0f} MB). Set `spark.environment` to it: docs/clusters.md."
    )
