"""Says how long a body is, and what came with it."""

from evals.utils import CTX, create_net_handler, net_inference_handler


@create_net_handler
def create_net(configs):
    return {"batch_size": configs["batch_size"]}, 0, ""


@net_inference_handler
def net_inference(model, reqs):
    CTX.logger.info("a call of %d", len(reqs), extra={"reqid": CTX.reqID})
    return [{"code": 0, "message": "", "result": {"length": len(req["data"]["body"])}} for req in reqs], 0, ""
