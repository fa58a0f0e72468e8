"""Where services live: processes, ports, logs, clean-up. Knows nothing of Iceberg, but for `embedded`,
which puts a whole lab together."""
