"""Iceberg interop lab: what engine generations really do with each other's Apache Iceberg tables."""

__version__ = "0.1.0"
