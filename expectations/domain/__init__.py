"""Domain expectations: one class per promise, named as a person would say it."""
