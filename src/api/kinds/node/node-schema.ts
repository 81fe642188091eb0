// The schema of Node. The rules are in node.ts and node-rules.ts. The CSI drivers of a node are in ../csi-node.
import {
  boolean,
  type Infer,
  int32,
  int64,
  list,
  map,
  object,
  oneOf,
  opt,
  ptr,
  quantity,
  req,
  string,
  time,
} from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'

const taint = object('io.k8s.api.core.v1.Taint', 'Repels pods that do not tolerate it from a node.', {
  key: req(1, string, 'Name of the taint, such as node.kubernetes.io/unreachable.'),
  value: opt(2, string, 'Value that a toleration with operator Equal must have.'),
  effect: req(
    3,
    oneOf('NoSchedule', 'PreferNoSchedule', 'NoExecute'),
    'Effect on pods that do not tolerate it: not scheduled, preferably not scheduled, or evicted.',
  ),
  timeAdded: ptr(4, time, 'When the taint was added; evictions count from this time.'),
})

export type Taint = Infer<typeof taint>

const configMapNodeConfigSource = object(
  'io.k8s.api.core.v1.ConfigMapNodeConfigSource',
  'A ConfigMap with the configuration of a node agent.',
  {
    namespace: req(1, string, 'Namespace of the ConfigMap.'),
    name: req(2, string, 'Name of the ConfigMap.'),
    uid: opt(3, string, 'UID of the ConfigMap; in status only.'),
    resourceVersion: opt(4, string, 'Version of the ConfigMap in use; in status only.'),
    kubeletConfigKey: req(5, string, 'Key of the configuration in the ConfigMap.'),
  },
)

const nodeConfigSource = object(
  'io.k8s.api.core.v1.NodeConfigSource',
  'Source of the configuration of a node agent. Deprecated: ignored.',
  {
    configMap: ptr(2, configMapNodeConfigSource, 'The ConfigMap to read.'),
  },
)

const nodePodPreemptionPolicy = object('io.k8s.api.core.v1.NodePodPreemptionPolicy', 'Limits preemption on a node.', {
  disableResizePreemption: opt(1, list(string), 'Kinds of pods that must not be preempted for the resize of a pod.', {
    list: 'set',
  }),
})

const nodeSpec = object('io.k8s.api.core.v1.NodeSpec', 'Desired state of a node.', {
  podCIDR: opt(1, string, 'First CIDR of podCIDRs; immutable once set.'),
  podCIDRs: opt(7, list(string), 'CIDRs of pod IPs, at most one per IP family; immutable once set.', {
    merge: '',
    list: 'set',
  }),
  providerID: opt(3, string, 'ID of the machine at its cloud provider; immutable once set.'),
  unschedulable: opt(4, boolean, 'If true, no new pods are scheduled to the node.'),
  taints: opt(5, list(taint), 'Taints of the node; unique by key and effect.'),
  configSource: ptr(6, nodeConfigSource, 'Configuration from a ConfigMap. Deprecated: ignored.'),
  externalID: opt(2, string, 'Deprecated: not used.'),
  podPreemptionPolicy: ptr(8, nodePodPreemptionPolicy, 'Limits preemption on this node.'),
})

const nodeCondition = object('io.k8s.api.core.v1.NodeCondition', 'A condition of a node.', {
  type: req(1, string, 'Type of the condition, such as Ready or DiskPressure.'),
  status: req(2, string, 'Status of the condition: True, False or Unknown.'),
  lastHeartbeatTime: opt(3, time, 'When the node last reported the condition.'),
  lastTransitionTime: opt(4, time, 'When the status last changed.'),
  reason: opt(5, string, 'Machine-readable reason for the status, in CamelCase.'),
  message: opt(6, string, 'Human-readable explanation of the status.'),
})

const nodeAddress = object('io.k8s.api.core.v1.NodeAddress', 'An address of a node.', {
  type: req(1, string, 'Type of the address: Hostname, InternalIP, ExternalIP, InternalDNS or ExternalDNS.'),
  address: req(2, string, 'The address itself.'),
})

const daemonEndpoint = object('io.k8s.api.core.v1.DaemonEndpoint', 'Endpoint of a service on the node.', {
  Port: req(1, int32, 'Port number.'),
})

const nodeDaemonEndpoints = object('io.k8s.api.core.v1.NodeDaemonEndpoints', 'Endpoints of services on the node.', {
  kubeletEndpoint: opt(1, daemonEndpoint, 'Endpoint of the node agent.'),
})

const nodeSwapStatus = object('io.k8s.api.core.v1.NodeSwapStatus', 'Swap space of a node.', {
  capacity: ptr(1, int64, 'Size of the swap space in bytes.'),
})

const nodeSystemInfo = object('io.k8s.api.core.v1.NodeSystemInfo', 'IDs, versions and architecture of a node.', {
  machineID: req(1, string, 'ID of the machine from its operating system.'),
  systemUUID: req(2, string, 'ID of the machine from its firmware.'),
  bootID: req(3, string, 'ID of the current boot.'),
  kernelVersion: req(4, string, 'Version of the kernel.'),
  osImage: req(5, string, 'Name and version of the operating system.'),
  containerRuntimeVersion: req(6, string, 'Name and version of the container runtime.'),
  kubeletVersion: req(7, string, 'Version of the node agent.'),
  kubeProxyVersion: req(8, string, 'Deprecated: not used.'),
  operatingSystem: req(9, string, 'Family of the operating system, such as linux.'),
  architecture: req(10, string, 'Processor architecture, such as amd64.'),
  swap: ptr(11, nodeSwapStatus, 'Swap space of the machine.'),
  runningInUserNamespace: ptr(12, boolean, 'Whether the node agent runs inside a user namespace.'),
})

const containerImage = object('io.k8s.api.core.v1.ContainerImage', 'A container image on a node.', {
  names: req(1, list(string), 'Names of the image.'),
  sizeBytes: opt(2, int64, 'Size of the image in bytes.'),
})

const attachedVolume = object('io.k8s.api.core.v1.AttachedVolume', 'A volume that is attached to a node.', {
  name: req(1, string, 'Name of the attached volume.'),
  devicePath: req(2, string, 'Path of the device on the node.'),
})

const nodeConfigStatus = object(
  'io.k8s.api.core.v1.NodeConfigStatus',
  'Configuration of a node agent. Deprecated: not set.',
  {
    assigned: ptr(1, nodeConfigSource, 'Configuration that the agent will try to use.'),
    active: ptr(2, nodeConfigSource, 'Configuration in use.'),
    lastKnownGood: ptr(3, nodeConfigSource, 'Configuration to fall back to.'),
    error: opt(4, string, 'Why the assigned configuration is not in use.'),
  },
)

const nodeRuntimeHandlerFeatures = object(
  'io.k8s.api.core.v1.NodeRuntimeHandlerFeatures',
  'Features of a runtime handler.',
  {
    recursiveReadOnlyMounts: ptr(1, boolean, 'Whether the handler supports recursive read-only mounts.'),
    userNamespaces: ptr(2, boolean, 'Whether the handler supports user namespaces.'),
  },
)

const nodeRuntimeHandler = object(
  'io.k8s.api.core.v1.NodeRuntimeHandler',
  'A runtime handler of the container runtime.',
  {
    name: req(1, string, 'Name of the handler; empty for the default one.'),
    features: ptr(2, nodeRuntimeHandlerFeatures, 'Features of the handler.'),
  },
)

const nodeFeatures = object(
  'io.k8s.api.core.v1.NodeFeatures',
  'Features of the node that do not depend on the runtime handler.',
  {
    supplementalGroupsPolicy: ptr(1, boolean, 'Whether supplementalGroupsPolicy is supported.'),
  },
)

const nodeStatus = object('io.k8s.api.core.v1.NodeStatus', 'Status that a node reports.', {
  capacity: opt(1, map(quantity), 'Total resources of the node.'),
  allocatable: opt(2, map(quantity), 'Resources available to pods; defaults to capacity.'),
  phase: opt(3, oneOf('Pending', 'Running', 'Terminated'), 'Deprecated: not used.'),
  conditions: opt(4, list(nodeCondition), 'Conditions of the node, unique by type.', {
    merge: 'type',
    list: 'map',
    keys: ['type'],
  }),
  addresses: opt(5, list(nodeAddress), 'Addresses of the node.', {
    merge: 'type',
    list: 'map',
    keys: ['type'],
  }),
  daemonEndpoints: opt(6, nodeDaemonEndpoints, 'Endpoints of services on the node.'),
  nodeInfo: opt(7, nodeSystemInfo, 'IDs and versions of the machine and its software.'),
  images: opt(8, list(containerImage), 'Container images on the node.'),
  volumesInUse: opt(9, list(string), 'Attached volumes that are still mounted and must not be detached.'),
  volumesAttached: opt(10, list(attachedVolume), 'Volumes that are attached to the node.'),
  config: ptr(11, nodeConfigStatus, 'Configuration of the node agent. Deprecated: not set.'),
  runtimeHandlers: opt(12, list(nodeRuntimeHandler), 'Runtime handlers of the container runtime.'),
  features: ptr(13, nodeFeatures, 'Features of the node that do not depend on the runtime handler.'),
  declaredFeatures: opt(14, list(string), 'Names of the features that the node declares.'),
})

export type NodeStatus = Infer<typeof nodeStatus>

export const node = object('io.k8s.api.core.v1.Node', 'A machine that runs pods.', {
  metadata: req(1, objectMeta, 'Standard object metadata.'),
  spec: opt(2, nodeSpec, 'Desired state of the node.'),
  status: opt(3, nodeStatus, 'Status that the node reports.'),
})

export type Node = Infer<typeof node>
