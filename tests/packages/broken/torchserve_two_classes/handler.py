from ts.torch_handler.base_handler import BaseHandler


class First(BaseHandler):
    pass


class Second(BaseHandler):
    pass
