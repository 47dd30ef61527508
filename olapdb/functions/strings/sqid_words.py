"""The words that no Sqid contains: the list of the Sqids project, which ClickHouse uses too.

They are insults in several languages, so the source has them compressed. It is the project's
list, sorted and joined by spaces: https://github.com/sqids/sqids-blocklist (MIT license).
"""

from __future__ import annotations

import base64
import zlib
from functools import cache

_COMPRESSED = (
    "eNpVV2mC46wOvIqPAEeiHWKrI7vyvMxM5/RPq93fj1QVQgKxmpRtavsy1EcthyIUyTSp7uPYxrOWSyEVXzYW2/LVx1"
    "p7CA5BaSGxtFrPdztKCojgtHBY2voY2lwkTlCDZpiGas4GOBvgbICzgbVVg67IBirPfWjb1tzZhThv+zgrise+D1+l"
    "fBl0wdqOJjR2I/ISvgy0fldDPSResCsoNgl7tU0EpxDH7VFSQMRxlLUZQ5msEdJwskagacDSgKcBTwOeBjQNWBqwNL"
    "a21jZ1F30LtrZMnWk6dzdxenN48+XN6c3mPZbxJTDVWtbuAiEoLRQWTh9OH04fDh8Zr8AqE+G8Wxer1Z1VNtDugkNw"
    "WjgslD6UPpQ+5D61HgbFEIJ0GBRDMbSvraxGrTi5EWocm4JjlzkZ29TW4M3RCjqStrU6l2AY21kJkRZOC7uFI4Yt5v"
    "MphnVZmgldY2VKg3jNpRy1Bf+EoGQ3PBQQbkg3hBvCrfqcC/+xjmbdMILrVJzao33Kfmtcum/VI7xAVyEagNPZPUL2"
    "zdx0W40zRaeUnZJ1St4p/eqUfnVKvzul351SdEreKWWnZJ0i5go5V4i5Qs4VdK4Qc4WcK8RcIeaKdSex7SS2ncS6k9"
    "h2EttOgh4O5OFAHg7k4UAeDuThQB4O5OFAHg69DAT8cCAPB+xwIA8H8nAgDwfycCAPB/JwIA8H8nDILnzp1MsFOPhW"
    "PavdRz0UXPWtOGHwjWyb+OTLly9fdl92X93i5yK/9RgetcrFpwhBmapHZTOwGtqyDo9e5e57dDJ8v4cHWQhZCGkIWQ"
    "hZyM+rD33VvIxYqcsh6euz1K0bkzOiDCvvx/nWhkPABaWF1HLopSAot8CzPJqCzNSzyA6WJpz3moJUfNR+Hlpd5cYQ"
    "0Ml91kl0m4YnqZHcSGrEw0DLiHaR7SLbhbULb3cro6ySEYzIS2SlPSr3qN2jevd6eDW8Fl6JqItYRCwiFh57ytxPpc"
    "gP8jurLLUQKckn+hwmSB2kDl4Hr9vK5Pt22hBqlptuqU7k9JGTPMzn+qirEa0D2QOE7AFC9gAhe4BQPiwoHxaUDwvK"
    "h8V3/XyG7769hm8S9aqyTV7S52qkeb1ITHy9Zfh6y/D1luHrLbPItpd1Wuq0ylq7gItV701nUt6PYWmL7BvBNp/9T7"
    "kUVEFrZIdt8rGv5Xfhd02/Jf12InWSXMpegmHcDLshog5aR15JmThl4hSJUyROmvgpj5/qRMNap0m25doD5UwrdkMI"
    "btaCsbSwkrnDX4/vUt4CVRwEWZFNs+nlXdcSDGOKMlkZGryN6rqtCpvK8/n0b5VJ/4K867sqkMCmPdRNe6i2l41gRF"
    "4iK+2S6LvpHhJkRTbNptdee5XRpkIoumwUNr78+PLjy4/D72ivWVLqY9nqGoJcIC0Iy1p3xUf/LsFQJrGSDpR0oGQD"
    "JRso+UDJB0o+UPKBkg8UuhSwpYAtBWwpYEuBWArEUiCWArEU0KWALQV0KWBLgXspcC/Fpjf6e9NL+n3u+4/gUT9NyU"
    "EOtxIZdQXy6kMe5cP/zi7dbLopvmxxUvIl+bZyWOn2pduXbl8KX7mkqiEJvsUgx3u2T7ArpKLLRm7TV/qw4c4Ld164"
    "88KdF+68cOeFOy/cedlUypSHgAlKC6llr+cx7K0WSVuonQ8lWGmUqZv6Ioq9mr2avfqUO/f9HPYvOUM6LhPNCVZu/t"
    "kJId+dVCQKGQWPQkSN5a2vXmNZXL032qIdjnOve3IIutgFp+vfNs57XeWm+V2iu0T/qaO7bv0II3KA59D//Qz7LC+0"
    "fZZX2c46Z37FmJvfLi5xW3FZ9XMvL2/nFgxlhB1hh9v14TD4a2HYz9HmoF6KXNFlo7Dpx/+QeRsO2Yb6Gj7kyVHHmo"
    "JdUFrILeYJDdvkr6giGS5fmv0hN8mkD3cTbILSQmmBBcICEYGnbO7jbzuGP+35bKt9Di+JS/JtZbVOenMJ6b31R78y"
    "y3KokEfNX3nC7X0dZJlew1/ywr8ifzlkmZShrEf+H8IIN37KOOrgjNkZUYaW66cq0PAhVaQKEYOIQcTAYv4P77HloA"
    "=="
)


@cache
def blocked_words() -> frozenset[str]:
    """Return the words that no Sqid contains, in lower case."""
    return frozenset(zlib.decompress(base64.b64decode(_COMPRESSED)).decode().split())
