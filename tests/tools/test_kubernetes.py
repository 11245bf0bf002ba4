"""`panglot package --kubernetes` and `--kserve`: what they write is valid, fits together, and starts as a pod would."""

from __future__ import annotations

import ast
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import kubernetes_validate
import psutil
import pytest
import yaml

from panglot.tools.scaffold import create
from support.descent import children
from support.ports import free_port
from support.server import ROOT, panglot, wait_until
from support.traffic import SOAK

SOURCE = ROOT / "src"
VERSIONS = ("1.29", "1.33", "1.37")
TOKENS = {"token": "open-sesame", "metrics": "for-scraping"}
LINKS = {"PANGLOT_PORT_80_TCP": "tcp://10.0.0.1:80", "PANGLOT_SERVICE_HOST": "10.0.0.1", "GREETER_PORT": "tcp://x:80"}
"""What Kubernetes tells a pod of a Service called panglot, where links are on after all."""


@pytest.fixture(scope="module")
def deploy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("package") / "greeter"
    create("plain", folder)
    (folder / "panglot.toml").write_text('drain = "20s"\nload_timeout = "10m"\n')
    done = panglot("package", str(folder), "--kubernetes", "--kserve")
    assert done.returncode == 0, done.stderr
    return folder / "deploy"


def parts(file: Path) -> dict[str, Any]:
    """The objects of a file by their kind."""
    return {part["kind"]: part for part in yaml.safe_load_all(file.read_text())}


@pytest.fixture(scope="module")
def pod(deploy: Path) -> Any:
    return parts(deploy / "kubernetes.yaml")["Deployment"]["spec"]["template"]["spec"]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_is_valid(deploy: Path, version: str) -> None:
    objects = parts(deploy / "kubernetes.yaml")
    expected = {"Deployment", "Service", "PodDisruptionBudget", "HorizontalPodAutoscaler", "NetworkPolicy"}
    assert objects.keys() == expected
    for part in objects.values():
        kubernetes_validate.validate(part, version, strict=True)
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(objects["Deployment"] | {"speck": {}}, version, strict=True)


def test_all_objects_mean_the_same_pods(deploy: Path) -> None:
    objects = parts(deploy / "kubernetes.yaml")
    labels = objects["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert objects["Deployment"]["spec"]["selector"]["matchLabels"] == labels
    assert objects["Service"]["spec"]["selector"] == labels
    assert objects["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    assert objects["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"] == labels
    target = objects["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]
    assert (target["kind"], target["name"]) == ("Deployment", objects["Deployment"]["metadata"]["name"])
    assert parts(deploy / "keda.yaml")["ScaledObject"]["spec"]["scaleTargetRef"]["name"] == target["name"]
    monitor = parts(deploy / "prometheus-operator.yaml")["ServiceMonitor"]["spec"]
    assert monitor["selector"]["matchLabels"] == objects["Service"]["metadata"]["labels"]
    assert monitor["endpoints"][0]["port"] == objects["Service"]["spec"]["ports"][0]["name"]


def test_the_clocks_fit_the_servers_own(deploy: Path, pod: Any) -> None:
    """drain is 20 s and load_timeout 10 min in this package."""
    server = pod["containers"][0]
    asleep = int(server["lifecycle"]["preStop"]["exec"]["command"][1])
    assert asleep >= 5
    assert pod["terminationGracePeriodSeconds"] >= asleep + 20 + 5
    assert server["startupProbe"]["periodSeconds"] * server["startupProbe"]["failureThreshold"] > 600
    assert (
        server["startupProbe"]["httpGet"]["path"] == server["readinessProbe"]["httpGet"]["path"] == "/v2/health/ready"
    )
    assert server["livenessProbe"]["httpGet"]["path"] == "/v2/health/live"
    strategy = parts(deploy / "kubernetes.yaml")["Deployment"]["spec"]["strategy"]["rollingUpdate"]
    assert (strategy["maxUnavailable"], strategy["maxSurge"]) == (0, 1)


def test_a_pod_may_do_little(pod: Any) -> None:
    server = pod["containers"][0]
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert server["securityContext"]["readOnlyRootFilesystem"] is True
    assert server["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert server["resources"]["limits"]["memory"]
    secrets = {
        entry["name"]: entry["valueFrom"]["secretKeyRef"]["key"] for entry in server["env"] if "valueFrom" in entry
    }
    assert secrets == {"PANGLOT_TOKEN": "token", "PANGLOT_METRICS_TOKEN": "metrics"}


@pytest.mark.parametrize(
    ("given", "requests", "limits"),
    [
        ("workers = 3", {"cpu": "1500m", "memory": "1536Mi"}, {"memory": "6Gi"}),
        ('workers = "1:4"', {"cpu": "500m", "memory": "512Mi"}, {"memory": "8Gi"}),
        ('[pools]\npreprocess = "1:2"\ninference = 2', {"cpu": "1500m", "memory": "1536Mi"}, {"memory": "8Gi"}),
    ],
)
def test_a_pod_has_room_for_its_workers(tmp_path: Path, given: str, requests: Any, limits: Any) -> None:
    """Also for those that come when requests wait, before the autoscaler of pods knows of it."""
    (tmp_path / "model.py").write_text("def predict(value):\n    return value\n")
    (tmp_path / "panglot.toml").write_text(given + "\n")
    done = panglot("package", str(tmp_path), "--kubernetes", "--kserve", "--name", "x")
    assert done.returncode == 0, done.stderr
    pod = parts(tmp_path / "deploy" / "kubernetes.yaml")["Deployment"]["spec"]["template"]["spec"]
    runtime = parts(tmp_path / "deploy" / "kserve.yaml")["ServingRuntime"]["spec"]
    for container in (pod["containers"][0], runtime["containers"][0]):
        assert container["resources"] == {"requests": requests, "limits": limits}


def test_metrics_that_scaling_asks_for_exist(deploy: Path) -> None:
    scaler = parts(deploy / "kubernetes.yaml")["HorizontalPodAutoscaler"]
    name = scaler["spec"]["metrics"][0]["pods"]["metric"]["name"]
    query = parts(deploy / "keda.yaml")["ScaledObject"]["spec"]["triggers"][0]["metadata"]["query"]
    source = "".join(file.read_text() for file in (SOURCE / "panglot").rglob("*.py"))
    assert f'"{name}"' in source
    assert name in query


# The pod, started


def environment(pod: Any, port: int) -> dict[str, str]:
    """What the container would be given, with a free port in the place of its own."""
    given = {entry["name"]: entry.get("value", "") for entry in pod["containers"][0]["env"]}
    for entry in pod["containers"][0]["env"]:
        if "valueFrom" in entry:
            given[entry["name"]] = TOKENS[entry["valueFrom"]["secretKeyRef"]["key"]]
    return LINKS | given | {"PANGLOT_PORT": str(port)}


def as_pod(pod: Any, package: Path, root: Path, port: int) -> subprocess.Popen[bytes]:
    """The start line of the image as the manifest's user, in a root of its own that cannot be written but for the
    mounted folders."""
    writable = [mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]]
    interpreter = {sys.prefix, sys.base_prefix, *(path for path in sys.path if Path(path).is_dir())}
    shared = [*(f"/{name}" for name in ("usr", "bin", "lib", "lib64", "etc", "dev")), *sorted(interpreter), str(SOURCE)]
    lines = ["set -e", f"mount -t tmpfs -o mode=755 panglot {root}", f"mkdir {root}/package {root}/proc"]
    lines += [
        f"mkdir -p {root}{path}; mount --rbind {path} {root}{path}" for path in shared if not path.startswith("/tmp")
    ]
    lines += [f"mkdir -p {root}{path}; mount -t tmpfs -o mode=1777 panglot {root}{path}" for path in writable]
    lines += [f"mkdir -p {root}{path}; mount --rbind {path} {root}{path}" for path in shared if path.startswith("/tmp")]
    lines += [
        f"mount --bind {package} {root}/package",
        f"mount -t proc proc {root}/proc",
        f"mount -o remount,ro {root}",
    ]
    user, group = pod["securityContext"]["runAsUser"], pod["securityContext"]["runAsGroup"]
    lines += [f'exec setpriv --reuid {user} --regid {group} --clear-groups --no-new-privs --inh-caps=-all "$@"']
    lines[-1] = lines[-1].replace("exec ", f"exec chroot {root} ")
    command = [sys.executable, "-m", "panglot", "serve", "/package"]
    env = environment(pod, port) | {"PYTHONPATH": str(SOURCE), "PATH": os.environ["PATH"], "HOME": "/tmp"}
    words = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", "\n".join(lines), "sh", *command]
    return subprocess.Popen(words, env=env, stderr=subprocess.PIPE)


def started_in(process: subprocess.Popen[bytes]) -> psutil.Process:
    """The server itself, behind the program that made its surroundings."""
    wait_until(lambda: [child for child in children(process.pid) if "serve" in child.cmdline()])
    return children(process.pid)[0]


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="mounts need root")
@pytest.mark.timeout(180)
def test_a_rolling_update_refuses_nobody(deploy: Path, pod: Any, tmp_path: Path) -> None:
    """A pod starts with the user, root and environment of the manifest. Told to stop it serves on while preStop sleeps,
    then answers what it has accepted."""
    port = free_port()
    process = as_pod(pod, deploy.parent, tmp_path, port)
    said: list[bytes] = []
    reader = threading.Thread(target=lambda: said.extend(process.stderr or ()))
    reader.start()
    try:
        headers = {"Authorization": f"Bearer {TOKENS['token']}"}
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=20, headers=headers) as client:
            wait_until(lambda: client.get("/v2/health/ready").status_code == 200, 60, lambda: b"".join(said).decode())
            scraper = {"Authorization": f"Bearer {TOKENS['metrics']}"}
            assert "panglot_queue_length" in client.get("/metrics", headers=scraper).text
            assert client.get("/docs", headers=scraper).status_code == 401
            assert new_connections(port, headers, 1.0).keys() == {200}, "while preStop sleeps nothing has changed"
    finally:
        started_in(process).send_signal(signal.SIGTERM)
        process.wait(30)
        reader.join()
    assert process.returncode == 0, b"".join(said).decode()


def new_connections(port: int, headers: dict[str, str], seconds: float) -> Counter[int]:
    """The statuses of requests on a new connection each."""
    statuses: Counter[int] = Counter()
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        answer = httpx.post(f"http://127.0.0.1:{port}/predict", json={"text": "thanks"}, headers=headers)
        statuses[answer.status_code] += 1
    return statuses


# Kinds that operators define


@pytest.mark.parametrize("jobs", [False, True], ids=["without jobs", "with jobs"])
def test_kserves_objects_are_what_its_own_models_hold(deploy: Path, tmp_path: Path, jobs: bool) -> None:
    objects = parts(packaged_with_jobs(tmp_path, "--kserve") / "kserve.yaml" if jobs else deploy / "kserve.yaml")
    assert objects.keys() - {"PersistentVolumeClaim"} == {"ServingRuntime", "InferenceService"}
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(tmp_path), "kserve==0.21.0"]
    subprocess.run(command, check=True, capture_output=True, timeout=100)
    (wheel,) = tmp_path.glob("kserve-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        types = KserveTypes(archive)
        types.check(objects["ServingRuntime"], "V1alpha1ServingRuntime")
        types.check(objects["InferenceService"], "V1beta1InferenceService")
        with pytest.raises(AssertionError, match="speck"):
            types.check(objects["ServingRuntime"] | {"speck": {}}, "V1alpha1ServingRuntime")
    container = objects["ServingRuntime"]["spec"]["containers"][0]
    bare_pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"containers": [container]}}
    kubernetes_validate.validate(bare_pod, VERSIONS[-1], strict=True)
    assert container["command"][-1] == "/mnt/models"


class KserveTypes:
    """The types of KServe's objects, read out of its Python client without importing it."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self.fields: dict[str, dict[str, str]] = {}
        for name in archive.namelist():
            if name.startswith("kserve/models/v1"):
                for node in ast.parse(archive.read(name)).body:
                    if isinstance(node, ast.ClassDef):
                        self.fields[node.name] = fields_of(node)

    def check(self, value: Any, kind: str) -> None:
        """Assert that a value has the fields of this kind only, all the way down."""
        if kind.startswith("list["):
            for element in value:
                self.check(element, kind[5:-1])
        elif kind in self.fields:
            unknown = value.keys() - self.fields[kind].keys()
            assert not unknown, f"{kind} has no {unknown}"
            for key, inner in value.items():
                self.check(inner, self.fields[kind][key])
        elif kind in ("str", "bool", "int"):
            assert type(value).__name__ == kind


def fields_of(node: ast.ClassDef) -> dict[str, str]:
    tables = {
        target.id: ast.literal_eval(statement.value)
        for statement in node.body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Name) and target.id in ("openapi_types", "attribute_map")
    }
    return {tables["attribute_map"][name]: kind for name, kind in tables["openapi_types"].items()} if tables else {}


VALIDATE = """
import { readFileSync } from "node:fs";
import { ScaledObject } from "@kubernetes-models/keda/keda.sh/v1alpha1/ScaledObject";
import { ServiceMonitor } from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1";
const object = JSON.parse(readFileSync(0));
new { ScaledObject, ServiceMonitor }[object.kind](object).validate();
"""


@pytest.mark.skipif(not SOAK, reason="half a minute of downloads: part of make soak")
def test_objects_of_operators_are_valid(deploy: Path, tmp_path: Path) -> None:
    names = ["@kubernetes-models/keda@0.4.2", "@kubernetes-models/prometheus-operator@6.0.0"]
    subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--silent", *names], cwd=tmp_path, check=True)
    (tmp_path / "validate.mjs").write_text(VALIDATE)
    for name in ("keda.yaml", "prometheus-operator.yaml"):
        for part in parts(deploy / name).values():
            command = ["node", "validate.mjs"]
            done = subprocess.run(
                command, cwd=tmp_path, input=json.dumps(part), text=True, capture_output=True, check=False
            )
            assert done.returncode == 0, done.stderr
            broken = json.dumps(part | {"spec": {}})
            done = subprocess.run(command, cwd=tmp_path, input=broken, text=True, capture_output=True, check=False)
            assert done.returncode != 0


def packaged_with_jobs(where: Path, *flags: str) -> Path:
    folder = where / "greeter"
    create("plain", folder)
    (folder / "panglot.toml").write_text('jobs = "/home/somebody/jobs"\n')
    done = panglot("package", str(folder), *flags)
    assert done.returncode == 0, done.stderr
    assert "there is one pod" in done.stdout + done.stderr
    return folder / "deploy"


def test_one_pod_with_a_volume_stores_jobs_on_kserve(tmp_path: Path) -> None:
    objects = parts(packaged_with_jobs(tmp_path, "--kserve") / "kserve.yaml")
    kubernetes_validate.validate(objects["PersistentVolumeClaim"], VERSIONS[-1], strict=True)
    runtime, service = objects["ServingRuntime"]["spec"], objects["InferenceService"]
    (volume,) = runtime["volumes"]
    assert volume["persistentVolumeClaim"]["claimName"] == objects["PersistentVolumeClaim"]["metadata"]["name"]
    assert [mount["name"] for mount in runtime["containers"][0]["volumeMounts"]] == [volume["name"]]
    predictor = service["spec"]["predictor"]
    # Two pods at a time would never be ready.
    assert service["metadata"]["annotations"] == {"serving.kserve.io/deploymentMode": "RawDeployment"}
    assert (predictor["minReplicas"], predictor["maxReplicas"]) == (1, 1)
    assert predictor["deploymentStrategy"] == {"type": "Recreate"}
    # The volume belongs to root: else the user of the image could not write to it.
    assert predictor["securityContext"]["fsGroup"] == runtime["containers"][0]["securityContext"]["runAsUser"]
    pod = {"containers": runtime["containers"], "volumes": runtime["volumes"]}
    bare_pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": pod}
    kubernetes_validate.validate(bare_pod, VERSIONS[-1], strict=True)


def test_one_pod_with_a_volume_stores_jobs_before_a_cluster_of_ray(tmp_path: Path) -> None:
    objects = parts(packaged_with_jobs(tmp_path, "--kuberay") / "kuberay.yaml")
    for kind in ("Deployment", "PersistentVolumeClaim"):
        kubernetes_validate.validate(objects[kind], VERSIONS[-1], strict=True)
    deployment = objects["Deployment"]["spec"]
    assert (deployment["replicas"], deployment["strategy"]) == (1, {"type": "Recreate"})
    pod = deployment["template"]["spec"]
    (volume,) = (entry for entry in pod["volumes"] if entry["name"] == "jobs")
    assert volume["persistentVolumeClaim"]["claimName"] == objects["PersistentVolumeClaim"]["metadata"]["name"]
    assert any(mount["name"] == "jobs" for mount in pod["containers"][0]["volumeMounts"])


def test_a_package_that_stores_jobs_has_one_pod_with_a_volume(tmp_path: Path) -> None:
    deploy = packaged_with_jobs(tmp_path, "--kubernetes")
    objects = parts(deploy / "kubernetes.yaml")
    for version in VERSIONS:
        for part in objects.values():
            kubernetes_validate.validate(part, version, strict=True)
    assert "HorizontalPodAutoscaler" not in objects
    assert not (deploy / "keda.yaml").exists()
    deployment = objects["Deployment"]["spec"]
    # A second server on the folder is refused: two pods at a time would never be ready.
    assert (deployment["replicas"], deployment["strategy"]) == (1, {"type": "Recreate"})
    pod = deployment["template"]["spec"]
    (volume,) = (entry for entry in pod["volumes"] if entry["name"] == "jobs")
    assert volume["persistentVolumeClaim"]["claimName"] == objects["PersistentVolumeClaim"]["metadata"]["name"]
    (mount,) = (entry for entry in pod["containers"][0]["volumeMounts"] if entry["name"] == "jobs")
    dockerfile = (deploy / "Dockerfile").read_text()
    assert f"PANGLOT_JOBS={mount['mountPath']}/store" in dockerfile
    assert f'VOLUME ["{mount["mountPath"]}"]' in dockerfile
    compose = yaml.safe_load((deploy / "compose.yaml").read_text())
    assert compose["services"]["greeter"]["volumes"] == [f"jobs:{mount['mountPath']}"]
    assert compose["volumes"] == {"jobs": {}}
