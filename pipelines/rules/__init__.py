"""Verdicts, causes and budgets as numbered pure rules: no Spark."""
