"""Orders are the params of requests; single requests that come at once share a call."""

import acts
from evals.utils import create_net_handler, net_inference_handler


@create_net_handler
def create_net(configs):
    acts.load()
    return {}, 0, ""


@net_inference_handler
def net_inference(model, reqs):
    results = acts.act_all([req["params"] for req in reqs])
    return [{"code": 0, "message": "", "result": result} for result in results], 0, ""
