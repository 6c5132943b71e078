"""Where a recipe runs: the job that a scheduler starts on each machine, around the same run.sh."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...catalog.store import built_in
from ...errors import UsageError
from ...record import replace
from ...scenario import Scenario
from ..nodes import nodes_of
from .launcher import File, Launch, Launcher
from .text import as_yaml

NAME = "llmfeas"
RESOURCES = {
    "cuda": "nvidia.com/gpu",
    "rocm": "amd.com/gpu",
    "xpu": "gpu.intel.com/xe",
    "hpu": "habana.ai/gaudi",
    "tpu": "google.com/tpu",
}
"""What Kubernetes calls a device, by backend."""
WORK = "/work"


def slurm(engine: Launcher, scenario: Scenario, launch: Launch) -> tuple[File, str]:
    """A batch script: one task a machine."""
    nodes = nodes_of(scenario)
    gpus = "" if scenario.device.backend == "cpu" else f"#SBATCH --gpus-per-node={nodes.devices}\n"
    text = (
        f"#!/bin/bash\n#SBATCH --job-name={NAME}\n#SBATCH --nodes={nodes.count}\n#SBATCH --ntasks-per-node=1\n{gpus}"
        "#SBATCH --exclusive\nset -e\n"
        'export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)\n'
        "srun --kill-on-bad-exit=1 bash -c 'NODE_RANK=$SLURM_NODEID sh run.sh'\n"
    )
    return File("job.sbatch", text), "start it from this folder, which all machines have to see: sbatch job.sbatch"


def kubernetes(engine: Launcher, scenario: Scenario, launch: Launch) -> tuple[File, str]:
    """A JobSet, a pod a machine, with the recipe in a ConfigMap."""
    count = nodes_of(scenario).count
    files = {file.name: file.text for file in (*launch.files, launch.script())}
    volumes = [
        {"name": "recipe", "configMap": {"name": NAME}},
        {"name": "work", "emptyDir": {}},
        {"name": "shared-memory", "emptyDir": {"medium": "Memory"}},
    ]
    pod = {"spec": {"restartPolicy": "Never", "containers": [_container(scenario)], "volumes": volumes}}
    times = {"parallelism": count, "completions": count, "completionMode": "Indexed", "backoffLimit": 0}
    jobs = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": NAME},
        "spec": {
            "network": {"enableDNSHostnames": True, "subdomain": NAME},
            "replicatedJobs": [{"name": "machine", "replicas": 1, "template": {"spec": {**times, "template": pod}}}],
        },
    }
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": files}
    text = f"# JobSet 0.8 and later, kubernetes-sigs/jobset\n{as_yaml(config)}---\n{as_yaml(jobs)}"
    note = f"put an image with {engine.name} in place of IMAGE, then: kubectl apply -f jobset.yaml"
    return File("jobset.yaml", text), note


def _container(scenario: Scenario) -> dict[str, object]:
    """What runs on each machine: a copy of the recipe, since a ConfigMap cannot be written into."""
    resource = RESOURCES.get(scenario.device.backend)
    index = {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}
    mounts = {"recipe": "/recipe", "work": WORK, "shared-memory": "/dev/shm"}
    container: dict[str, object] = {
        "name": "run",
        "image": "IMAGE",
        "command": ["sh", "-c", f"cp -rL /recipe/. {WORK} && sh {WORK}/run.sh"],
        "env": [
            {"name": "MASTER_ADDR", "value": f"{NAME}-machine-0-0.{NAME}"},
            {"name": "NODE_RANK", "valueFrom": index},
        ],
        "volumeMounts": [{"name": name, "mountPath": path} for name, path in mounts.items()],
    }
    if resource is not None:
        container["resources"] = {"limits": {resource: nodes_of(scenario).devices}}
    return container


ACCELERATOR = "ACCELERATOR"
"""Stands for what SkyPilot calls a device, where that is not known."""


def accelerator(scenario: Scenario) -> str | None:
    """What SkyPilot calls the device (data/launch/skypilot.yaml); None where that is not known."""
    return built_in().raw("launch/skypilot")["accelerators"].get(scenario.device.id)  # type: ignore[no-any-return]


def skypilot(engine: Launcher, scenario: Scenario, launch: Launch) -> tuple[File, str]:
    """A task of SkyPilot: it finds machines in a cloud, installs what the recipe takes, and runs it on each."""
    nodes, known = nodes_of(scenario), accelerator(scenario)
    packages = " ".join(f"'{name}'" for name in engine.packages(scenario))
    task: dict[str, object] = {
        "name": NAME,
        "num_nodes": nodes.count,
        "resources": {"accelerators": f"{known or ACCELERATOR}:{nodes.devices}"},
        "workdir": ".",
        "run": 'MASTER_ADDR="$(echo "$SKYPILOT_NODE_IPS" | head -n 1)" NODE_RANK="$SKYPILOT_NODE_RANK" sh run.sh',
    }
    if packages:
        task["setup"] = f"pip install {packages}"
    if scenario.device.backend == "cpu":
        task.pop("resources")
    note = "from this folder: sky launch sky.yaml"
    if known is None and scenario.device.backend != "cpu":
        note = f"put what SkyPilot calls {scenario.device.name} in place of {ACCELERATOR} (sky gpus list), then {note}"
    return File("sky.yaml", "# SkyPilot 0.10 and later: pip install skypilot\n" + as_yaml(task)), note


CLUSTERS: Mapping[str, Callable[[Launcher, Scenario, Launch], tuple[File, str]]] = {
    "slurm": slurm,
    "kubernetes": kubernetes,
    "skypilot": skypilot,
}
"""Schedulers by the name that --on takes."""


def on_cluster(name: str, engine: Launcher, scenario: Scenario, launch: Launch) -> Launch:
    """A launch with the job that starts it.

    Raises:
        UsageError: on several machines the engine does not take the same command on each.
    """
    alike = "NODE_RANK" in launch.command and not any("on all but the first" in each for each in launch.notes)
    if nodes_of(scenario).several and not alike:
        message = f"--on {name} runs the same command on each machine, and {engine.name} does not take that."
        raise UsageError("engine-cannot", message, "Ask for one machine, or leave --on out and see the notes.")
    file, note = CLUSTERS[name](engine, scenario, launch)
    notes = tuple(each for each in launch.notes if not each.startswith("run the command on each"))
    return replace(launch, files=(*launch.files, file), notes=(*notes, note))
