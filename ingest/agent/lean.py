"""Keep an agent's process small."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

import pyarrow as pa

_DELTA_POOLS = "_RJEM_MALLOC_CONF"


class _NoPandas(MetaPathFinder):
    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - the interface
        target: ModuleType | None = None,  # noqa: ARG002 - the interface
    ) -> ModuleSpec | None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is not looked for", name=fullname)
        return None


def without_pandas(reading: bool = False) -> None:
    """Let Arrow make arrays without pandas.

    Arrow looks for pandas when it makes its first array, and remembers the answer. Where pandas is
    installed beside the agent, loading it would cost 40 MB and a second or two for nothing.
    *reading*: rows of the lake are read too, not only written.
    """
    if "pandas" in sys.modules:
        return
    refusal = _NoPandas()
    sys.meta_path.insert(0, refusal)
    try:
        pa.array([], pa.int64())
        if reading:
            importlib.import_module("pyarrow.dataset")  # it looks for pandas once more
    finally:
        sys.meta_path.remove(refusal)


def small_pools() -> None:
    """Let memory go back to the system instead of into pools, before the lake is loaded.

    delta-rs brings an allocator of its own, which keeps what each of its many threads let go.
    """
    os.environ.setdefault(_DELTA_POOLS, "narenas:1,dirty_decay_ms:0,muzzy_decay_ms:0")
    pa.set_memory_pool(pa.system_memory_pool())
