package io.acktrail;

import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** The reporters of this process: one for each audit target, shared by all clients that have it. */
final class Reporters {
    private static final Map<List<Object>, Reporter> ALL = new HashMap<>();
    private static final Map<String, Long> PROBLEMS = new TreeMap<>();
    private static boolean hooked;

    private Reporters() {
    }

    static Reporter of(AuditSettings audit) {
        synchronized (ALL) {
            if (!hooked) {
                hooked = true;
                try {
                    Runtime.getRuntime().addShutdownHook(
                            new Thread(Reporters::processEnds, "acktrail-last-reports"));
                } catch (IllegalStateException ending) {
                    Client.log.debug("the process ends already", ending);
                }
            }
            List<Object> target = Arrays.asList(audit.topic, audit.access);
            return ALL.computeIfAbsent(target, t -> new Reporter(audit, ALL.size() + 1));
        }
    }

    /** Count a problem; true: it is the first of its kind. */
    static boolean problem(String kind) {
        synchronized (PROBLEMS) {
            return PROBLEMS.merge(kind, 1L, Long::sum) == 1;
        }
    }

    static Map<String, Long> problems() {
        synchronized (PROBLEMS) {
            return new TreeMap<>(PROBLEMS);
        }
    }

    private static void processEnds() {
        Reporter[] all;
        synchronized (ALL) {
            all = ALL.values().toArray(new Reporter[0]);
        }
        for (Reporter reporter : all) {
            reporter.processEnds();
        }
    }
}
