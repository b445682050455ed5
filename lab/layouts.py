"""Log files as Kafka's stock configuration writes them: `[%d] %p %m (%c)%n`."""

from __future__ import annotations

import os
from pathlib import Path

_PATTERN = "[%d] %p %m (%c)%n"
_BROKER_FILES = {
    # logger: file. The stock configuration keeps these out of server.log.
    "state.change.logger": "state-change.log",
    "kafka.controller": "controller.log",
    "org.apache.kafka.controller": "controller.log",
}


def broker_logging(version: str, logs: Path, settings: Path) -> str:
    """Write the logging settings of a broker; return the JVM option that selects them."""
    return _write(version, "INFO", logs / "server.log", _BROKER_FILES, settings)


def client_logging(version: str, log: Path, settings: Path) -> str:
    """Write the logging settings of a client; return the JVM option.

    It logs at INFO, or at `ACKTRAIL_LAB_CLIENT_LEVEL`.
    """
    level = os.environ.get("ACKTRAIL_LAB_CLIENT_LEVEL", "INFO")
    return _write(version, level, log, {}, settings)


def _write(version: str, level: str, main: Path, apart: dict[str, str], settings: Path) -> str:
    if version.startswith("3."):
        settings.write_text(_log4j1(level, main, apart))
        return f"-Dlog4j.configuration=file:{settings}"
    settings.write_text(_log4j2(level, main, apart))
    return f"-Dlog4j2.configurationFile={settings}"


def _log4j1(level: str, main: Path, apart: dict[str, str]) -> str:
    files = {"main": main, **{_appender(name): main.parent / name for name in apart.values()}}
    lines = [f"log4j.rootLogger={level}, main"]
    for appender, path in files.items():
        prefix = f"log4j.appender.{appender}"
        lines += [
            f"{prefix}=org.apache.log4j.FileAppender",
            f"{prefix}.File={path}",
            f"{prefix}.layout=org.apache.log4j.PatternLayout",
            f"{prefix}.layout.ConversionPattern={_PATTERN}",
        ]
    for logger, name in apart.items():
        lines += [f"log4j.logger.{logger}=INFO, {_appender(name)}"]
        lines += [f"log4j.additivity.{logger}=false"]
    return "\n".join(lines) + "\n"


def _log4j2(level: str, main: Path, apart: dict[str, str]) -> str:
    files = {"main": main, **{_appender(name): main.parent / name for name in apart.values()}}
    lines = ["status=error", f"rootLogger.level={level.lower()}"]
    lines += ["rootLogger.appenderRef.main.ref=main"]
    for appender, path in files.items():
        prefix = f"appender.{appender}"
        lines += [
            f"{prefix}.type=File",
            f"{prefix}.name={appender}",
            f"{prefix}.fileName={path}",
            f"{prefix}.layout.type=PatternLayout",
            f"{prefix}.layout.pattern={_PATTERN}",
        ]
    for number, (logger, name) in enumerate(apart.items()):
        prefix = f"logger.apart{number}"
        lines += [
            f"{prefix}.name={logger}",
            f"{prefix}.level=info",
            f"{prefix}.additivity=false",
            f"{prefix}.appenderRef.file.ref={_appender(name)}",
        ]
    return "\n".join(lines) + "\n"


def _appender(name: str) -> str:
    return name.removesuffix(".log").replace("-", "")
