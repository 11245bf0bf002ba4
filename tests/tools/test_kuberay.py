"""`panglot package --kuberay`: a RayCluster and the server before it are sound, fit together, and are what Ray reads.

No package of PyPI or npm carries KubeRay's schema: the fields of its own kinds are written down here, and the pods in
them are checked as pods. What Ray's autoscaler makes of the cluster, it says itself.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from panglot.settings import Settings, table_of, variable
from panglot.tools.package.container import RAY_VERSION
from support.environments import python_with
from support.server import panglot

VERSION = "1.33"
CLUSTER = {"authOptions", "autoscalerOptions", "enableInTreeAutoscaling", "gcsFaultToleranceOptions", "headGroupSpec",
           "headServiceAnnotations", "managedBy", "rayVersion", "suspend", "upgradeStrategy",
           "workerGroupSpecs"}  # fmt: skip
"""Fields of KubeRay 1.5's RayClusterSpec, HeadGroupSpec, WorkerGroupSpec, AutoscalerOptions and AuthOptions."""
HEAD = {"template", "headService", "enableIngress", "resources", "labels", "rayStartParams", "serviceType"}
GROUP = {"suspend", "groupName", "replicas", "minReplicas", "maxReplicas", "idleTimeoutSeconds", "resources", "labels",
         "rayStartParams", "template", "scaleStrategy", "numOfHosts"}  # fmt: skip
AUTOSCALER = {"resources", "image", "imagePullPolicy", "securityContext", "idleTimeoutSeconds", "upscalingMode",
              "version", "env", "envFrom", "volumeMounts"}  # fmt: skip
AUTHENTICATION = {"mode", "secretName"}
DERIVE = """
import json, sys
from ray.autoscaler._private.kuberay.autoscaling_config import _derive_autoscaling_config_from_ray_cr
cluster = json.load(sys.stdin)
cluster["metadata"]["namespace"] = "default"
print(json.dumps(_derive_autoscaling_config_from_ray_cr(cluster)))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("package") / "greeter"
    assert panglot("new", "plain", str(folder)).returncode == 0
    done = panglot("package", str(folder), "--kuberay")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def objects(folder: Path) -> dict[str, Any]:
    return {part["kind"]: part for part in yaml.safe_load_all((folder / "deploy" / "kuberay.yaml").read_text())}


@pytest.fixture(scope="module")
def cluster(objects: dict[str, Any]) -> Any:
    return objects["RayCluster"]["spec"]


def environment(objects: dict[str, Any]) -> dict[str, Any]:
    return {entry["name"]: entry for entry in server(objects)["env"]}


def server(objects: dict[str, Any]) -> Any:
    return objects["Deployment"]["spec"]["template"]["spec"]["containers"][0]


def test_what_kubernetes_knows_is_valid(objects: dict[str, Any]) -> None:
    assert objects.keys() == {"RayCluster", "Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy"}
    for kind, part in objects.items():
        if kind != "RayCluster":
            kubernetes_validate.validate(part, VERSION, strict=True)


def test_the_cluster_has_the_fields_of_kuberay(objects: dict[str, Any], cluster: Any) -> None:
    assert objects["RayCluster"]["apiVersion"] == "ray.io/v1"
    groups = cluster["workerGroupSpecs"]
    assert cluster.keys() <= CLUSTER
    assert cluster["headGroupSpec"].keys() <= HEAD
    assert cluster["autoscalerOptions"].keys() <= AUTOSCALER
    assert cluster["authOptions"].keys() <= AUTHENTICATION
    for group in groups:
        assert group.keys() <= GROUP
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
    for template in (cluster["headGroupSpec"]["template"], *(group["template"] for group in groups)):
        assert all(isinstance(value, str) for value in cluster["headGroupSpec"]["rayStartParams"].values())
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", **template["metadata"]}}
        kubernetes_validate.validate({**pod, "spec": template["spec"]}, VERSION, strict=True)


@pytest.mark.timeout(300)
def test_rays_own_autoscaler_reads_it(objects: dict[str, Any]) -> None:
    python = python_with(f"ray-{RAY_VERSION}", f"ray[client]=={RAY_VERSION}")
    told = json.dumps(objects["RayCluster"])
    done = subprocess.run([python, "-c", DERIVE], input=told, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr
    types = json.loads(done.stdout)["available_node_types"]
    head, workers = types["headgroup"], types["workers"]
    assert head["resources"]["CPU"] == 0, "no worker may be placed beside the head"
    assert workers["resources"]["CPU"] >= 1
    assert (workers["min_workers"], workers["max_workers"]) == (1, 4)


def test_strangers_are_kept_out(objects: dict[str, Any], cluster: Any) -> None:
    assert cluster["authOptions"] == {"mode": "token"}
    given = environment(objects)
    assert given["RAY_AUTH_MODE"]["value"] == "token"
    name = objects["RayCluster"]["metadata"]["name"]
    assert given["RAY_AUTH_TOKEN"]["valueFrom"]["secretKeyRef"] == {"name": name, "key": "auth_token"}
    assert given["PANGLOT_TOKEN"]["valueFrom"]["secretKeyRef"]["key"] == "token"
    policy = objects["NetworkPolicy"]["spec"]
    assert policy["podSelector"]["matchLabels"] == {"ray.io/cluster": name}
    among, front = policy["ingress"]
    assert among["from"] == [{"podSelector": policy["podSelector"]}]
    labels = objects["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert front["from"] == [{"podSelector": {"matchLabels": labels}}]
    for template in (group["template"] for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"])):
        pod = template["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is True
    assert cluster["workerGroupSpecs"][0]["template"]["spec"]["automountServiceAccountToken"] is False


def test_the_server_finds_the_cluster(objects: dict[str, Any], cluster: Any) -> None:
    """The operator's Service of the head is called NAME-head-svc, and has the ports of its container."""
    given = environment(objects)
    name = objects["RayCluster"]["metadata"]["name"]
    assert given["PANGLOT_RAY"]["value"] == f"ray://{name}-head-svc:10001"
    head = cluster["headGroupSpec"]["template"]["spec"]["containers"][0]
    assert {"name": "client", "containerPort": 10001} in head["ports"]
    client, agents = objects["NetworkPolicy"]["spec"]["ingress"][1]["ports"]
    assert client == {"port": 10001}
    assert given["PANGLOT_AGENT_PORTS"]["value"] == f"{agents['port']}-{agents['endPort']}"
    assert given["PANGLOT_WORKERS"]["value"] == "1:4"
    images = {container["image"] for container in (head, server(objects),
              cluster["workerGroupSpecs"][0]["template"]["spec"]["containers"][0])}  # fmt: skip
    assert images == {"greeter:latest"}, "one image, so that Python, Ray and the package are the same"


def test_every_variable_of_ours_is_a_setting(objects: dict[str, Any]) -> None:
    known = {variable(name) for name in table_of(Settings)} | {"PANGLOT_TOKEN", "PANGLOT_METRICS_TOKEN"}
    assert {name for name in environment(objects) if name.startswith("PANGLOT_")} <= known


def test_the_image_has_ray(folder: Path, cluster: Any) -> None:
    lines = (folder / "deploy" / "Dockerfile").read_text().splitlines()
    (install,) = [line for line in lines if line.startswith("RUN pip install")]
    assert f'"ray[default,client]=={RAY_VERSION}"' in install
    assert cluster["rayVersion"] == RAY_VERSION
    assert panglot("package", str(folder)).returncode == 0
    assert "ray" not in (folder / "deploy" / "Dockerfile").read_text()


def test_a_name_that_kuberay_would_cut_is_refused(folder: Path) -> None:
    done = panglot("package", str(folder), "--kuberay", "--name", "x" * 38)
    assert (done.returncode, done.stderr) == (
        3,
        f"error: the name {'x' * 38} is too long for KubeRay (fix: give a --name of 37 letters at most)\n",
    )


def test_the_workers_of_the_package_are_those_on_the_cluster(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("def predict(value):\n    return value\n")
    (tmp_path / "panglot.toml").write_text('workers = "2:6"\n')
    assert panglot("package", str(tmp_path), "--kuberay", "--name", "x").returncode == 0
    text = (tmp_path / "deploy" / "kuberay.yaml").read_text()
    objects = {part["kind"]: part for part in yaml.safe_load_all(text)}
    assert environment(objects)["PANGLOT_WORKERS"]["value"] == "2:6"
