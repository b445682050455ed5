"""Jobs that write the silver tables."""
