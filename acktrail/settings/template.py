"""The text of a first settings file and of its policy file, from what a user has answered."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

EVIDENCE = ("logs", "metrics", "audits")
_STATISTICS = ('kind = "librdkafka_stats"', 'name = "statistics"')


@dataclass(frozen=True)
class Answers:
    """What `acktrail init` was told. What is empty the user does not have."""

    cluster: str
    lake: str
    bootstrap_servers: str = ""
    security: str = "PLAINTEXT"
    sasl_mechanism: str = ""
    sasl_username: str = ""
    password_file: str = ""
    ca_file: str = ""
    logs: tuple[str, ...] = ()
    zone: str = "UTC"
    prometheus: str = ""
    scrape: tuple[str, ...] = ()
    statistics: tuple[str, ...] = ()
    audited_topics: tuple[str, ...] = ()
    alertmanager: tuple[str, ...] = ()

    @property
    def not_collected(self) -> tuple[str, ...]:
        """The kinds of evidence that nothing here reads."""
        metrics = self.prometheus or self.scrape or self.statistics
        held = (self.logs, metrics, self.audited_topics)
        return tuple(kind for kind, given in zip(EVIDENCE, held, strict=True) if not given)


def settings_text(answers: Answers, policy: str) -> str:
    """The settings file; *policy* is the path of the policy file."""
    parts = [
        "# Settings of acktrail. Every key can also be given as ACKTRAIL_SECTION__KEY or --set.\n"
        "# `acktrail doctor` tries everything that is named here.\n",
        "# The name of the cluster in all tables and alerts.\n"
        f"cluster = {_text(answers.cluster)}\n",
        "# Where the tables are: a directory, or an object store such as s3://bucket/lake.\n"
        f"[lake]\nuri = {_text(answers.lake)}\n",
        _kafka(answers),
        _logs(answers),
        _metrics(answers),
        _cluster_state(answers),
        _audits(answers),
        _alerts(answers, policy),
        _report(),
        _optional(answers),
    ]
    return "\n".join(parts)


def policy_text(answers: Answers) -> str:
    """The policy file."""
    without = ", ".join(answers.not_collected)
    return f"""\
# What a team decides about checks: docs/checks.md has every key.

# Evidence that this installation does without. Checks that need it are undecided, and nobody is
# alerted about it. Remove a kind from the list when you begin to collect it.
not_collected: [{without}]

# Whose alerts they are; the first rule that fits wins.
# default_owner: platform
# owners:
#   - owner: payments-team
#     topics: ["payments", "payments.*"]

# Other bounds for some topics or clients.
# thresholds:
#   - clients: ["batch-*"]
#     set: {{retry_rate_per_s: 5}}

# Times in which some failures are expected. A loss is never muted.
# maintenance:
#   - name: rolling restart
#     days: [sun]
#     between: "02:00-04:00"
#     zone: {answers.zone}
"""


def _kafka(answers: Answers) -> str:
    head = "# How to reach the brokers. The rights that each source needs: docs/agents.md.\n"
    if not answers.bootstrap_servers:
        return f'{head}# [kafka]\n# bootstrap_servers = "kafka-1:9092,kafka-2:9092"\n'
    lines = [head + "[kafka]", f"bootstrap_servers = {_text(answers.bootstrap_servers)}"]
    client = {
        "security.protocol": answers.security if answers.security != "PLAINTEXT" else "",
        "sasl.mechanism": answers.sasl_mechanism,
        "sasl.username": answers.sasl_username,
        "ssl.ca.location": answers.ca_file,
    }
    given = [f"{_text(name)} = {_text(value)}" for name, value in client.items() if value]
    if given:
        lines += ["", "# Passed on to librdkafka.", "[kafka.client]", *given]
    else:
        lines += [
            "",
            "# For brokers with TLS or SASL; any setting of librdkafka can stand here.",
            "# [kafka.client]",
            '# "security.protocol" = "SASL_SSL"',
            '# "sasl.mechanism" = "SCRAM-SHA-512"',
            '# "sasl.username" = "acktrail"',
            '# "ssl.ca.location" = "/etc/ssl/kafka-ca.pem"',
        ]
    if answers.password_file:
        lines += ["", "# Read when a source connects, never printed.", "[kafka.secret_files]"]
        lines += [f'"sasl.password" = {_text(answers.password_file)}']
    elif not given or answers.sasl_mechanism:
        lines += ["# [kafka.secret_files]", '# "sasl.password" = "/run/secrets/kafka-password"']
    return "\n".join(lines) + "\n"


def _logs(answers: Answers) -> str:
    head = (
        "# Logs of producers, consumers and brokers: retries, failed sends, elections, settings.\n"
        "# The zone is that of timestamps which carry no offset.\n"
    )
    if not answers.logs:
        return head + _commented(
            'kind = "log_files"', 'name = "logs"', 'paths = ["/var/log/orders/*.log"]',
            'zone = "UTC"',
        )  # fmt: skip
    return head + _source(
        'kind = "log_files"', 'name = "logs"', f"paths = {_list(answers.logs)}",
        f"zone = {_text(answers.zone)}",
    )  # fmt: skip


def _metrics(answers: Answers) -> str:
    head = "# Metrics of producers and brokers: rates, and the brokers behind them.\n"
    prometheus = ('kind = "prometheus"', 'name = "metrics"')
    scrape = ('kind = "scrape"', 'name = "jmx"')
    parts = []
    if answers.prometheus:
        parts.append(_source(*prometheus, f"url = {_text(answers.prometheus)}"))
    if answers.scrape:
        parts.append(_source(*scrape, f"targets = {_list(answers.scrape)}"))
    if answers.statistics:
        parts.append(_source(*_STATISTICS, f"paths = {_list(answers.statistics)}"))
    if not parts:
        parts.append(_commented(*prometheus, 'url = "http://prometheus:9090"'))
    return head + "\n".join(parts)


def _cluster_state(answers: Answers) -> str:
    head = "# What the brokers report: offsets, leaders, in-sync replicas, settings, groups.\n"
    lines = ('kind = "cluster_state"', 'name = "cluster"')
    return head + (_source(*lines) if answers.bootstrap_servers else _commented(*lines))


def _audits(answers: Answers) -> str:
    head = (
        "# Reads audited topics itself and reports which messages are really in the log.\n"
        "# How to audit the producers of these topics: docs/audit_your_application.md.\n"
    )
    lines = ('kind = "log_scan"', 'name = "scan"')
    if not answers.audited_topics:
        return head + _commented(*lines, 'topics = ["orders"]')
    return head + _source(*lines, f"topics = {_list(answers.audited_topics)}")


def _alerts(answers: Answers, policy: str) -> str:
    urls = f"alertmanager_urls = {_list(answers.alertmanager)}"
    if not answers.alertmanager:
        urls = '# alertmanager_urls = ["http://alertmanager:9093"]'
    return (
        "# Receivers of alerts. Without one, alerts stay in the outbox: `acktrail alerts list`.\n"
        f'[alerts]\n{urls}\n# webhook_url = "https://hooks.example/acktrail"\n'
        "# Slack, Teams and PagerDuty: docs/checks.md#alerts. Give their secrets as environment\n"
        "# variables: ACKTRAIL_ALERTS__SLACK_TOKEN, ..__TEAMS_URL, ..__PAGERDUTY_KEY.\n"
        "# Where you serve the pages of docs/runbooks: pages link to them.\n"
        '# runbooks_url = "https://wiki.example/acktrail/runbooks"\n'
        f"# Thresholds, owners, maintenance windows, and what is not collected.\n"
        f"policy = {_text(policy)}\n"
    )


def _report() -> str:
    return (
        "# Where the file of `acktrail report --html` is served: alerts then link to it.\n"
        '# [report]\n# url = "https://reports.example/acktrail.html"\n'
    )


def _optional(answers: Answers) -> str:
    shipped = _commented(
        'kind = "log_topic"', 'name = "fleet"', 'topics = ["logs"]',
        'shape = "filebeat"   # or "vector", "fluent_bit"', f"zone = {_text(answers.zone)}",
    )  # fmt: skip
    clients = _commented(
        'kind = "audit_topic"', 'name = "clients"', 'topics = ["acktrail-reports"]'
    )
    soak = _commented('kind = "verifiable"', 'name = "soak"', 'paths = ["/var/log/soak/*.jsonl"]')
    statistics = (
        ""
        if answers.statistics
        else _commented(*_STATISTICS, 'paths = ["/var/log/orders/statistics*.jsonl"]')
    )
    return (
        f"# Statistics that clients on librdkafka write to a file: docs/agents.md.\n{statistics}\n"
        f"# Reports of audited clients, see docs/audit_your_application.md.\n{clients}\n"
        f"# Log lines that a shipper sends to Kafka topics.\n{shipped}\n"
        f"# Output of VerifiableProducer and VerifiableConsumer.\n{soak}\n"
        "# Settings of producers that print none in their logs.\n"
        '# [inventory."batch-*"]\n# retries = 5\n# "delivery.timeout.ms" = 30000\n'
    )


def _source(*lines: str) -> str:
    return "[[sources]]\n" + "".join(f"{line}\n" for line in lines)


def _commented(*lines: str) -> str:
    return "".join(f"# {line}\n" for line in _source(*lines).splitlines())


def _text(value: str) -> str:
    """*value* as a TOML string."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _list(values: Sequence[str]) -> str:
    return f"[{', '.join(_text(value) for value in values)}]"
