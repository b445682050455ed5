"""Small simulated clusters, the evidence they leave, and a naive judge of it."""
