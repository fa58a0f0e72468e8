"""Identical tables and their truth, and the lab's own plain look at what was written. Knows no engine."""
