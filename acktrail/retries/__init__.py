"""Retry budgets: what state a chain of retries is in."""
