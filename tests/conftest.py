"""What the tests share."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "stack: starts the real store, catalog and gateway; fetches 150 MB once")
