"""Keeps the passwords of databases out of messages."""

import re


def hide_password(storage: object) -> str:
    """The URL or the file of a storage for messages, without the password that a URL may have."""
    return re.sub(r"(://[^:/@]*):[^@/]*@", r"\1:***@", str(storage))
