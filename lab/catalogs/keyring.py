"""The secrets by which engines sign on to a lab's catalog: all of them follow from one random secret of that lab.

Both sides hold it, the gateway and whoever runs engines, so that nothing needs to be told when a principal or a
profile is added; and what one lab signed or gave out is worthless in another.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import secrets
import time
from dataclasses import dataclass, field

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

ISSUER, EXTERNAL = "iceberg-lab", "https://issuer.example"  # of the lab's own tokens, and of somebody else's
_KEY_PAIR_SECONDS = 60


@dataclass(frozen=True)
class Caller:
    """Who asks: a principal, the role that is active, and what was shown for it."""

    principal: str
    role: str
    by: str


@dataclass(frozen=True)
class Keyring:
    """`secret` is the lab's. Names of principals, profiles and roles are the profiles' own."""

    secret: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    def client_secret(self, principal: str) -> str:
        """What OAuth calls so; the principal's name is the client's id."""
        return self._derived("client", principal).hex()

    def pat(self, principal: str) -> str:
        """A long-lived secret that is a bearer token as it is, or is exchanged for one."""
        return f"{principal}.{self._derived('pat', principal).hex()}"

    def aws(self, principal: str) -> tuple[str, str]:
        """Access key and secret key, for requests that are signed by SigV4."""
        return f"LAB{principal.encode().hex().upper()}", self._derived("aws", principal).hex()

    def token(self, profile: str, caller: Caller, seconds: float) -> str:
        """A bearer token of the lab's own token endpoint."""
        return self._encoded(ISSUER, caller.principal, profile, seconds, self._derived("token"), "HS256", caller.role)

    def external(self, profile: str, caller: Caller, seconds: float) -> str:
        """A bearer token of an issuer that the profile's vendor was told to trust."""
        key = self._pair("external")
        return self._encoded(EXTERNAL, caller.principal, profile, seconds, key, "EdDSA", caller.role)

    def key_pair_token(self, profile: str, principal: str) -> str:
        """What a principal signs with its private key, to exchange it for a token."""
        key = self._pair("key-pair", principal)
        return self._encoded(principal, principal, profile, _KEY_PAIR_SECONDS, key, "EdDSA")

    # ------------------------------------------------------------ the gateway's side
    def principal_of(self, profile: str, client: str, secret: str) -> str | None:
        """Whose client secret, PAT or signed key-pair token this is."""
        if client and _same(secret, self.client_secret(client)):
            return client
        return self.pat_of(secret) or self._key_pair_of(profile, secret)

    def pat_of(self, shown: str) -> str | None:
        principal, dot, _ = shown.rpartition(".")
        return principal if dot and _same(shown, self.pat(principal)) else None

    def caller_of(self, profile: str, shown: str) -> Caller:
        """Who a bearer token is for. Raises jwt.InvalidTokenError, and of it jwt.ExpiredSignatureError."""
        external = jwt.get_unverified_header(shown).get("alg") == "EdDSA"  # each of the two has its own key
        key = self._pair("external").public_key() if external else self._derived("token")
        claims = jwt.decode(
            shown,
            key,
            algorithms=["EdDSA" if external else "HS256"],
            audience=profile,
            issuer=EXTERNAL if external else ISSUER,
            options={"require": ["exp", "sub", "role"]},
        )
        return Caller(claims["sub"], claims["role"], "external" if external else "token")

    def _key_pair_of(self, profile: str, shown: str) -> str | None:
        try:
            principal = str(jwt.decode(shown, options={"verify_signature": False})["iss"])
            key = self._pair("key-pair", principal).public_key()
            jwt.decode(shown, key, algorithms=["EdDSA"], audience=profile, issuer=principal)
        except (jwt.InvalidTokenError, KeyError):
            return None
        return principal

    def _encoded(
        self,
        issuer: str,
        subject: str,
        audience: str,
        seconds: float,
        key: bytes | Ed25519PrivateKey,
        algorithm: str,
        role: str = "",
    ) -> str:
        now = math.floor(time.time())  # whole seconds: Iceberg's Java client reads no other `exp`
        claims = {
            "iss": issuer,
            "sub": subject,
            "aud": audience,
            "iat": now,
            "exp": math.ceil(time.time() + seconds),
            "role": role,
        }
        return jwt.encode(claims | {"jti": secrets.token_hex(8)}, key, algorithm)

    def _pair(self, *names: str) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(self._derived("pair", *names))

    def _derived(self, *names: str) -> bytes:
        return hmac.digest(self.secret.encode(), "\0".join(names).encode(), hashlib.sha256)


def _same(shown: str, known: str) -> bool:
    return hmac.compare_digest(shown.encode(), known.encode())
