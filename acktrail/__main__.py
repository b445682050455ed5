"""`python -m acktrail` is the command itself."""

from acktrail.cli import main

main()
