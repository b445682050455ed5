"""What metric samples mean. Pure Python."""
