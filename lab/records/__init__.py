"""Observation, verdict and run record: how they are judged, written, read back and compared."""
