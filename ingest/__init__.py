"""Agents: source to bronze. No Spark here."""
