// Nodes: the machines that run pods and hold their volumes, and what each reports about itself.
// Rules are in kinds/node.ts; which drivers a node has is in storage.ts (CSINode).
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

export const taint = object('io.k8s.api.core.v1.Taint', 'Keeps pods away from a node unless they tolerate it.', {
  key: req(1, string, 'Name of the taint, such as node.kubernetes.io/unreachable.'),
  value: opt(2, string, 'Value that a toleration may have to equal.'),
  effect: req(
    3,
    oneOf('NoSchedule', 'PreferNoSchedule', 'NoExecute'),
    'What happens to pods that do not tolerate it: not placed, avoided, or evicted.',
  ),
  timeAdded: ptr(4, time, 'When the taint was put on the node; evictions count from here.'),
})

export type Taint = Infer<typeof taint>

export const configMapNodeConfigSource = object(
  'io.k8s.api.core.v1.ConfigMapNodeConfigSource',
  'A ConfigMap that holds settings of a node agent.',
  {
    namespace: req(1, string, 'Namespace of the ConfigMap.'),
    name: req(2, string, 'Name of the ConfigMap.'),
    uid: opt(3, string, 'Identity of the ConfigMap; known in status only.'),
    resourceVersion: opt(4, string, 'Version of the ConfigMap in use; known in status only.'),
    kubeletConfigKey: req(5, string, 'Key under which the settings are found.'),
  },
)

export const nodeConfigSource = object(
  'io.k8s.api.core.v1.NodeConfigSource',
  'Where a node agent gets its settings from. No longer acted on.',
  {
    configMap: ptr(2, configMapNodeConfigSource, 'The ConfigMap to read.'),
  },
)

export const nodePodPreemptionPolicy = object(
  'io.k8s.api.core.v1.NodePodPreemptionPolicy',
  'What may be preempted on the node to make room.',
  {
    disableResizePreemption: opt(1, list(string), 'Kinds of pods that a growing pod may not push off the node.', {
      list: 'set',
    }),
  },
)

export const nodeSpec = object('io.k8s.api.core.v1.NodeSpec', 'What is wanted of a node.', {
  podCIDR: opt(1, string, 'First range of pod addresses; cannot change once set.'),
  podCIDRs: opt(7, list(string), 'Ranges of pod addresses, at most one per address family; cannot change once set.', {
    merge: '',
    list: 'set',
  }),
  providerID: opt(3, string, 'Name the machine has at its provider; set once.'),
  unschedulable: opt(4, boolean, 'No new pods are placed here while this is true.'),
  taints: opt(5, list(taint), 'Marks that keep pods away unless they tolerate them; unique by key and effect.'),
  configSource: ptr(6, nodeConfigSource, 'Settings from a ConfigMap. No longer acted on.'),
  externalID: opt(2, string, 'Older name for the machine at its provider. Not used any more.'),
  podPreemptionPolicy: ptr(8, nodePodPreemptionPolicy, 'Limits what may be preempted on this node.'),
})

export type NodeSpec = Infer<typeof nodeSpec>

export const nodeCondition = object('io.k8s.api.core.v1.NodeCondition', 'One statement about how a node is doing.', {
  type: req(1, string, 'What the statement is about, such as Ready or DiskPressure.'),
  status: req(2, string, 'Whether it holds: True, False or Unknown.'),
  lastHeartbeatTime: opt(3, time, 'When the node last said so.'),
  lastTransitionTime: opt(4, time, 'When the status last changed.'),
  reason: opt(5, string, 'Why, in one word.'),
  message: opt(6, string, 'Why, in a sentence.'),
})

export const nodeAddress = object('io.k8s.api.core.v1.NodeAddress', 'An address under which a node can be reached.', {
  type: req(1, string, 'Kind of address: Hostname, InternalIP, ExternalIP, InternalDNS or ExternalDNS.'),
  address: req(2, string, 'The address itself.'),
})

export const daemonEndpoint = object(
  'io.k8s.api.core.v1.DaemonEndpoint',
  "Where one of the node's own services listens.",
  {
    Port: req(1, int32, 'Port number it listens on.'),
  },
)

export const nodeDaemonEndpoints = object(
  'io.k8s.api.core.v1.NodeDaemonEndpoints',
  "Where the node's own services listen.",
  {
    kubeletEndpoint: opt(1, daemonEndpoint, 'Where the node agent listens.'),
  },
)

export const nodeSwapStatus = object('io.k8s.api.core.v1.NodeSwapStatus', 'Swap space of a node.', {
  capacity: ptr(1, int64, 'Size of the swap space in bytes.'),
})

export const nodeSystemInfo = object(
  'io.k8s.api.core.v1.NodeSystemInfo',
  'What a node is made of: identities, versions, architecture.',
  {
    machineID: req(1, string, 'Identity of the machine, from its operating system.'),
    systemUUID: req(2, string, 'Identity of the machine, from its firmware.'),
    bootID: req(3, string, 'Changes with every boot.'),
    kernelVersion: req(4, string, 'Version of the kernel.'),
    osImage: req(5, string, 'Name and version of the operating system.'),
    containerRuntimeVersion: req(6, string, 'Name and version of the container runtime.'),
    kubeletVersion: req(7, string, 'Version of the node agent.'),
    kubeProxyVersion: req(8, string, 'Not used any more.'),
    operatingSystem: req(9, string, 'Family of the operating system, such as linux.'),
    architecture: req(10, string, 'Processor architecture, such as amd64.'),
    swap: ptr(11, nodeSwapStatus, 'Swap space of the machine.'),
    runningInUserNamespace: ptr(12, boolean, 'Whether the node agent runs inside a user namespace.'),
  },
)

export const containerImage = object('io.k8s.api.core.v1.ContainerImage', 'An image that is present on a node.', {
  names: req(1, list(string), 'Names under which the image is known.'),
  sizeBytes: opt(2, int64, 'Size of the image in bytes.'),
})

export const attachedVolume = object('io.k8s.api.core.v1.AttachedVolume', 'A volume that is attached to a node.', {
  name: req(1, string, 'Name of the attached volume.'),
  devicePath: req(2, string, 'Device under which the node sees it.'),
})

export const nodeConfigStatus = object(
  'io.k8s.api.core.v1.NodeConfigStatus',
  'Which settings a node agent uses. No longer filled in.',
  {
    assigned: ptr(1, nodeConfigSource, 'Settings it will try to use.'),
    active: ptr(2, nodeConfigSource, 'Settings it uses now.'),
    lastKnownGood: ptr(3, nodeConfigSource, 'Settings it falls back to.'),
    error: opt(4, string, 'Why the assigned settings are not in use.'),
  },
)

export const nodeRuntimeHandlerFeatures = object(
  'io.k8s.api.core.v1.NodeRuntimeHandlerFeatures',
  'What a runtime handler can do.',
  {
    recursiveReadOnlyMounts: ptr(1, boolean, 'Whether it can mount a whole tree read-only.'),
    userNamespaces: ptr(2, boolean, 'Whether it can run pods in user namespaces.'),
  },
)

export const nodeRuntimeHandler = object(
  'io.k8s.api.core.v1.NodeRuntimeHandler',
  'One way in which the node can run containers.',
  {
    name: req(1, string, 'Name of the handler; empty for the default one.'),
    features: ptr(2, nodeRuntimeHandlerFeatures, 'What the handler can do.'),
  },
)

export const nodeFeatures = object('io.k8s.api.core.v1.NodeFeatures', 'What the node can do, whatever the handler.', {
  supplementalGroupsPolicy: ptr(1, boolean, 'Whether pods may choose how supplemental groups are made up.'),
})

export const nodeStatus = object('io.k8s.api.core.v1.NodeStatus', 'What a node reports about itself.', {
  capacity: opt(1, map(quantity), 'All resources of the node.'),
  allocatable: opt(2, map(quantity), 'Resources of the node that pods may use; all of them if unset.'),
  phase: opt(3, oneOf('Pending', 'Running', 'Terminated'), 'Not used any more.'),
  conditions: opt(4, list(nodeCondition), 'How the node is doing, one statement per type.', {
    merge: 'type',
    list: 'map',
    keys: ['type'],
  }),
  addresses: opt(5, list(nodeAddress), 'Addresses under which the node can be reached.', {
    merge: 'type',
    list: 'map',
    keys: ['type'],
  }),
  daemonEndpoints: opt(6, nodeDaemonEndpoints, "Where the node's own services listen."),
  nodeInfo: opt(7, nodeSystemInfo, 'Identities and versions of the machine and its software.'),
  images: opt(8, list(containerImage), 'Images present on the node.'),
  volumesInUse: opt(9, list(string), 'Attached volumes that the node still has mounted; they are not detached before.'),
  volumesAttached: opt(10, list(attachedVolume), 'Volumes that are attached to the node.'),
  config: ptr(11, nodeConfigStatus, 'Which settings the node agent uses. No longer filled in.'),
  runtimeHandlers: opt(12, list(nodeRuntimeHandler), 'Ways in which the node can run containers.'),
  features: ptr(13, nodeFeatures, 'What the node can do, whatever the handler.'),
  declaredFeatures: opt(14, list(string), 'Names of features the node says it has.'),
})

export type NodeStatus = Infer<typeof nodeStatus>

export const node = object('io.k8s.api.core.v1.Node', 'A machine that runs pods and holds their volumes.', {
  metadata: req(1, objectMeta, 'Name, namespace, labels, annotations and the rest of what every object carries.'),
  spec: opt(2, nodeSpec, 'What is wanted of the node.'),
  status: opt(3, nodeStatus, 'What the node reports about itself.'),
})

export type Node = Infer<typeof node>
