"""Files that grow, are rotated, compressed, truncated and deleted: followed byte by byte."""
