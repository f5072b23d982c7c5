"""Who uses the command line or a program: the owner of new studies, and the author of changes."""

from __future__ import annotations

import getpass
import os

from lynceus.errors import InputError
from lynceus.trial.shared_budget import check_payer_name

VARIABLE = "LYNCEUS_USER"


def current_user() -> str | None:
    """The variable LYNCEUS_USER, else the user of the operating system; None in a container that knows no users."""
    if given := os.environ.get(VARIABLE):
        try:
            check_payer_name(given, VARIABLE)
        except InputError as error:
            raise InputError(f"{error} It names who starts studies.") from None
        return given
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None
