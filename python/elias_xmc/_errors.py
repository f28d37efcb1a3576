"""The exceptions of the package."""

from __future__ import annotations

__all__ = ["EliasError"]


class EliasError(Exception):
    """What went wrong, where, and the remedy if there is one.

    Where Python has a word for the cause, the exception is that one, too: `ValueError` for values and files that cannot
    be used, `TypeError` for values of the wrong kind, `FileNotFoundError` for paths that do not exist, `OSError` for what the operating system refuses.
    """


class EliasValueError(EliasError, ValueError):
    """A value, a setting or the content of a file that cannot be used."""


class EliasTypeError(EliasError, TypeError):
    """A value of a kind that cannot be used."""


class EliasFileNotFoundError(EliasError, FileNotFoundError):
    """A path that does not exist."""


class EliasOSError(EliasError, OSError):
    """Something the operating system refused."""
