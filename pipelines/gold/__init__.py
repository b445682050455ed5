"""Jobs that write the gold tables."""
