"""The phases of a connection. They tell how far the newest request has been *read*:

    HEADERS -> BODY -> ANSWERING -> IDLE -> HEADERS ...     and from each of them to CLOSING

HEADERS      its head is arriving. A new connection begins here too: `begun` tells whether a byte has come
BODY         its head is complete and accepted, its body is arriving; the reader has it as `request`
ANSWERING    it has come whole, and is in the queue of answers
IDLE         everything that has come is answered
CLOSING      nothing more is read. Never left

What surprises: clients may send requests without waiting for answers, so an earlier request may be answered while a
later one is in HEADERS or BODY, and ANSWERING may go to HEADERS directly. After CLOSING, answers to requests that came
before are still written.
"""

from __future__ import annotations

IDLE, HEADERS, BODY, ANSWERING, CLOSING = "idle", "headers", "body", "answering", "closing"
