"""What the tests share."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "docker: builds and runs containers; skipped where no Docker engine answers")
    config.addinivalue_line("markers", "stack: starts the real store, catalog and gateway; fetches 150 MB once")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests marked `full` take minutes: they run when `-m full` asks for them."""
    if "full" in (config.option.markexpr or ""):
        return
    skip = pytest.mark.skip(reason="takes minutes; run it with: pytest tests/ -m full")
    for item in items:
        if item.get_closest_marker("full"):
            item.add_marker(skip)
