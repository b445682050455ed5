"""A finished file of per-message rows: its identity, and its rows a bounded number at a time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from acktrail.errors import UsageError
from ingest.messages.columns import TEXTS

ROWS_AT_A_TIME = 1_000_000


@dataclass(frozen=True)
class MessageFile:
    """A finished file of per-message rows."""

    path: Path
    identity: str

    @classmethod
    def of(cls, path: Path) -> MessageFile:
        """The file, known by a hash of all its bytes."""
        digest = hashlib.sha256()
        try:
            with path.open("rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror}.") from None
        return cls(path, digest.hexdigest()[:32])

    def pieces(self) -> Iterator[pa.Table]:
        """The rows, a bounded number at a time."""
        try:
            if self.path.suffix == ".parquet":
                import pyarrow.parquet as pq

                for batch in pq.ParquetFile(self.path).iter_batches(ROWS_AT_A_TIME):
                    yield pa.Table.from_batches([batch])
                return
            whole = self._json_rows()
        except (pa.ArrowInvalid, OSError) as error:
            raise UsageError(
                f"{self.path} is neither Parquet nor JSON lines, one object per line: {error}"
            ) from None
        for start in range(0, whole.num_rows, ROWS_AT_A_TIME):
            yield whole.slice(start, ROWS_AT_A_TIME)

    def _json_rows(self) -> pa.Table:
        from pyarrow import json as arrow_json

        # Arrow takes text that looks like a time for one, and drops its zone: keep it as text.
        texts = pa.schema([(name, pa.string()) for name in self._texts_in_first_line()])
        return arrow_json.read_json(
            str(self.path),
            arrow_json.ReadOptions(block_size=64 << 20),
            arrow_json.ParseOptions(explicit_schema=texts),
        )

    def _texts_in_first_line(self) -> list[str]:
        with self.path.open("rb") as file:
            line = next((text for text in file if text.strip()), b"")
        try:
            first = json.loads(line)
        except ValueError:
            return []
        if not isinstance(first, dict):
            return []
        return [name for name in (*TEXTS, "time") if isinstance(first.get(name), str)]
