"""Retries of producers: chains, budgets, how they end, and the fleet."""
