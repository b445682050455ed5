package io.acktrail;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A producer or a consumer under audit. */
abstract class Client {
    static final Logger log = LoggerFactory.getLogger("io.acktrail");
    private static final int STRIKES = 3;

    /** Why a client's last report is made. */
    enum Ending {
        NONE, CLOSED, PROCESS
    }

    final AuditSettings audit;
    /** The message's key: reports of one client stay in order. */
    private final String key;
    /** Parts and assignments are numbered within it. */
    final String reporterId = IdHeader.newReporter();
    final Map<String, String> settings;
    final Reporter reporter;
    /** Whether anything is noted. */
    volatile boolean on = true;
    volatile String clusterId;
    private volatile String whyOff;
    private final AtomicInteger strikes = new AtomicInteger();

    Client(AuditSettings audit, String key, Map<String, String> settings) {
        this.audit = audit;
        this.key = key;
        this.settings = settings;
        this.reporter = Reporters.of(audit);
    }

    String key() {
        return key;
    }

    /** Heartbeats for every topic, and the rows of what came since the last report. */
    abstract void take(long nowMs, Ending ending, List<Row> beats, List<Row> rows);

    /** Evidence was thrown away for want of memory: the next heartbeats say so. */
    abstract void dropped(Row row);

    /** Bytes that wait for the next report. */
    abstract int waiting();

    /** Whether there is anything whose end is not known. */
    abstract boolean hasOpen();

    /** Nothing is noted from here on: count what will be missing. */
    abstract void abandon();

    /** A fault of ours. The third one switches the audit of this client off. */
    void strike(Throwable error) {
        try {
            Reporters.problem("a fault in the audit of a client");
            if (strikes.incrementAndGet() == STRIKES) {
                switchOff(error);
            } else {
                log.debug("A fault in the audit", error);
            }
        } catch (Throwable again) {
            on = false;
        }
    }

    /** Nothing is noted any more, and the last heartbeat says so. */
    void switchOff(Throwable error) {
        if (!on) {
            return;
        }
        on = false;
        whyOff = String.valueOf(error);
        log.error("The audit of {} is off; the application goes on. Reason: {}",
                settings.getOrDefault("client_id", "a client"), whyOff, error);
        abandon();
        reporter.wake();
    }

    Map<String, String> described() {
        if (whyOff == null) {
            return settings;
        }
        Map<String, String> more = new LinkedHashMap<>(settings);
        more.put("audit_off", whyOff.substring(0, Math.min(200, whyOff.length())));
        return more;
    }
}
