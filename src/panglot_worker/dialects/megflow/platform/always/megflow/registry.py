"""The decorators that make a class known to graphs, and the list of what they made known."""

# State of this module, because the decorators of scripts have no object to register in.
_nodes = []
_resources = []


def register(name=None, inputs=[], outputs=[], exclusive=False):  # noqa: B006
    """Make a class a type of node. Ports are 'name', 'name:[]' or 'name:{}'; the type's name is the class's own."""

    def decorate(cls):
        _nodes.append({
            "name": name or cls.__name__,
            "code": cls,
            "inputs": list(inputs),
            "outputs": list(outputs),
            "exclusive": exclusive,
        })  # fmt: skip
        return cls

    return decorate


def res_register(name=None):
    """Make a class a type of resource."""

    def decorate(cls):
        _resources.append({"name": name or cls.__name__, "code": cls})
        return cls

    return decorate


def collect():
    """All that has been registered so far."""
    return {"nodes": list(_nodes), "resources": list(_resources)}
