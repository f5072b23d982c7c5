"""Messages when a study ends, pauses, or has used 80 % of its budget: by webhook, mail, or apprise. Each is sent once."""

from lynceus.notify.courier import Courier, courier_of
from lynceus.notify.occasions import Occasion, occasions

__all__ = ["Courier", "Occasion", "courier_of", "occasions"]
