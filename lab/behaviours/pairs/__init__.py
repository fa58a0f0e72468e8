"""The pair matrix: what one engine writes and another reads, feature by feature of Iceberg v2 and v3.

A feature is a module here: who makes it and how, the truth as data, and up to six filters that pruning can get wrong.
Each `Feature` is a behaviour like any other, whose cells are pairs of a writer and a reader; `iceberg-lab pairs` runs
them, and what the suite runs every day of them is in its `pairs`.
"""
