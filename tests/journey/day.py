"""The whole journey: everything started, healthy, one fault after the other, and the sums."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from acktrail.contracts.gold import DELIVERY_LEDGER
from lab.processes import now_ms
from lab.scratch import free_ports
from lab.warning import alertmanager
from tests.integration.servers import PrometheusServer
from tests.journey.applications import Applications
from tests.journey.operation import CLUSTER, Operation, Pace
from tests.journey.pages import Page, Pager
from tests.journey.strain import Strain
from tests.journey.truth import Truth, first_failure_ms, truth_of

STOCK_RULES = Path(__file__).parents[1].joinpath("soak", "kafka_brokers.yml").read_text()
SCRAPE_S = 15
WAITS_S, COMPUTES_S = 45, 15
"""Of the minute from evidence to page: what is spent waiting for clocks, and what computing. A
machine that others use too makes only the second longer."""


@dataclass(frozen=True)
class Fault:
    """Something that happens, and the pages that it must make."""

    name: str
    happens: Callable[[Applications], None]
    owners: frozenset[str]
    """Who must get exactly one page."""
    spared: frozenset[str] = frozenset()
    """Who must get none."""
    topics: dict[str, frozenset[str]] = field(default_factory=dict)
    """By owner: the topics that the page must name."""
    broker: str = ""
    """The broker that it must name."""
    remedy: str = ""
    """Words that say what to do."""
    proven: Callable[[Journey, int], dict[str, int]] = lambda _journey, _began: {}
    """By owner: when the evidence that proves it could be read at its source, in ms."""


@dataclass
class Seen:
    """What one fault came to."""

    fault: Fault
    began_ms: int
    before: set[str]
    """Pages that were active when it began, by fingerprint."""
    pages: list[Page] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@dataclass
class Journey:
    """What runs, and what was seen so far."""

    applications: Applications
    operation: Operation
    pager: Pager
    strain: Strain
    home: Path
    seen: list[Seen] = field(default_factory=list)

    def stay_healthy(self, seconds: float) -> list[Page]:
        """Every alert and ticket of *seconds* in which nothing is wrong."""
        began = now_ms()
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            assert self.operation.running(), self.operation.said("watch")[-3000:]
            time.sleep(1)
        return [*self.pager.since(began), *self.pager.since(began, "ticket")]

    def break_down(self, fault: Fault, told_within: float) -> Seen:
        """Let *fault* happen, and wait for the pages that it must make."""
        began, before = now_ms(), {p.fingerprint for p in self.pager.active()}
        self._note(f"{fault.name} begins")
        fault.happens(self.applications)
        self._note(f"{fault.name} is cured")
        self.applications.wait_in_sync()
        self.applications.wait_for_acks(10)
        seen = Seen(fault, began, before)
        seen.problems += self._wait_for(seen, told_within)
        seen.problems += self._late(seen)
        for page in self.pages_of(seen):
            self._note(f"{fault.name}: {told(page, began)}")
        seen.pages = self.pages_of(seen)
        return seen

    def pages_of(self, seen: Seen) -> list[Page]:
        """The pages since its fault began, but for those that went on from before."""
        return [p for p in self.pager.since(seen.began_ms) if p.fingerprint not in seen.before]

    def meet(self, fault: Fault, over_within: float, quiet_s: float) -> None:
        """As *break_down*; then acknowledge what was lost, and wait until all is over."""
        seen = self.break_down(fault, over_within)
        seen.problems += self._wait_until_over(over_within, quiet_s)
        seen.pages = self.pages_of(seen)
        self.seen.append(seen)
        for page in seen.pages:
            self._note(f"{fault.name}, in the end: {told(page, seen.began_ms)}")
        self._note(f"{fault.name}: {complaints([seen]) or 'as it must be'}")

    def _late(self, seen: Seen) -> Iterator[str]:
        """Pages that came more than a minute after their evidence could be read."""
        fault = seen.fault
        for owner, proven in fault.proven(self, seen.began_ms).items():
            own = [p.first_ms for p in self.pages_of(seen) if p.owner == owner]
            first = min(own, default=None)
            if first is None:
                continue
            late, strain = (first - proven) / 1000, self.strain.between(proven, first)
            self._note(
                f"{fault.name}: {owner} was paged {late:.0f} s after the evidence, on a machine "
                f"{strain:.1f} times as slow as one that does nothing else"
            )
            if late > WAITS_S + COMPUTES_S * strain:
                yield f"{owner} was paged {late:.0f} s after the evidence"

    def truth(self) -> Truth:
        """End the applications; what they know, beside the log."""
        self.applications.stop()
        return truth_of(self.applications)

    def accounts(self, truth: Truth, within: float) -> dict[str, dict[str, int]]:
        """What the ledger says of all that *truth* sums up, once it says the same or time is up."""
        deadline = time.monotonic() + within
        while (found := self._accounts()) != truth.summary() and time.monotonic() < deadline:
            time.sleep(3)
        return found

    def _accounts(self) -> dict[str, dict[str, int]]:
        if not self.operation.lake.exists(DELIVERY_LEDGER):
            return {}
        found: dict[str, dict[str, int]] = {}
        for row in self.operation.lake.read(DELIVERY_LEDGER).to_pylist():
            if row["group"]:
                sums = found.setdefault(row["group"], {"skipped": 0})
                sums["skipped"] += row["skipped_by_consumer"]
                continue
            names = ("acked", "lost_after_ack", "told_and_lost")
            sums = found.setdefault(str(row["client_id"]), dict.fromkeys(names, 0))
            sums["acked"] += row["acked"]
            sums["lost_after_ack"] += row["lost_after_ack"]
            sums["told_and_lost"] += row["rejected"] + row["lost_indeterminate"]
            for name in ("pending", "unaccounted", "inconclusive", "residual"):
                if row[name]:
                    sums[name] = sums.get(name, 0) + row[name]
        return found

    def _wait_for(self, seen: Seen, within: float) -> Iterator[str]:
        deadline = time.monotonic() + within
        while not seen.fault.owners <= {p.owner for p in self.pages_of(seen)}:
            if time.monotonic() > deadline:
                yield f"only {[(p.owner, p.fault) for p in self.pages_of(seen)]} were paged"
                return
            time.sleep(1)

    def _wait_until_over(self, within: float, quiet_s: float) -> list[str]:
        """Acknowledge losses as they are told; until no page was active for *quiet_s*."""
        deadline = time.monotonic() + within
        quiet = time.monotonic()
        while time.monotonic() - quiet < quiet_s:
            active = self.pager.active()
            if active:
                quiet = time.monotonic()
                self.operation.acknowledge_losses()
            if time.monotonic() > deadline:
                return [f"not over: {[p.texts[-1].get('summary') for p in active]}"]
            time.sleep(2)
        return []

    def _note(self, text: str) -> None:
        line = f"{time.strftime('%H:%M:%S', time.gmtime())} {text}"
        print(line, flush=True)
        with (self.home / "journal.txt").open("a") as out:
            out.write(line + "\n")


def refused(day: Journey, began_ms: int) -> dict[str, int]:
    """When a request had been refused, which the client without retries is told at once."""
    first = first_failure_ms(day.applications.home, "payments-api", began_ms)
    assert first is not None
    return {"shop": first, "web": first + SCRAPE_S * 1000}


def told(page: Page, since_ms: int) -> str:
    """A page in a few lines, for the journal."""
    head = (
        f"{page.severity} to {page.owner} about {page.fault} after "
        f"{(page.first_ms - since_ms) / 1000:.0f} s, {len(page.texts)} texts, startsAt "
        f"{page.starts_at}"
    )
    texts = [json.dumps(text, indent=1) for text in (page.texts[0], page.texts[-1])]
    return "\n".join([head, *dict.fromkeys(texts)])


@contextmanager
def journey(applications: Applications, pace: Pace) -> Iterator[Journey]:
    """Everything up: *applications*, Prometheus, Alertmanager, and acktrail."""
    home = applications.home.parent
    with ExitStack() as up:
        applications.home.mkdir(parents=True)
        up.callback(applications.stop)
        applications.start()
        directory = home / "prometheus"
        directory.mkdir()
        (port,) = free_ports(1)
        prometheus = PrometheusServer(directory, port, config=_scraped(applications))
        up.callback(prometheus.stop)
        prometheus.start()
        url = up.enter_context(alertmanager(home))
        strain = up.enter_context(Strain())
        pager = up.enter_context(Pager(url))
        operation = Operation(home, applications, prometheus.url, url, pace)
        up.enter_context(operation)
        yield Journey(applications, operation, pager, strain, home)


def _scraped(applications: Applications) -> str:
    """What Prometheus scrapes: the brokers and the Java clients, as people name them."""
    brokers = {b.host: b.exporter_port for b in applications.nodes.brokers.values()}
    clients = {c.host: c.exporter_port for c in applications.clients.values() if c.exporter_port}
    lines = [f"global: {{scrape_interval: {SCRAPE_S}s}}", "scrape_configs:"]
    for job, targets in (("kafka", brokers), ("clients", clients)):
        lines.append(f"- job_name: {job}\n  static_configs:")
        lines += [
            f"  - targets: ['127.0.0.1:{port}']\n    labels: {{host: {host}}}"
            for host, port in targets.items()
        ]
    return "\n".join(lines) + "\n"


def complaints(seen: Sequence[Seen]) -> list[str]:
    """Everything about the pages of these faults that is not as it must be."""
    found: list[str] = []
    for one in seen:
        fault, pages = one.fault, one.pages
        name = fault.name
        found += [f"{name}: {problem}" for problem in one.problems]
        for owner in sorted({p.owner for p in pages} | fault.owners):
            mine = [p for p in pages if p.owner == owner]
            if owner in fault.spared and mine:
                found.append(f"{name}: {owner} was paged: {mine[0].texts[-1].get('summary')}")
            if len(mine) > 1:
                found.append(f"{name}: {owner} got {len(mine)} pages: {[p.fault for p in mine]}")
            if any(p.times > 1 for p in mine):
                found.append(f"{name}: a page of {owner} came back after it was over")
            if owner not in fault.owners or not mine:
                continue
            missing = fault.topics.get(owner, frozenset()) - set(
                mine[0].said("topics").replace(",", " ").split()
            )
            if missing:
                found.append(f"{name}: the page of {owner} does not name {sorted(missing)}")
            named = mine[0].said("brokers").replace(",", " ").split()
            if fault.broker and fault.broker not in named:
                found.append(
                    f"{name}: the page of {owner} names {mine[0].said('brokers')!r}, "
                    f"not broker {fault.broker}"
                )
            if fault.remedy and fault.remedy not in mine[0].said("what_to_do"):
                found.append(
                    f"{name}: the page of {owner} says {mine[0].said('what_to_do')!r}, "
                    f"not {fault.remedy!r}"
                )
            found += [f"{name}: {text}" for text in _texts(mine[0], one.began_ms)]
    return found


def _texts(page: Page, began_ms: int) -> Iterator[str]:
    for text in page.texts:
        if not text.get("summary") or not text.get("runbook_url"):
            yield f"a text of {page.owner} lacks summary or runbook_url"
        if len(text.get("keys", "").splitlines()) > 3:
            yield f"a text of {page.owner} lists more than three keys"
    if page.cluster != CLUSTER:
        yield f"the page of {page.owner} has the cluster {page.cluster!r}"
    if not began_ms <= page.began_ms <= page.first_ms:
        yield f"the page of {page.owner} began at {page.starts_at}, not with the fault"
