"""OAuth as a client of a catalog speaks it."""

from __future__ import annotations

import requests

from lab.catalogs import Upstream
from lab.errors import LabError

_SECONDS = 60


def token(of: Upstream) -> str:
    """A token for the credential. Raises LabError with the server's refusal, or RequestException."""
    client, _, secret = of.credential.partition(":")
    form = {"grant_type": "client_credentials", "client_id": client, "client_secret": secret}
    form |= {"scope": of.scope} if of.scope else {}
    with requests.Session() as http:
        # A proxy of the host's must not come between local processes; one elsewhere may be behind it.
        http.trust_env = not of.token_uri.startswith("http://127.0.0.1:")
        answer = http.post(of.token_uri, data=form, timeout=_SECONDS)
    if not answer.ok:
        raise LabError(f"{of.token_uri} gives no token: {answer.status_code} {' '.join(answer.text.split())[:200]}")
    return str(answer.json()["access_token"])
