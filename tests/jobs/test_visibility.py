"""A job is visible to the key that submitted it, and to no other key."""

from __future__ import annotations

from pathlib import Path

from panglot.web.access import key_file
from support.server import serving


def test_another_key_sees_nothing_of_a_job(tmp_path: Path) -> None:
    secrets = {name: key_file.new_secret() for name in ("alice", "bob", "watcher")}
    more = {"watcher": ('may = ["metrics", "pages"]',), "bob": ('may = ["infer", "jobs", "pages"]',)}
    path = tmp_path / "keys.toml"
    path.write_text("\n".join(key_file.written(name, secret, more.get(name, ())) for name, secret in secrets.items()))
    with serving("job_steps", "--keys", str(path), ready=False) as server:
        server.token = secrets["watcher"]
        server.wait_ready()
        alice, bob = ({"authorization": f"Bearer {secrets[name]}"} for name in ("alice", "bob"))
        submitted = {"prefer": "respond-async", "idempotency-key": "k"}
        job = server.client.post("/predict", json={"a": 1}, headers={**alice, **submitted}).json()["id"]
        waiting = {"prefer": "wait=20"}
        assert server.client.get(f"/jobs/{job}", headers={**alice, **waiting}).json()["state"] == "done"
        assert server.client.get(f"/jobs/{job}/result", headers=alice).json() == {"echo": {"a": 1}}
        for end in ("", "/result", "/events"):
            assert server.client.get(f"/jobs/{job}{end}", headers=bob).status_code == 404
            assert server.client.get(f"/jobs/{job}{end}").status_code == 401
        assert server.client.delete(f"/jobs/{job}", headers=bob).status_code == 404
        # A browser that has logged in with a key sees what the key sees.
        browser = server.new_client()
        assert browser.post("/login", headers=bob).status_code == 204
        for end in ("", "/result", "/events"):
            assert browser.get(f"/jobs/{job}{end}").status_code == 404
        # The same key of another client is another job.
        other = server.client.post("/predict", json={"a": 2}, headers={**bob, **submitted})
        assert other.status_code == 202
        assert other.json()["id"] != job
        assert server.client.get(f"/jobs/{other.json()['id']}", headers={**bob, **waiting}).json()["state"] == "done"
