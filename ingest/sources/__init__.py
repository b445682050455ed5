"""One module per source of evidence."""
