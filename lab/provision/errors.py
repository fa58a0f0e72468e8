"""What provisioning can't do, and the line that cures it."""

from __future__ import annotations

from lab.errors import LabError


class NotProvided(LabError):
    """Something can't be had on this machine or in this mode; the message ends with its cure.

    Cells that need it are not-run with this message; nothing else is affected.
    """
