"""The agent: every source in a thread, rows and position in one commit, states, totals."""
