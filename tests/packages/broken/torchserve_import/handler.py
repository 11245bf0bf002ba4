import no_such_library_of_ours
from ts.torch_handler.base_handler import BaseHandler


class Handler(BaseHandler):
    library = no_such_library_of_ours
