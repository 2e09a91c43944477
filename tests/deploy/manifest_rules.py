"""Rules that no schema has: what the manifests of one release have to be together, and for the server."""

import re

DNS_LABEL = re.compile("[a-z]([a-z0-9-]{0,61}[a-z0-9])?")  # of RFC 1035
READ_ONLY_VOLUMES = ("secret", "configMap", "projected", "emptyDir", "persistentVolumeClaim")


def flags_of(container: dict) -> list:
    """[(flag, value)] of its arguments."""
    return [tuple((argument + "=").split("=", 1)) for argument in container.get("args", [])]


def seconds_of(container: dict, flag: str) -> int:
    match = re.match(r"(\d+)s", dict(flags_of(container)).get(flag, ""))
    return int(match.group(1)) if match else 0


def selects(selector: dict, labels: dict) -> bool:
    return bool(selector) and selector.items() <= labels.items()


def security_problems(container: dict, pod: dict):
    """The Pod Security Standard "restricted", and a root file system that is read only."""
    context, around = container.get("securityContext", {}), pod.get("securityContext", {})
    for name, wanted in (("readOnlyRootFilesystem", True), ("allowPrivilegeEscalation", False), ("runAsNonRoot", True)):
        if context.get(name) is not wanted:
            yield f"{container['name']}: securityContext.{name} is not {wanted}"
    if context.get("capabilities") != {"drop": ["ALL"]}:
        yield f"{container['name']}: capabilities other than drop: [ALL]"
    if (context.get("seccompProfile") or around.get("seccompProfile")) != {"type": "RuntimeDefault"}:
        yield f"{container['name']}: seccompProfile is not RuntimeDefault"
    if not (context.get("runAsUser") or around.get("runAsUser")):
        yield f"{container['name']}: runAsUser is not a number above 0"
    if context.get("privileged") or any(pod.get(name) for name in ("hostNetwork", "hostPID", "hostIPC")):
        yield f"{container['name']}: privileged, or in a namespace of the host"


def image_problems(container: dict, tags: bool):
    image = container["image"]
    if re.fullmatch(r"[^@\s]+@sha256:[0-9a-f]{64}", image):
        return
    if not tags or not re.search(r":[\w.-]+$", image) or image.endswith(":latest"):
        yield f"{container['name']}: {image} is named without a digest"


def probe_problems(container: dict, tls: bool, grpc_port: int, http_port: int):
    named = {port["name"]: port["containerPort"] for port in container["ports"]}
    for name in ("startupProbe", "readinessProbe", "livenessProbe"):
        probe = container.get(name, {})
        http, grpc = probe.get("httpGet"), probe.get("grpc")
        if not http and not grpc:
            yield f"no {name}"
        if grpc and tls:
            yield f"{name}: the kubelet's gRPC probe speaks no TLS"
        if grpc and grpc["port"] != grpc_port:
            yield f"{name}: gRPC is not on port {grpc['port']}"
        if http and (http.get("scheme", "HTTP") == "HTTPS") != tls:
            yield f"{name}: has to be HTTPS with TLS, and only then"
        if http and named.get(http["port"], http["port"]) != http_port:
            yield f"{name}: HTTP is not on port {http['port']}"
        wanted = "/healthz" if name == "livenessProbe" else "/readyz"
        if http and http["path"] != wanted:
            yield f"{name}: {http['path']} instead of {wanted}"
    if not tls and grpc_port in named.values() and "grpc" not in container.get("readinessProbe", {}):
        yield "readinessProbe: not gRPC without TLS"


def mount_problems(container: dict, pod: dict):
    """Volumes of the container that serves: each is there, none may be written, and files that flags name lie in one."""
    volumes = {volume["name"]: volume for volume in pod.get("volumes", [])}
    mounts = container.get("volumeMounts", [])
    for mount in mounts:
        if mount["name"] not in volumes:
            yield f"there is no volume {mount['name']}"
        if not mount.get("readOnly"):
            yield f"{mount['mountPath']} may be written"
        if "subPath" in mount:
            yield f"{mount['mountPath']}: a subPath does not follow changes of its secret"
    used = {mount["name"] for each in [*pod.get("initContainers", []), container] for mount in each.get("volumeMounts", [])}
    yield from (f"nobody mounts the volume {name}" for name in sorted(set(volumes) - used))
    yield from (f"the volume {name} is of a kind that is not for pods like these" for name, volume in volumes.items()
                if not set(volume) & set(READ_ONLY_VOLUMES))
    for flag, value in flags_of(container):
        path = value.rstrip("=")
        if flag in ("--tls-cert", "--tls-key", "--tls-client-ca", "--token-file") and not any(
                path.startswith(mount["mountPath"] + "/") for mount in mounts):
            yield f"{flag}: nothing is mounted at {path}"


def flag_problems(container: dict, help_flags: set, accepts):
    """accepts: (arguments) -> an error of the server, or nothing."""
    names = [flag for flag, _ in flags_of(container)]
    unknown = [name for name in names if name not in help_flags]
    yield from (f"attendant-server has no {name}" for name in unknown)
    yield from (f"{name} comes twice" for name in sorted(set(names) - {"--model"}) if names.count(name) > 1)
    if not unknown and (error := accepts(container["args"])):
        yield f"attendant-server: {error}"


def server_problems(container: dict, pod: dict, world):
    """The container that serves, in a Deployment or a runtime."""
    flags = {flag: value.rstrip("=") for flag, value in flags_of(container)}
    grpc_port, http_port = int(flags.get("--port", 8001)), int(flags.get("--http-port", 8002))
    yield from flag_problems(container, world.help_flags, world.accepts)
    yield from probe_problems(container, "--tls-cert" in flags, grpc_port, http_port)
    yield from mount_problems(container, pod)
    context = pod.get("securityContext", {}) | container["securityContext"]
    if (context.get("runAsUser"), context.get("runAsGroup")) != world.user:
        yield f"it runs as another user than the image, {world.user}"
    yield from (f"port {port['containerPort']} is neither {grpc_port} nor {http_port}" for port in container["ports"]
                if port["containerPort"] not in (grpc_port, http_port))
    needed = seconds_of(container, "--lame-duck") + seconds_of(container, "--drain-timeout")
    grace = pod.get("terminationGracePeriodSeconds", 30)
    if grace <= needed:
        yield f"a pod has {grace} s to end, its lame duck and drain take {needed} s"
    probe = container["readinessProbe"]
    noticed = probe.get("periodSeconds", 10) * probe.get("failureThreshold", 3)
    lame_duck = seconds_of(container, "--lame-duck")
    if noticed > lame_duck:
        yield f"readiness is noticed within {noticed} s, the lame duck ends after {lame_duck} s"
    for kind, name in (("requests", "cpu"), ("requests", "memory"), ("limits", "memory")):
        if name not in container.get("resources", {}).get(kind, {}):
            yield f"resources.{kind}.{name} is missing"


def pod_problems(pod: dict, world, tags: bool):
    for container in [*pod.get("initContainers", []), *pod["containers"]]:
        yield from security_problems(container, pod)
        yield from image_problems(container, tags and container in pod["containers"])
    yield from server_problems(pod["containers"][0], pod, world)


def deployment_problems(deployment: dict, release: list, world, tags: bool):
    template = deployment["spec"]["template"]
    yield from pod_problems(template["spec"], world, tags)
    if template["spec"].get("automountServiceAccountToken") is not False:
        yield "pods get a token of the API"
    # A Service named attendant would otherwise put ATTENDANT_PORT=tcp://… into the environment, a setting of the server.
    if template["spec"].get("enableServiceLinks") is not False:
        yield "pods get variables named after services"
    if not selects(deployment["spec"]["selector"]["matchLabels"], template["metadata"]["labels"]):
        yield "its selector selects other pods"
    scalers = [each for each in release if each["kind"] == "HorizontalPodAutoscaler"]
    if ("replicas" in deployment["spec"]) == bool(scalers):
        yield "replicas are set beside an autoscaler, or neither is there"


def service_problems(service: dict, deployment: dict):
    template = deployment["spec"]["template"]
    if not DNS_LABEL.fullmatch(service["metadata"]["name"]):
        yield "its name is not a label of RFC 1035"
    numbers = [port["port"] for port in service["spec"]["ports"]]
    if len(set(numbers)) != len(numbers):
        yield f"a port comes twice among {numbers}"
    if not selects(service["spec"]["selector"], template["metadata"]["labels"]):
        yield "it selects other pods"
    named = {port["name"] for port in template["spec"]["containers"][0]["ports"]}
    yield from (f"pods have no port {port['targetPort']}" for port in service["spec"]["ports"]
                if port["targetPort"] not in named)
    if missing := {"grpc", "http"} - {port["targetPort"] for port in service["spec"]["ports"]}:
        yield f"it leads to no port {missing}"


def network_policy_problems(policy: dict, deployment: dict):
    template = deployment["spec"]["template"]
    if not selects(policy["spec"]["podSelector"]["matchLabels"], template["metadata"]["labels"]):
        yield "it selects other pods"
    if set(policy["spec"]["policyTypes"]) != {"Ingress", "Egress"}:
        yield "one direction is open"
    named = {port["name"] for port in template["spec"]["containers"][0]["ports"]}
    for rule in policy["spec"]["ingress"]:
        if not rule.get("from") or not rule.get("ports"):
            yield "a rule admits everybody"
        yield from (f"pods have no port {port['port']}" for port in rule.get("ports", []) if port["port"] not in named)


def monitor_problems(monitor: dict, release: list, world):
    wanted = monitor["spec"]["selector"]["matchLabels"]
    services = [each for each in release if each["kind"] == "Service" and selects(wanted, each["metadata"]["labels"])]
    if len(services) != 1:
        return (yield f"it selects {len(services)} services instead of one")
    endpoint = monitor["spec"]["endpoints"][0]
    if endpoint["port"] not in {port["name"] for port in services[0]["spec"]["ports"]}:
        yield f"its service has no port {endpoint['port']}"
    jobs = {each.get("replacement") for each in endpoint.get("relabelings", []) if each.get("targetLabel") == "job"}
    if not world.jobs <= jobs:
        yield f"alerts are about the job {sorted(world.jobs)}, this one is {sorted(jobs) or 'named after its service'}"
    deployment = next(each for each in release if each["kind"] == "Deployment")
    flags = dict(flags_of(deployment["spec"]["template"]["spec"]["containers"][0]))
    if {"--tls-cert" in flags} != {endpoint.get("scheme") == "https", "tlsConfig" in endpoint}:
        yield "it has to speak TLS where the server does, and only there"
    if "--token-file" in flags and "authorization" not in endpoint:
        yield "it has no token"


def release_problems(manifest: dict, release: list, world, tags: bool) -> list:
    """What is wrong with a manifest beside the others of its release."""
    kind, spec = manifest["kind"], manifest.get("spec", {})
    found = []
    deployment = next((each for each in release if each["kind"] == "Deployment"), None)
    if kind == "Deployment":
        found += deployment_problems(manifest, release, world, tags)
    elif kind == "Service":
        found += service_problems(manifest, deployment)
    elif kind == "NetworkPolicy":
        found += network_policy_problems(manifest, deployment)
    elif kind == "PodDisruptionBudget":
        if not selects(spec["selector"]["matchLabels"], deployment["spec"]["template"]["metadata"]["labels"]):
            found.append("it selects other pods")
    elif kind == "HorizontalPodAutoscaler":
        name = deployment["metadata"]["name"]
        if spec["scaleTargetRef"] != {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}:
            found.append("it scales something else")
    elif kind == "ServiceMonitor":
        found += monitor_problems(manifest, release, world)
    elif kind == "PrometheusRule":
        if spec["groups"] != world.alert_groups:
            found.append("its rules are not those of docker/monitoring/alerts.yaml")
    elif kind == "ClusterServingRuntime":
        found += pod_problems(spec, world, tags)
        port = spec["containers"][0]["ports"][0]["name"]
        if spec["protocolVersions"] != {"h2c": ["grpc-v2"], "http1": ["v2"]}.get(port):
            found.append(f"{spec['protocolVersions']} at the port {port}")
        if {version for each in release if each["kind"] == kind for version in each["spec"]["protocolVersions"]} != {"v2", "grpc-v2"}:
            found.append("a protocol version is missing")
        if not dict(flags_of(spec["containers"][0])).get("--model", "").startswith("{{.Name}}=/mnt/models"):
            found.append("it does not serve /mnt/models under the service's name")
    elif kind == "InferenceService":
        runtimes = [each for each in release if each["kind"] == "ClusterServingRuntime"]
        model = spec["predictor"]["model"]
        if not any(model["modelFormat"]["name"] in [each["name"] for each in runtime["spec"]["supportedModelFormats"]]
                   and model["protocolVersion"] in runtime["spec"]["protocolVersions"] for runtime in runtimes):
            found.append("no runtime is for it")
        if spec["predictor"].get("enableServiceLinks") is not False:
            found.append("pods get variables named after services")
    same = [each for each in release if (each["kind"], each["metadata"]["name"]) == (kind, manifest["metadata"]["name"])]
    return found + (["two manifests have its name"] if len(same) > 1 else [])
