"""The hours of a day in which a person may be written to unasked."""

import re
from datetime import datetime, timedelta, tzinfo
from typing import NamedTuple


class WakingHours(NamedTuple):
    """The hours in which a person may be written to unasked: from `first` until `last`."""

    first: int = 9
    last: int = 20

    @classmethod
    def parse(cls, value: object) -> "WakingHours":
        """Read ``9-20``. Raises ValueError for what is no part of a day."""
        written = re.fullmatch(r"(\d{1,2})-(\d{1,2})", str(value).strip(), re.ASCII)
        hours = cls(*map(int, written.groups())) if written else cls(0, 0)
        if not 0 <= hours.first < hours.last <= 24:
            raise ValueError("write two hours of one day, such as 9-20")
        return hours

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"

    def next(self, moment: datetime, zone: tzinfo) -> datetime:
        """Return the moment if it is within these hours in the zone; else when they begin next."""
        here = moment.astimezone(zone)
        if self.first <= here.hour < self.last:
            return moment
        morning = here.replace(hour=self.first, minute=0, second=0, microsecond=0, fold=0)
        morning += timedelta(days=here.hour >= self.last)
        return morning.astimezone(moment.tzinfo)
