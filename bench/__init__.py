"""The same work done by acktrail and by its peers, in one run, as ratios."""
