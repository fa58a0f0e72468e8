"""Artefacts from package registries into a per-user cache: locked, verified, whole or not there.

Knows nothing of what artefacts are for.
"""

from lab.provision.cache import Cache, Usage
from lab.provision.errors import NotProvided
from lab.provision.lock import Lock, LockedFile
from lab.provision.progress import Lines, Progress, Silent, shown_on

__all__ = ["Cache", "Lines", "Lock", "LockedFile", "NotProvided", "Progress", "Silent", "Usage", "shown_on"]
