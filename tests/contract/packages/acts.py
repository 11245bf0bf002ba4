"""What every package of the contract suite does; a copy of this file lies in each. CPython 3.8."""

import os
import time


def load():
    """A model that is loaded once a file is there, if the package names one."""
    name = os.path.join(os.path.dirname(__file__), "load_after.txt")
    if os.path.exists(name):
        with open(name) as file:
            wait_for(file.read())


def act(order):
    """Do what an order says, then answer with its number."""
    op = order.get("op", "echo")
    if op == "wait":
        print(f"order {order['id']} waits", flush=True)
        wait_for(order["gate"])
    elif op == "fail":
        raise ValueError("a secret of the script")
    elif op == "die":
        os._exit(7)
    elif op == "unsendable":
        return {"id": order["id"], "twice": object()}
    return {"id": order["id"], "twice": float("nan") if op == "nan" else 2 * order["id"]}


def act_all(orders):
    print(f"a call with {len(orders)}", flush=True)
    return [act(order) for order in orders]


def wait_for(gate):
    while gate and not os.path.exists(gate):
        time.sleep(0.005)
