"""Errors that a user can act upon: one line each, and the line says what to do next."""


class LabError(Exception):
    """The lab can't go on; the message is shown as it is, without a stack trace."""


class UsageError(LabError):
    """The user's words are off (exit code 2)."""
