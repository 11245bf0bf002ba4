"""One node that does to an envelope what its bytes say."""

import os
import signal
import sys
import time

import numpy as np

from megflow import Envelope, register


def answer(text):
    return {"data": np.frombuffer(text.encode(), np.uint8)}


@register(inputs=["inp"], outputs=["out", "aside"])
class Does:
    instances = 0

    def __init__(self, name, args):
        Does.instances += 1
        self.number = Does.instances
        self.kept = []
        self.lone = None

    def exec(self):
        envelope = self.inp.recv()
        if envelope is None:
            return
        word, _, rest = bytes(envelope.msg["data"]).decode().partition(" ")
        getattr(self, "do_" + word)(envelope, rest)

    def do_echo(self, envelope, rest):
        self.out.send(envelope.repack(answer(rest)))

    def do_instance(self, envelope, rest):
        self.out.send(envelope.repack(answer(str(self.number))))

    def do_raise(self, envelope, rest):
        raise ValueError("as asked: " + rest)

    def do_exit(self, envelope, rest):
        sys.exit(3)

    def do_drop(self, envelope, rest):
        return

    def do_twice(self, envelope, rest):
        second = envelope.repack(answer("second"))
        self.out.send(envelope.repack(answer("first")))
        self.out.send(second)

    def do_wrong_port(self, envelope, rest):
        self.aside.send(envelope)

    def do_moved(self, envelope, rest):
        self.out.send(envelope)
        envelope.msg["data"] = None

    def do_sent_again(self, envelope, rest):
        envelope.msg = answer("once")
        self.out.send(envelope)
        self.out.send(envelope)

    def do_fresh(self, envelope, rest):
        self.out.send(Envelope.pack(answer("fresh")))

    def do_numbered(self, envelope, rest):
        number = envelope.partial_id
        del envelope
        self.out.send(Envelope.pack(answer("numbered"), info={"partial_id": number}))

    def do_later(self, envelope, rest):
        """Answered by number when the next envelope comes; that one is answered too."""
        self.kept.append(envelope.partial_id)

    def do_release(self, envelope, rest):
        for number in self.kept:
            self.out.send(Envelope.pack(answer("released"), info={"partial_id": number}))
        self.kept = []
        self.out.send(envelope.repack(answer("done")))

    def do_keep(self, envelope, rest):
        self.kept.append(envelope)

    def do_sleep(self, envelope, rest):
        time.sleep(float(rest))
        self.out.send(envelope.repack(answer("slept")))

    def do_text(self, envelope, rest):
        self.out.send(envelope.repack("no array"))

    def do_empty(self, envelope, rest):
        self.out.send(envelope.repack(None))

    def do_not_envelope(self, envelope, rest):
        self.out.send({"data": 1})

    def do_kill(self, envelope, rest):
        """Kills its process, the first time only when a file is named."""
        if rest and os.path.exists(rest):
            self.out.send(envelope.repack(answer("survived")))
            return
        if rest:
            open(rest, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
