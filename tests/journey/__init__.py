"""A user's day with acktrail: applications, its processes, faults, and what is compared."""
