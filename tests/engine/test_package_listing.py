"""What of a package's folder travels to nodes, with links in it."""

from __future__ import annotations

from pathlib import Path

from panglot.engine.ray.files import Shipment


def test_two_links_to_one_folder_are_two_folders(tmp_path: Path) -> None:
    package, weights = tmp_path / "package", tmp_path / "weights"
    package.mkdir()
    weights.mkdir()
    (weights / "net.bin").write_bytes(b"weights")
    for name in ("first", "second"):
        (package / name).symlink_to(weights)
    assert [entry.path for entry in Shipment().list(package).entries] == ["first/net.bin", "second/net.bin"]


def test_a_link_to_a_folder_above_is_not_followed_round_and_round(tmp_path: Path) -> None:
    inner = tmp_path / "package" / "inner"
    inner.mkdir(parents=True)
    (inner / "net.bin").write_bytes(b"weights")
    (inner / "back").symlink_to(tmp_path / "package")
    assert [entry.path for entry in Shipment().list(tmp_path / "package").entries] == ["inner/net.bin"]
