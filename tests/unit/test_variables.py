"""Variables called PANGLOT_...: which are settings, which are of Kubernetes, which are nobody's."""

from __future__ import annotations

import pytest

from panglot.errors import StartError
from panglot.settings import Settings, table_of, variable
from panglot.settings.resolving import resolve
from panglot.settings.variables import is_of_kubernetes, unknown

FIELDS = table_of(Settings)


def injected(service: str, address: str, port: int, name: str = "", protocol: str = "TCP") -> dict[str, str]:
    """What Kubernetes writes for a Service with one port."""
    prefix = service.upper().replace("-", "_")
    url = f"{protocol.lower()}://{f'[{address}]' if ':' in address else address}:{port}"
    one = f"{prefix}_PORT_{port}_{protocol}"
    found = {f"{prefix}_SERVICE_HOST": address, f"{prefix}_SERVICE_PORT": str(port), f"{prefix}_PORT": url}
    found |= {one: url, f"{one}_PROTO": protocol.lower(), f"{one}_PORT": str(port), f"{one}_ADDR": address}
    return found | ({f"{prefix}_SERVICE_PORT_{name.upper().replace('-', '_')}": str(port)} if name else {})


SERVICES = [
    injected("panglot", "10.0.0.1", 80, "http"),
    injected("panglot", "fd00:10:96::1", 8080, "grpc-web"),
    injected("panglot-workers", "10.96.0.12", 443, "https"),
    injected("panglot-max-batch", "10.0.0.1", 53, "dns", "UDP"),
    injected("panglot-service", "10.0.0.1", 9, "", "SCTP"),
    *[injected(f"panglot-{name.replace('_', '-')}", "172.20.0.1", 80, "http") for name in FIELDS],
]


@pytest.mark.parametrize("service", SERVICES, ids=[next(iter(service)) for service in SERVICES])
def test_a_service_of_any_name_changes_nothing(service: dict[str, str]) -> None:
    found = resolve({}, {**service, "PANGLOT_WORKERS": "3"})
    assert found.settings == resolve({}, {"PANGLOT_WORKERS": "3"}).settings
    assert found.warnings == ()


BY_HAND = {
    "PANGLOT_PORT": [
        "tcp:nonsense", "tcp://", "tcp://10.0.0.1", "tcp://10.0.0.1:0", "tcp://10.0.0.1:65536", "tcp://panglot:80", "",
        "http://10.0.0.1:80", "tcp://10.0.0.1:80/", "tcp://[]:80", "tcp://[10.0.0.1:80", " tcp://10.0.0.1:80",
        "TCP://10.0.0.1:80", "tcp://10.0.0.1:٨٠",
    ],
    "PANGLOT_WORKERS": ["tcp://10.0.0.1:80", "10.0.0.1"],
    "PANGLOT_MAX_BATCH": ["tcp"],
}  # fmt: skip


@pytest.mark.parametrize(("key", "text"), [(key, text) for key, texts in BY_HAND.items() for text in texts])
def test_what_a_hand_wrote_is_still_an_error(key: str, text: str) -> None:
    with pytest.raises(StartError, match=key):
        resolve({}, {key: text})


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("PANGLOT_SERVICE_HOST", "panglot.local"),
        ("PANGLOT_SERVICE_PORT", "http"),
        ("PANGLOT_PORT_80_TCP", "80"),
        ("PANGLOT_PORT_80_TCP_PROTO", "quic"),
        ("PANGLOT_PORT_X_TCP_PORT", "80"),
    ],
)
def test_a_name_alone_does_not_make_it_one_of_kubernetes(key: str, text: str) -> None:
    assert not is_of_kubernetes(key, text)
    assert len(unknown({key: text}, FIELDS, {})) == 1


def test_every_misspelt_variable_is_a_warning_that_names_the_setting() -> None:
    for name in FIELDS:
        typo = f"{variable(name)}X"
        (line,) = resolve({}, {typo: "no value that any setting has"}).warnings
        assert line.startswith(f"{typo} is no setting and has no effect; the nearest is PANGLOT_")
    assert unknown({"PANGLOT_MAX_BACH": "3"}, FIELDS, {})[0].endswith("the nearest is PANGLOT_MAX_BATCH")
    assert unknown({"PANGLOT_": "", "PANGLOT_TOKEN": "x", "HOME": "/", "XPANGLOT_A": "1"}, FIELDS, {})[0].startswith(
        "PANGLOT_ is"
    )
