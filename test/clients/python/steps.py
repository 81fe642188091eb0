"""Runs steps with the official Python client against a server, and prints the result of each step: "ok NAME" or
"failed NAME: REASON". Usage: steps.py KUBECONFIG KUBECONFIG_OF_A_COMPACTING_SERVER CACHE_DIRECTORY
"""

import json
import os
import sys
import threading
import traceback

from kubernetes import client, config, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import ConflictError, NotFoundError

NAMESPACE = "shop"


class Suite:
    """Clients that the steps share."""

    def __init__(self, kubeconfig, compacting_kubeconfig, cache_dir):
        self.api = config.new_client_from_config(kubeconfig)
        self.core = client.CoreV1Api(self.api)
        self.storage = client.StorageV1Api(self.api)
        self.compacting = client.CoreV1Api(config.new_client_from_config(compacting_kubeconfig))
        self.cache_file = os.path.join(cache_dir, "discovery.json")
        self.core.create_namespace({"metadata": {"name": NAMESPACE}})

    def add_map(self, name, data=None, labels=None):
        body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels=labels), data=data)
        return self.core.create_namespaced_config_map(NAMESPACE, body)


def equal(description, got, want):
    if got != want:
        raise AssertionError(f"{description}: got {got!r}, want {want!r}")


def expect_error(description, call, status, reason, kind=ApiException):
    """Expects the call to fail with this status code and reason."""
    try:
        call()
    except kind as error:
        equal(f"{description}: code", error.status, status)
        equal(f"{description}: reason", json.loads(error.body)["reason"], reason)
        return
    raise AssertionError(f"{description}: succeeded, want {status} {reason}")


def create(suite):
    claim = client.V1PersistentVolumeClaim(
        metadata=client.V1ObjectMeta(name="orders"),
        spec=client.V1PersistentVolumeClaimSpec(
            access_modes=["ReadWriteOnce"],
            resources=client.V1VolumeResourceRequirements(requests={"storage": "1Gi"}),
            storage_class_name="gold",
        ),
    )
    created = suite.core.create_namespaced_persistent_volume_claim(NAMESPACE, claim)
    equal("volume mode", created.spec.volume_mode, "Filesystem")
    equal("phase", created.status.phase, "Pending")
    silver = client.V1StorageClass(metadata=client.V1ObjectMeta(name="silver"), provisioner="disks.example.com")
    equal("reclaim policy", suite.storage.create_storage_class(silver).reclaim_policy, "Delete")
    created.spec.resources.requests["storage"] = "1"
    created.metadata.labels = {"app": "shop"}
    replaced = suite.core.replace_namespaced_persistent_volume_claim_status("orders", NAMESPACE, created)
    equal("size, of a status update", replaced.spec.resources.requests, {"storage": "1Gi"})


def errors(suite):
    read, add = suite.core.read_namespaced_config_map, suite.add_map
    expect_error("read", lambda: read("missing", NAMESPACE), 404, "NotFound")
    add("existing")
    expect_error("second create", lambda: add("existing"), 409, "AlreadyExists")
    expect_error("bad name", lambda: add("Bad_Name"), 422, "Invalid")
    stale = read("existing", NAMESPACE)
    suite.core.patch_namespaced_config_map("existing", NAMESPACE, {"data": {"a": "1"}})
    replace = suite.core.replace_namespaced_config_map
    expect_error("replace of an old version", lambda: replace("existing", NAMESPACE, stale), 409, "Conflict")


def list_pages(suite):
    for n in range(5):
        suite.add_map(f"page-{n}", labels={"paged": "yes"})
    names, token, pages = [], None, 0
    while token != "":
        page = suite.core.list_namespaced_config_map(NAMESPACE, label_selector="paged=yes", limit=2, _continue=token)
        names += [item.metadata.name for item in page.items]
        token = page.metadata._continue or ""
        pages += 1
    equal("names", names, [f"page-{n}" for n in range(5)])
    equal("pages", pages, 3)


def patch_dict(suite):
    """A dict is sent as a strategic merge patch: conditions are merged by type."""
    patch = suite.core.patch_namespaced_persistent_volume_claim_status
    condition = {"type": "Resizing", "status": "True"}
    patch("orders", NAMESPACE, {"status": {"conditions": [condition]}})
    other = {"type": "FileSystemResizePending", "status": "True"}
    patched = patch("orders", NAMESPACE, {"status": {"conditions": [other]}})
    equal("types", sorted(c.type for c in patched.status.conditions), ["FileSystemResizePending", "Resizing"])


def patch_list(suite):
    """A list is sent as a JSON patch."""
    suite.add_map("operated", data={"a": "1"})
    patch = suite.core.patch_namespaced_config_map
    patched = patch("operated", NAMESPACE, [{"op": "replace", "path": "/data/a", "value": "2"}])
    equal("data", patched.data, {"a": "2"})
    failing = [{"op": "test", "path": "/data/a", "value": "1"}]
    expect_error("failing test", lambda: patch("operated", NAMESPACE, failing), 422, "Invalid")


def watch_resumed(suite):
    version = suite.add_map("watched", data={"n": "0"}).metadata.resource_version
    change = lambda n: suite.core.patch_namespaced_config_map("watched", NAMESPACE, {"data": {"n": n}})
    received = []
    for n in range(1, 4):
        change(str(n))
        events = watch.Watch()
        stream = events.stream(
            suite.core.list_namespaced_config_map,
            NAMESPACE,
            field_selector="metadata.name=watched",
            resource_version=version,
        )
        event = next(stream)
        received.append((event["type"], event["object"].data["n"]))
        version = event["object"].metadata.resource_version
        events.stop()
    equal("events", received, [("MODIFIED", "1"), ("MODIFIED", "2"), ("MODIFIED", "3")])


def informer_loop(suite):
    """Lists once, then repeatedly watches from the last version, as controllers in Python do."""
    first = suite.core.list_namespaced_config_map(NAMESPACE, label_selector="wave")
    equal("at first", first.items, [])
    writer = threading.Thread(
        target=lambda: [suite.add_map(f"wave-{n}", labels={"wave": "yes"}) for n in range(20)]
    )
    writer.start()
    received, version = [], first.metadata.resource_version
    while len(received) < 20:
        events = watch.Watch()
        stream = events.stream(
            suite.core.list_namespaced_config_map,
            NAMESPACE,
            label_selector="wave",
            resource_version=version,
            timeout_seconds=10,
            allow_watch_bookmarks=True,
        )
        for count, event in enumerate(stream, start=1):
            if event["type"] == "BOOKMARK":
                continue
            received.append(event["object"].metadata.name)
            version = event["object"].metadata.resource_version
            if count == 3 or len(received) == 20:
                events.stop()
    writer.join()
    equal("received", received, [f"wave-{n}" for n in range(20)])


def watch_expired(suite):
    """Expects 410 Expired for a version that the server has compacted."""
    core = suite.compacting
    old = core.create_namespaced_config_map("default", {"metadata": {"name": "a"}}).metadata.resource_version
    for n in range(5_000):
        core.patch_namespaced_config_map("a", "default", {"data": {"n": str(n)}})
        try:
            core.list_namespaced_config_map("default", resource_version=old, resource_version_match="Exact")
        except ApiException as error:
            equal("code of the list", error.status, 410)
            break
    else:
        raise AssertionError("the version was never compacted")
    try:
        # A watch with a timeout does not list and retry automatically.
        for event in watch.Watch().stream(
            core.list_namespaced_config_map, "default", resource_version=old, timeout_seconds=5
        ):
            raise AssertionError(f"got {event['type']}, want an error")
    except ApiException as error:
        equal("code", error.status, 410)
        equal("reason", error.reason.startswith("Expired: "), True)
        return
    raise AssertionError("the watch ended without an error")


def delete(suite):
    core = suite.core
    suite.add_map("doomed")
    delete_map = lambda **options: core.delete_namespaced_config_map("doomed", NAMESPACE, **options)
    delete_map(dry_run="All", grace_period_seconds=0, propagation_policy="Background")
    core.read_namespaced_config_map("doomed", NAMESPACE)
    other = client.V1DeleteOptions(preconditions=client.V1Preconditions(uid="11111111-2222-3333-4444-555555555555"))
    expect_error("delete of another UID", lambda: delete_map(body=other), 409, "Conflict")
    expect_error("unknown policy", lambda: delete_map(propagation_policy="Sideways"), 422, "Invalid")
    equal("status", delete_map(grace_period_seconds=0, propagation_policy="Background")["status"], "Success")
    expect_error("read", lambda: core.read_namespaced_config_map("doomed", NAMESPACE), 404, "NotFound")
    core.delete_collection_namespaced_config_map(NAMESPACE, label_selector="paged=yes")
    equal("remaining", core.list_namespaced_config_map(NAMESPACE, label_selector="paged").items, [])


def dynamic_client(suite):
    dynamic = DynamicClient(suite.api, cache_file=suite.cache_file)
    maps = dynamic.resources.get(api_version="v1", kind="ConfigMap")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "dynamic"}, "data": {"a": "1"}}
    maps.create(body=body, namespace=NAMESPACE)
    merged = maps.patch(
        name="dynamic",
        namespace=NAMESPACE,
        body={"data": {"a": None, "b": "2"}},
        content_type="application/merge-patch+json",
    )
    equal("data", merged.data.to_dict(), {"b": "2"})
    names = [item.metadata.name for item in maps.get(namespace=NAMESPACE, field_selector="metadata.name=dynamic").items]
    equal("names", names, ["dynamic"])
    event = next(maps.watch(namespace=NAMESPACE, name="dynamic", timeout=10))
    equal("event", (event["type"], event["object"].metadata.name), ("ADDED", "dynamic"))
    maps.delete(name="dynamic", namespace=NAMESPACE)
    expect_error("get", lambda: maps.get(name="dynamic", namespace=NAMESPACE), 404, "NotFound", kind=NotFoundError)


def server_side_apply(suite):
    dynamic = DynamicClient(suite.api, cache_file=suite.cache_file)
    maps = dynamic.resources.get(api_version="v1", kind="ConfigMap")

    def apply(data, manager, **options):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": data}
        return maps.server_side_apply(body=body, namespace=NAMESPACE, field_manager=manager, **options)

    apply({"a": "1", "b": "2"}, "owner")
    equal("data, without b", apply({"a": "1"}, "owner").data.to_dict(), {"a": "1"})
    expect_error("apply of another manager's field", lambda: apply({"a": "9"}, "rival"), 409, "Conflict", kind=ConflictError)
    equal("data, forced", apply({"a": "9"}, "rival", force_conflicts=True).data.to_dict(), {"a": "9"})


STEPS = {
    "create": create,
    "errors": errors,
    "pages": list_pages,
    "dict patch": patch_dict,
    "list patch": patch_list,
    "watch resumed": watch_resumed,
    "informer loop": informer_loop,
    "watch expired": watch_expired,
    "delete": delete,
    "dynamic client": dynamic_client,
    "server-side apply": server_side_apply,
}


def main():
    suite, failed = Suite(*sys.argv[1:]), False
    for name, run in STEPS.items():
        try:
            run(suite)
            print(f"ok {name}", flush=True)
        except Exception as error:  # the next steps must run after any failure
            failed = True
            traceback.print_exc()
            print(f"failed {name}: {str(error)!r}", flush=True)
    sys.exit(1 if failed else 0)


main()
