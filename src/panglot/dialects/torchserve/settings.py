"""Settings that only packages of TorchServe have."""

from __future__ import annotations

from dataclasses import dataclass

from panglot import settings
from panglot.settings import setting


@dataclass(frozen=True)
class Settings(settings.Settings):
    """All settings of a package of TorchServe."""

    handler: str = setting(
        "", "the handler, as torch-model-archiver takes it: FILE[:FUNCTION], or a name such as image_classifier", "str"
    )
    serialized_file: str = setting("", "the file with the weights, from the package's folder", "str", metavar="FILE")
    model_file: str = setting("", "the script with the model's class, likewise", "str", metavar="FILE")
    service_envelope: str = setting(
        "", "the envelope around the handler: body, json, kserve or kservev2", "str",
        choices=("", "body", "json", "kserve", "kservev2"),
    )  # fmt: skip
    ts_config: str = setting("", "a config.properties of TorchServe", "str", metavar="FILE")
    management_port: int = setting(
        0, "a port for the management API; 0: it is on the server's own port", "int", least=0, most=65535
    )
