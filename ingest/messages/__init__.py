"""Files with one row per message, from any instrumentation, into `audit_reports`."""
