"""A small run that touches what every run touches, so that its classes are archived."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from pipelines import session


def main() -> None:
    """Write, replace and read one Delta table."""
    spark = session.build()
    with tempfile.TemporaryDirectory() as scratch:
        path = str(Path(scratch) / "table")
        rows = spark.range(100).selectExpr("id", "cast(id % 3 as string) as part")
        rows.write.format("delta").partitionBy("part").save(path)
        rows.write.format("delta").mode("append").save(path)
        kept = rows.where("part = '1'").mapInArrow(lambda batches: batches, rows.schema)
        replacing = kept.write.format("delta").mode("overwrite")
        replacing.option("replaceWhere", "part IN ('1')").save(path)
        spark.read.format("delta").load(path).groupBy("part").count().collect()
    session.stop(spark)


if __name__ == "__main__":
    if "--archive" in sys.argv:
        session.make_archive()
    else:
        main()
