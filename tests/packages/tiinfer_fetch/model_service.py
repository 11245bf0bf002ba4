"""Connects to wherever a request says, in every way there is."""

import base64
import http.client
import socket
import threading
import urllib
import urllib.request

import tiinfer


class Fetch(tiinfer.Model):
    def __init__(self, model_dir):
        super().__init__(model_dir)
        self.at_load = "nothing"

    def load(self):
        try:
            with open("at_load") as file:
                host, port = file.read().split()
        except OSError:
            return True
        self.at_load = self._connect({"host": host, "port": int(port)})
        return True

    def predict(self, request):
        how = getattr(self, "_" + request["op"])
        try:
            return {"answer": how(request)}
        except OSError as error:
            return {"failed": type(error).__name__, "text": str(error)}

    def _urlopen(self, request):
        with urllib.request.urlopen(request["url"]) as response:
            return base64.b64encode(response.read()).decode()

    def _http(self, request):
        connection = http.client.HTTPConnection(request["host"], request["port"])
        connection.request("GET", "/")
        return connection.getresponse().status

    def _connect(self, request):
        with socket.socket() as sock:
            sock.connect((request["host"], request["port"]))
            return sock.gettimeout()

    def _connect_ex(self, request):
        with socket.socket() as sock:
            return sock.connect_ex((request["host"], request["port"]))

    def _sendto(self, request):
        with socket.socket(type=socket.SOCK_DGRAM) as sock:
            return sock.sendto(b"x", (request["host"], request["port"]))

    def _sendmsg(self, request):
        with socket.socket(type=socket.SOCK_DGRAM) as sock:
            return sock.sendmsg([b"x"], [], 0, (request["host"], request["port"]))

    def _six(self, request):
        with socket.socket(socket.AF_INET6) as sock:
            sock.connect((request["host"], request["port"]))
            return "connected"

    def _unix(self, request):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(request["path"])
            return "connected"

    def _thread(self, request):
        """What a thread started by a request connects to once that request is answered."""
        self.ask = threading.Event()
        self.heard = threading.Event()
        self.result = None

        def later():
            self.ask.wait(10)
            try:
                self.result = self._connect(request)
            except OSError as error:
                self.result = type(error).__name__
            self.heard.set()

        threading.Thread(target=later, daemon=True).start()
        threading.Timer(request["after"], self.ask.set).start()
        return "started"

    def _heard(self, request):
        self.heard.wait(10)
        return self.result

    def _at_load(self, request):
        return self.at_load
