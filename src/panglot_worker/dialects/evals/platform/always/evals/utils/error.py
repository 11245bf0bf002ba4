"""Errors scripts raise and turn into codes. Their texts reach clients."""


class ErrorBase(Exception):
    def __init__(self, code=599, msg="Unknown Error"):
        super().__init__(code, msg)
        self.code = code
        self.message = msg

    def __str__(self):
        return str(self.message)


class ErrorConfig(ErrorBase):
    def __init__(self, value):
        super().__init__(400, "no %s config set" % (value,))


class ErrorFileNotExist(ErrorBase):
    def __init__(self, name):
        super().__init__(400, "file not exist: %s" % (name,))


class ErrorCV2ImageRead(ErrorBase):
    def __init__(self, image):
        super().__init__(400, "cv2 load %s failed" % (image,))


class ErrorImageTooSmall(ErrorBase):
    def __init__(self, image):
        super().__init__(400, "image %s is too small, should be more than 32x32" % (image,))


class ErrorImageNdim(ErrorBase):
    def __init__(self, image):
        super().__init__(400, "image %s should have three dimensions" % (image,))


class ErrorImageTooLarge(ErrorBase):
    def __init__(self, image):
        super().__init__(400, "image %s is too large, should be in 4999x4999, less than 10MB" % (image,))


class ErrorInvalidPTS(ErrorBase):
    def __init__(self, pts):
        super().__init__(400, "invalid pts %s" % (pts,))


class ErrorOutOfBatchSize(ErrorBase):
    def __init__(self, batch_size):
        super().__init__(400, "eval request out of batch_size %s" % (batch_size,))


class ErrorTransformImage(ErrorBase):
    def __init__(self, image):
        super().__init__(400, "transform %s failed" % (image,))


class ErrorNoPTS(ErrorBase):
    def __init__(self, image):
        super().__init__(400, "no pts for %s" % (image,))


class ErrorForwardInference(ErrorBase):
    def __init__(self):
        super().__init__(500, "forward inference failed")
