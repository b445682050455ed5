"""Pages that people look at, and metrics that monitors scrape: on answers, no engine."""
