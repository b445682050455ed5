"""Great Expectations, imported quickly and quietly: no telemetry, no progress bars, no Spark.

The rest of the package imports it from here. Three of its imports serve features that are not used
(Spark, charts, distribution tests) and take more time than all the checks; they are put off.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

_PUT_OFF = ("altair", "scipy.stats")
_DOCS_SITE = "acktrail"


class _Later(ModuleType):
    """Stands for a module until something in it is asked for, then is that module."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


def _import_quickly() -> None:
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    for name in _PUT_OFF:
        if name in sys.modules:
            continue
        later = _Later(name)
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(importlib.import_module(parent), child, later)
        sys.modules[name] = later
    without_spark = "pyspark" not in sys.modules
    if without_spark:
        sys.modules["pyspark"] = None  # type: ignore[assignment]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of its own imports
            importlib.import_module("great_expectations")
    finally:
        if without_spark:
            del sys.modules["pyspark"]


_import_quickly()

import great_expectations as gx  # noqa: E402
import great_expectations.expectations as _gxe  # noqa: E402
from great_expectations.core.metric_domain_types import MetricDomainTypes  # noqa: E402
from great_expectations.data_context.types.base import ProgressBarsConfig  # noqa: E402
from great_expectations.execution_engine.pandas_execution_engine import (  # noqa: E402
    PandasExecutionEngine,
)
from great_expectations.expectations.expectation import BatchExpectation  # noqa: E402
from great_expectations.expectations.metrics.metric_provider import metric_value  # noqa: E402
from great_expectations.expectations.metrics.table_metric_provider import (  # noqa: E402
    TableMetricProvider,
)

gxe: Any = _gxe
"""Great Expectations' own expectations; it does not export them to type checkers."""


def context() -> Any:
    """A context that lives in memory and sends nothing anywhere."""
    made = gx.get_context(mode="ephemeral")
    made.enable_analytics(False)
    made.variables.progress_bars = ProgressBarsConfig(globally=False)
    return made


def build_docs(gx_context: Any, directory: Path) -> None:
    """Data Docs of what *gx_context* has just validated, in *directory*."""
    for site in list(gx_context.get_site_names()):
        gx_context.delete_data_docs_site(site)
    gx_context.add_data_docs_site(
        _DOCS_SITE,
        {
            "class_name": "SiteBuilder",
            "store_backend": {
                "class_name": "TupleFilesystemStoreBackend",
                "base_directory": str(directory.absolute()),
            },
            "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
        },
    )
    gx_context.build_data_docs(site_names=[_DOCS_SITE])


__all__ = [
    "BatchExpectation",
    "MetricDomainTypes",
    "PandasExecutionEngine",
    "TableMetricProvider",
    "build_docs",
    "context",
    "gx",
    "gxe",
    "metric_value",
]
