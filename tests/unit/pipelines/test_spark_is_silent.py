"""PySpark's own log of errors stays off, whoever configures logging afterwards."""

from __future__ import annotations

import logging

from pyspark.logger import PySparkLogger

from pipelines.spark_errors import silence


def test_logging_that_is_configured_later_does_not_enable_it():
    silence()
    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    logger.disabled = False  # as logging.config does with all loggers that it is not given
    assert not logger.isEnabledFor(logging.CRITICAL)
    logger.exception("nobody sees it", errorClass="X")
