"""HTTP/1.1: connections, the requests on them and their answers."""
