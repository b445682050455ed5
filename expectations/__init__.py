"""Great Expectations suites, their results, and alerts."""
