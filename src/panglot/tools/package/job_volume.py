"""The volume for the jobs of a package whose settings say `jobs`, in the files that `panglot package` writes.

A folder of jobs belongs to one server, and only that server knows its jobs. So there is one pod, without an autoscaler,
and an update ends the old pod before the new one starts: meanwhile clients wait for seconds, and no job is lost.
"""

from __future__ import annotations

from panglot.settings import Settings

MOUNT = "/jobs"
FOLDER = f"{MOUNT}/store"
"""Inside of the volume: the root of a file system has entries of its own, such as lost+found."""
NOT_SCALED = frozenset({"keda.yaml"})
"""Files for more pods than one."""

ROLLING = """\
    rollingUpdate:
      # A new pod is ready before an old one goes.
      maxUnavailable: 0
      maxSurge: 1
"""
RECREATE = """\
    # The folder of jobs belongs to one server: the old pod ends before the new one starts.
    type: Recreate
"""
SCALED = "  # How many pods there are is said by the HorizontalPodAutoscaler below.\n"
SINGLE = """\
  # One pod: it alone knows the jobs in its folder. More workers in it serve more requests.
  replicas: 1
"""
SEVERAL = "  replicas: 2\n"
POD_MOUNT = f"""\
            - name: jobs
              mountPath: {MOUNT}
"""
POD_VOLUME = """\
        - name: jobs
          persistentVolumeClaim:
            claimName: "{name}-jobs"
"""
IN_RUNTIME = f"""\
      volumeMounts:
        - name: jobs
          mountPath: {MOUNT}
  volumes:
    - name: jobs
      persistentVolumeClaim:
        claimName: "{{name}}-jobs"
"""
KSERVE_MODE = """\
  annotations:
    # Without Knative, which ends an old pod only when the new one is ready. The folder of jobs belongs to one server.
    serving.kserve.io/deploymentMode: RawDeployment
"""
IN_PREDICTOR = """\
    # One pod: it alone knows the jobs in its folder. The old pod ends before the new one starts.
    minReplicas: 1
    maxReplicas: 1
    deploymentStrategy:
      type: Recreate
    securityContext:
      fsGroup: 10001
"""
CLAIM = """\
# The jobs, which outlive pods. Set the size to what bodies and answers need (jobs_bytes).
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: "{name}-jobs"
  labels:
    app.kubernetes.io/name: "{name}"
spec:
  accessModes: [ReadWriteOnce]
  resources:
    requests:
      storage: 10Gi
---
"""
ONLY_FOR_JOBS = (
    "jobs_mount", "jobs_in_pod", "jobs_claim", "jobs_in_compose", "compose_volumes", "jobs_variable", "jobs_folder",
    "jobs_in_runtime", "jobs_mode", "jobs_in_predictor",
)  # fmt: skip
"""The values that are empty in files of a package without jobs."""


def is_wanted(settings: Settings) -> bool:
    return bool(settings.jobs)


def values(settings: Settings, name: str, autoscaler: str) -> dict[str, str]:
    """Values for the templates: a volume and one pod where the package stores jobs, else the autoscaler."""
    if not is_wanted(settings):
        pods = {"replicas": SCALED, "replicas_on_ray": SEVERAL, "strategy": ROLLING, "autoscaler": autoscaler}
        return dict.fromkeys(ONLY_FOR_JOBS, "") | pods
    return {
        "replicas": SINGLE,
        "replicas_on_ray": SINGLE,
        "strategy": RECREATE,
        "autoscaler": "",
        "jobs_mount": POD_MOUNT,
        "jobs_in_pod": POD_VOLUME.format(name=name),
        "jobs_claim": CLAIM.format(name=name),
        "jobs_in_runtime": IN_RUNTIME.format(name=name),
        "jobs_mode": KSERVE_MODE,
        "jobs_in_predictor": IN_PREDICTOR,
        "jobs_in_compose": f"    volumes:\n      - jobs:{MOUNT}\n",
        "compose_volumes": "volumes:\n  jobs: {}\n",
        # Instead of the folder in the package's settings, which is one of the machine that they were written on.
        "jobs_variable": f" PANGLOT_JOBS={FOLDER}",
        "jobs_folder": f'RUN ["install", "-d", "-o", "10001", "-g", "10001", "{MOUNT}"]\nVOLUME ["{MOUNT}"]\n',
    }


def notes(settings: Settings, wanted: tuple[str, ...]) -> list[str]:
    """Notes for the user about the jobs in the image, in lines."""
    if not is_wanted(settings):
        return []
    lines = [f"jobs are stored in {FOLDER}, in the volume {MOUNT}; there is one pod, which alone knows them"]
    kserve = (
        "kserve.yaml asks for RawDeployment: with Knative, an update would start a second pod on the folder of jobs"
    )
    return [*lines, kserve] if "kserve" in wanted else lines
