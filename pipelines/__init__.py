"""Spark batch jobs: bronze to silver to gold."""
