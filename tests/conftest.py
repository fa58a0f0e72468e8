"""What the tests share."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "stack: starts the real store, catalog and gateway; fetches 150 MB once")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests marked `full` or `docker` take minutes: they run when `-m` asks for them."""
    for mark in ("full", "docker"):
        if mark not in (config.option.markexpr or ""):
            skip = pytest.mark.skip(reason=f"takes minutes; run it with: pytest tests/ -m {mark}")
            for item in filter(lambda item: item.get_closest_marker(mark), items):
                item.add_marker(skip)
