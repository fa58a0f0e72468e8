"""pip's own settings, as pip itself reads them: configuration files and PIP_* variables."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Mapping


def read(env: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Option → value ("index-url" → "https://…"); lists are separated by white space, as pip has them.

    Where pip is absent (an environment made by another tool) the PIP_* variables count alone.
    """
    listing = subprocess.run(
        [sys.executable, "-P", "-m", "pip", "--no-input", "config", "list"],
        env={**env, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listing.returncode == 0:
        return parse(listing.stdout)
    return {
        name.removeprefix("PIP_").lower().replace("_", "-"): value
        for name, value in env.items()
        if name.startswith("PIP_") and value
    }


def parse(listing: str) -> dict[str, str]:
    """What `pip config list` prints, merged in the order in which pip lets one section win over another."""
    sections: dict[str, dict[str, str]] = {"global": {}, "install": {}, ":env:": {}}
    for line in listing.splitlines():
        key, _, value = line.partition("=")
        section, _, option = key.rpartition(".")
        if section in sections:
            sections[section][option] = str(ast.literal_eval(value))
    return {option: value for section in sections.values() for option, value in section.items()}
