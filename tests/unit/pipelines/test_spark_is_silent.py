"""PySpark's own log of errors stays off, whoever configures logging afterwards."""

from __future__ import annotations

import logging
import logging.config

from pyspark.logger import PySparkLogger

from pipelines.spark_errors import silence


def test_logging_that_is_configured_later_does_not_enable_it():
    silence()
    logging.config.dictConfig({"version": 1, "disable_existing_loggers": False})
    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    assert not logger.isEnabledFor(logging.CRITICAL)
    logger.exception("nobody sees it", errorClass="X")
