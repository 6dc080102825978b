"""Lanes: the kinds of test that values can be put to, of which each has a column.

``price < 3300`` reads the number lane of ``price``, ``brand = 'x'`` the text lane of ``brand``. In
every lane a constraint is an interval of float64 and a value is a float64, so that one engine
serves all kinds:

    lane        a value in it                             NaN when
    number      the number (also one spelled by a text)   there is none
    time        microseconds since 1970                   there is none
    text        the text's code, -1 if nobody asks for it there is no text
    boolean     0 or 1                                    there is none
    lon, lat    the coordinates of a point                there is none
    present     0                                         the attribute is missing
    prefix n    the code of the text's first n letters    no text is that long
"""

from __future__ import annotations

NUMBER, TIME, TEXT, BOOLEAN, LON, LAT, PRESENT = range(7)
PREFIX = 7  # plus the number of letters
