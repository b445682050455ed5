"""What became of every message: the wire format, sets of ids, verdicts, causes, incidents."""
