"""What a log text means: records, layouts, patterns per client, redaction. Pure Python."""
