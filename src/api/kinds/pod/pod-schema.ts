// The schemas of Pod and of Binding, which assigns a pod to a node. Containers are in container-schema.ts and volumes are in
// pod-volumes-schema.ts. The rules are in pod.ts and the *-rules.ts files.

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
import { volumeHealthCondition } from '../claim/claim-schema.ts'
import { labelSelector, objectMeta } from '../shared/meta-schema.ts'
import { localObjectReference, nodeSelector, nodeSelectorTerm, objectReference } from '../shared/references-schema.ts'
import {
  appArmorProfile,
  container,
  ephemeralContainer,
  resourceRequirements,
  seccompProfile,
  seLinuxOptions,
  stopSignal,
  windowsSecurityContextOptions,
} from './container-schema.ts'
import { volume } from './pod-volumes-schema.ts'

const sysctl = object('io.k8s.api.core.v1.Sysctl', 'A kernel parameter set for the whole pod.', {
  name: req(1, string, 'Kernel parameter to set, for example net.core.somaxconn.'),
  value: req(2, string, 'Value of the kernel parameter.'),
})

const podSecurityContext = object(
  'io.k8s.api.core.v1.PodSecurityContext',
  'Security settings of all containers of a pod; a container may override them.',
  {
    seLinuxOptions: ptr(1, seLinuxOptions, 'SELinux label for every container that does not set its own.'),
    windowsOptions: ptr(
      8,
      windowsSecurityContextOptions,
      'Windows settings for every container that does not set its own.',
    ),
    runAsUser: ptr(2, int64, 'User ID of container processes; a container may override it.'),
    runAsGroup: ptr(6, int64, 'Primary group ID of container processes; a container may override it.'),
    runAsNonRoot: ptr(3, boolean, 'Do not start containers that would run as user ID 0.'),
    supplementalGroups: opt(4, list(int64), 'Extra group IDs given to the first process of every container.'),
    supplementalGroupsPolicy: ptr(
      12,
      oneOf('Merge', 'Strict'),
      'Merge adds the groups of the image to supplementalGroups; Strict does not.',
    ),
    fsGroup: ptr(5, int64, 'Group ID that owns the files of volumes that support ownership management.'),
    sysctls: opt(7, list(sysctl), 'Kernel parameters to set in the namespaces of this pod.'),
    fsGroupChangePolicy: ptr(
      9,
      oneOf('OnRootMismatch', 'Always'),
      'Whether the ownership of volumes is changed at every mount, or only if the ownership of the root differs.',
    ),
    seccompProfile: ptr(10, seccompProfile, 'System call filter for every container that does not set its own.'),
    appArmorProfile: ptr(11, appArmorProfile, 'AppArmor profile for every container that does not set its own.'),
    seLinuxChangePolicy: ptr(
      13,
      string,
      'How volumes get their SELinux label: MountOption at mount time, Recursive file by file.',
    ),
  },
)

const preferredSchedulingTerm = object(
  'io.k8s.api.core.v1.PreferredSchedulingTerm',
  'A weighted preference for nodes.',
  {
    weight: req(1, int32, 'Weight from 1 to 100, added to the score of matching nodes.'),
    preference: req(2, nodeSelectorTerm, 'Term that selects the nodes.'),
  },
)

const nodeAffinity = object('io.k8s.api.core.v1.NodeAffinity', 'Required and preferred nodes of a pod.', {
  requiredDuringSchedulingIgnoredDuringExecution: ptr(
    1,
    nodeSelector,
    'Nodes on which the pod can run; the scheduler evaluates this, and running pods are not affected.',
  ),
  preferredDuringSchedulingIgnoredDuringExecution: opt(
    2,
    list(preferredSchedulingTerm),
    'Preferences; nodes with the highest sum of weights are preferred.',
  ),
})

export const podAffinityTerm = object(
  'io.k8s.api.core.v1.PodAffinityTerm',
  'A set of pods and the topology domain in which they count as co-located.',
  {
    labelSelector: ptr(1, labelSelector, 'Selects the pods; none if unset.'),
    namespaces: opt(2, list(string), 'Namespaces of the pods; by default that of this pod.'),
    topologyKey: req(3, string, 'Node label that defines the topology domains, such as topology.kubernetes.io/zone.'),
    namespaceSelector: ptr(4, labelSelector, 'Selects further namespaces by label; all if empty.'),
    matchLabelKeys: opt(5, list(string), 'Label keys for which the pods must have the same values as this pod.'),
    mismatchLabelKeys: opt(6, list(string), 'Label keys for which the pods must have other values than this pod.'),
  },
)

const weightedPodAffinityTerm = object(
  'io.k8s.api.core.v1.WeightedPodAffinityTerm',
  'A pod affinity term with a weight.',
  {
    weight: req(1, int32, 'Weight from 1 to 100, added to the score of nodes that satisfy the term.'),
    podAffinityTerm: req(2, podAffinityTerm, 'The term that the weight applies to.'),
  },
)

export const podAffinity = object('io.k8s.api.core.v1.PodAffinity', 'Rules that place a pod near other pods.', {
  requiredDuringSchedulingIgnoredDuringExecution: opt(
    1,
    list(podAffinityTerm),
    'Pods that must run in the topology domain of the node.',
  ),
  preferredDuringSchedulingIgnoredDuringExecution: opt(
    2,
    list(weightedPodAffinityTerm),
    'Preferences; nodes with the highest sum of weights are preferred.',
  ),
})

const podAntiAffinity = object('io.k8s.api.core.v1.PodAntiAffinity', 'Rules that place a pod away from other pods.', {
  requiredDuringSchedulingIgnoredDuringExecution: opt(
    1,
    list(podAffinityTerm),
    'Pods that must not run in the topology domain of the node.',
  ),
  preferredDuringSchedulingIgnoredDuringExecution: opt(
    2,
    list(weightedPodAffinityTerm),
    'Preferences; nodes with the lowest sum of weights are preferred.',
  ),
})

export const affinity = object(
  'io.k8s.api.core.v1.Affinity',
  'Placement rules of a pod, relative to nodes and to other pods.',
  {
    nodeAffinity: ptr(1, nodeAffinity, 'Rules about which nodes to run on, by their labels.'),
    podAffinity: ptr(2, podAffinity, 'Rules that place the pod near other pods.'),
    podAntiAffinity: ptr(3, podAntiAffinity, 'Rules that place the pod away from other pods.'),
  },
)

const toleration = object('io.k8s.api.core.v1.Toleration', 'Allows a pod to run on nodes with a matching taint.', {
  key: opt(1, string, 'Taint key to match; empty with operator Exists matches every key and value.'),
  operator: opt(
    2,
    oneOf('Exists', 'Equal', 'Lt', 'Gt'),
    'Comparison of the taint value; Equal by default, Exists matches any value.',
  ),
  value: opt(3, string, 'Taint value to match; must be empty for Exists.'),
  effect: opt(
    4,
    oneOf('NoSchedule', 'PreferNoSchedule', 'NoExecute'),
    'Taint effect to match; empty matches every effect.',
  ),
  tolerationSeconds: ptr(5, int64, 'Seconds until a NoExecute taint evicts the pod; never if unset.'),
})

export type Toleration = Infer<typeof toleration>

const hostAlias = object('io.k8s.api.core.v1.HostAlias', 'An extra line for the hosts file of the pod.', {
  ip: req(1, string, 'IP address of the host names.'),
  hostnames: opt(2, list(string), 'Host names of the IP address.'),
})

const podDNSConfigOption = object('io.k8s.api.core.v1.PodDNSConfigOption', 'A resolver option.', {
  name: opt(1, string, 'Option name as written in resolv.conf, for example ndots.'),
  value: ptr(2, string, 'Value of the option, if it has one.'),
})

const podDNSConfig = object('io.k8s.api.core.v1.PodDNSConfig', 'Resolver settings in addition to those of dnsPolicy.', {
  nameservers: opt(1, list(string), 'Name server addresses to append, without duplicates.'),
  searches: opt(2, list(string), 'Search domains to append, without duplicates.'),
  options: opt(3, list(podDNSConfigOption), 'Resolver options; they override those of dnsPolicy.'),
})

const podReadinessGate = object(
  'io.k8s.api.core.v1.PodReadinessGate',
  'An additional condition that must be true before the pod counts as ready.',
  {
    conditionType: req(1, string, 'Type of the pod condition that has to be True.'),
  },
)

export const topologySpreadConstraint = object(
  'io.k8s.api.core.v1.TopologySpreadConstraint',
  'How pods are spread over topology domains.',
  {
    maxSkew: req(1, int32, 'Maximum difference in the number of matching pods between a domain and the smallest one.'),
    topologyKey: req(
      2,
      string,
      'Node label that divides the nodes into domains; nodes with the same value are in the same domain.',
    ),
    whenUnsatisfiable: req(
      3,
      oneOf('DoNotSchedule', 'ScheduleAnyway'),
      'Whether the pod stays pending or is scheduled anyway if the constraint cannot be satisfied.',
    ),
    labelSelector: ptr(4, labelSelector, 'Selects the pods that are counted.'),
    minDomains: ptr(5, int32, 'With fewer eligible domains than this, the global minimum is treated as zero.'),
    nodeAffinityPolicy: ptr(
      6,
      oneOf('Ignore', 'Honor'),
      'Whether only nodes that match the node selector and affinity are counted; Honor by default.',
    ),
    nodeTaintsPolicy: ptr(
      7,
      oneOf('Ignore', 'Honor'),
      'Whether only nodes whose taints the pod tolerates are counted; Ignore by default.',
    ),
    matchLabelKeys: opt(8, list(string), 'Label keys for which counted pods must have the same values as this pod.'),
  },
)

const podOS = object('io.k8s.api.core.v1.PodOS', 'The operating system of a pod.', {
  name: req(1, string, 'Operating system of the containers: linux or windows.'),
})

const podSchedulingGate = object(
  'io.k8s.api.core.v1.PodSchedulingGate',
  'A gate that must be removed before the pod is scheduled.',
  {
    name: req(1, string, 'Name of the gate; the controller that set it removes it.'),
  },
)

const podResourceClaim = object(
  'io.k8s.api.core.v1.PodResourceClaim',
  'A device claim made available to the containers of a pod, either existing or generated.',
  {
    name: req(1, string, 'Name of the claim for references from containers.'),
    resourceClaimName: ptr(3, string, 'Existing claim to use, from the namespace of the pod.'),
    resourceClaimTemplateName: ptr(4, string, 'Template of a claim that is created and deleted with the pod.'),
  },
)

const podSchedulingGroup = object(
  'io.k8s.api.core.v1.PodSchedulingGroup',
  'The group of pods with which a pod is scheduled.',
  {
    podGroupName: ptr(1, string, 'PodGroup of this pod, in the same namespace.'),
  },
)

const evictionResponder = object(
  'io.k8s.api.core.v1.EvictionResponder',
  'A controller that handles the graceful eviction of a pod.',
  {
    name: req(1, string, 'Domain-prefixed key of the responder, such as example.com/drainer; unique in the list.'),
    priority: ptr(2, int32, 'From 0 to 100000; the responder with the highest number acts first.'),
  },
  { atomic: true },
)

export const podSpec = object(
  'io.k8s.api.core.v1.PodSpec',
  'Desired state of a pod: containers, volumes, placement and environment.',
  {
    volumes: opt(1, list(volume), 'Volumes that containers of the pod can mount.', {
      merge: 'name',
      retainKeys: true,
      list: 'map',
      keys: ['name'],
    }),
    initContainers: opt(
      20,
      list(container),
      'Containers that run in order before the main ones start: to completion, unless they are sidecars.',
      { merge: 'name', list: 'map', keys: ['name'] },
    ),
    containers: req(2, list(container), 'Containers of the pod, at least one; containers cannot be added or removed.', {
      merge: 'name',
      list: 'map',
      keys: ['name'],
    }),
    ephemeralContainers: opt(
      34,
      list(ephemeralContainer),
      'Containers added to a running pod for debugging, through the ephemeralcontainers subresource.',
      { merge: 'name', list: 'map', keys: ['name'] },
    ),
    restartPolicy: opt(
      3,
      oneOf('Always', 'OnFailure', 'Never'),
      'When terminated containers are restarted; Always by default.',
    ),
    terminationGracePeriodSeconds: ptr(4, int64, 'Seconds between the stop signal and the kill signal; 30 by default.'),
    activeDeadlineSeconds: ptr(5, int64, 'Seconds from startTime until the pod is marked Failed.'),
    dnsPolicy: opt(
      6,
      oneOf('ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None'),
      'Source of the DNS configuration; ClusterFirst by default.',
    ),
    nodeSelector: opt(7, map(string), 'Labels that the node of the pod must have.', { atomic: true }),
    serviceAccountName: opt(8, string, 'Service account whose identity the pod uses.'),
    serviceAccount: opt(9, string, 'Deprecated name of serviceAccountName; always equal to it.'),
    automountServiceAccountToken: ptr(21, boolean, 'Whether a service account token is mounted into the containers.'),
    nodeName: opt(10, string, 'Node of the pod; empty until it is scheduled.'),
    hostNetwork: opt(11, boolean, 'Use the network namespace of the node.'),
    hostPID: opt(12, boolean, 'Use the PID namespace of the node.'),
    hostIPC: opt(13, boolean, 'Use the IPC namespace of the node.'),
    shareProcessNamespace: ptr(27, boolean, 'Share one PID namespace among the containers of the pod.'),
    securityContext: ptr(14, podSecurityContext, 'Security settings for the pod and defaults for its containers.'),
    imagePullSecrets: opt(
      15,
      list(localObjectReference),
      'Secrets, in the same namespace, with credentials for pulling the images.',
      { merge: 'name', list: 'map', keys: ['name'] },
    ),
    hostname: opt(16, string, 'Host name of the pod; defaults to its name.'),
    subdomain: opt(17, string, 'Makes the full host name hostname.subdomain.namespace.svc plus the cluster domain.'),
    affinity: ptr(18, affinity, 'Placement rules relative to nodes and other pods.'),
    schedulerName: opt(19, string, 'Scheduler of the pod; default-scheduler by default.'),
    tolerations: opt(22, list(toleration), 'Taints that the pod tolerates.'),
    hostAliases: opt(23, list(hostAlias), 'Extra lines for the hosts file of the pod.', {
      merge: 'ip',
      list: 'map',
      keys: ['ip'],
    }),
    priorityClassName: opt(24, string, 'PriorityClass of the pod.'),
    priority: ptr(25, int32, 'Priority from the PriorityClass; higher values are scheduled first.'),
    dnsConfig: ptr(26, podDNSConfig, 'Resolver settings in addition to those of dnsPolicy.'),
    readinessGates: opt(
      28,
      list(podReadinessGate),
      'Conditions that must be True, besides ready containers, for the pod to be ready.',
    ),
    runtimeClassName: ptr(29, string, 'RuntimeClass of the pod.'),
    enableServiceLinks: ptr(
      30,
      boolean,
      'Whether services of the namespace are added as environment variables; true by default.',
    ),
    preemptionPolicy: ptr(
      31,
      oneOf('PreemptLowerPriority', 'Never'),
      'Whether pods of lower priority may be preempted for this one.',
    ),
    overhead: opt(32, map(quantity), 'Overhead of the runtime per pod, set from the RuntimeClass.'),
    topologySpreadConstraints: opt(
      33,
      list(topologySpreadConstraint),
      'How pods are spread over zones, nodes or other topology domains.',
      {
        merge: 'topologyKey',
        list: 'map',
        keys: ['topologyKey', 'whenUnsatisfiable'],
      },
    ),
    setHostnameAsFQDN: ptr(35, boolean, 'Make the full domain name of the pod its host name; false by default.'),
    os: ptr(36, podOS, 'Operating system of the containers; determines which other fields may be set.'),
    hostUsers: ptr(37, boolean, 'Whether to use the user namespace of the node; false creates one for the pod.'),
    schedulingGates: opt(
      38,
      list(podSchedulingGate),
      'Gates that block scheduling until all are removed; can only be set on create.',
      { merge: 'name', list: 'map', keys: ['name'] },
    ),
    resourceClaims: opt(39, list(podResourceClaim), 'Device claims to be reserved before the pod starts.', {
      merge: 'name',
      retainKeys: true,
      list: 'map',
      keys: ['name'],
    }),
    resources: ptr(
      40,
      resourceRequirements,
      'CPU, memory and huge pages for the pod as a whole, shared by its containers.',
    ),
    hostnameOverride: ptr(
      41,
      string,
      'Host name in the pod, overriding hostname and subdomain; does not affect DNS records.',
    ),
    schedulingGroup: ptr(43, podSchedulingGroup, 'Group of pods to be scheduled together; immutable.'),
    evictionResponders: opt(
      44,
      list(evictionResponder),
      'Up to ten controllers that handle an eviction of this pod, by priority.',
      { merge: 'name', list: 'map', keys: ['name'] },
    ),
  },
)

export type PodSpec = Infer<typeof podSpec>

const podCondition = object('io.k8s.api.core.v1.PodCondition', 'A condition of a pod.', {
  type: req(1, string, 'Type of the condition, for example PodScheduled or Ready.'),
  observedGeneration: opt(7, int64, 'Generation of the pod that this condition was derived from.'),
  status: req(2, string, 'Status of the condition: True, False or Unknown.'),
  lastProbeTime: opt(3, time, 'When the condition was most recently checked.'),
  lastTransitionTime: opt(4, time, 'When the status of this condition last changed.'),
  reason: opt(5, string, 'Machine-readable reason for the last change of the status, in CamelCase.'),
  message: opt(6, string, 'Human-readable details of the last change.'),
})

const hostIP = object('io.k8s.api.core.v1.HostIP', 'An IP address of the node of a pod.', {
  ip: req(1, string, 'IPv4 or IPv6 address of the node.'),
})

const podIP = object('io.k8s.api.core.v1.PodIP', 'An IP address of a pod.', {
  ip: req(1, string, 'IPv4 or IPv6 address of the pod.'),
})

const containerStateWaiting = object(
  'io.k8s.api.core.v1.ContainerStateWaiting',
  'Why a container is not running yet.',
  {
    reason: opt(1, string, 'Machine-readable reason, such as ContainerCreating.'),
    message: opt(2, string, 'Human-readable details.'),
  },
)

const containerStateRunning = object('io.k8s.api.core.v1.ContainerStateRunning', 'State of a running container.', {
  startedAt: opt(1, time, 'When the container was started.'),
})

const containerStateTerminated = object(
  'io.k8s.api.core.v1.ContainerStateTerminated',
  'State of a terminated container.',
  {
    exitCode: req(1, int32, 'Exit status of the main process; 0 means success.'),
    signal: opt(2, int32, 'Signal that terminated the container, if any.'),
    reason: opt(3, string, 'Machine-readable reason, such as Completed or OOMKilled.'),
    message: opt(4, string, 'Termination message of the container, or other details.'),
    startedAt: opt(5, time, 'When the container was started.'),
    finishedAt: opt(6, time, 'When the container terminated.'),
    containerID: opt(7, string, 'Runtime ID of the terminated container, in the form type://id.'),
  },
)

const containerState = object(
  'io.k8s.api.core.v1.ContainerState',
  'State of a container: waiting, running or terminated; waiting if none is set.',
  {
    waiting: ptr(1, containerStateWaiting, 'Present while the container has not started.'),
    running: ptr(2, containerStateRunning, 'Present while the container is running.'),
    terminated: ptr(3, containerStateTerminated, 'Present after the container has stopped.'),
  },
)

const imageVolumeStatus = object('io.k8s.api.core.v1.ImageVolumeStatus', 'Status of an image volume.', {
  imageRef: opt(1, string, 'Digest of the image that was mounted.'),
})

const volumeStatus = object(
  'io.k8s.api.core.v1.VolumeStatus',
  'Details that depend on the type of the mounted volume.',
  {
    image: ptr(1, imageVolumeStatus, 'Details of an image volume.'),
  },
)

const volumeMountStatus = object('io.k8s.api.core.v1.VolumeMountStatus', 'Actual mount of a volume in a container.', {
  name: req(1, string, 'Name of the volume.'),
  mountPath: req(2, string, 'Mount path in the container.'),
  readOnly: opt(3, boolean, 'Whether the mount is read-only.'),
  recursiveReadOnly: ptr(4, string, 'Whether mounts below this mount are also read-only: Enabled or Disabled.'),
  volumeStatus: ptr(5, volumeStatus, 'Further details for the type of volume.'),
})

const linuxContainerUser = object(
  'io.k8s.api.core.v1.LinuxContainerUser',
  'User and groups of the first process of a Linux container.',
  {
    uid: req(1, int64, 'User ID.'),
    gid: req(2, int64, 'Primary group ID.'),
    supplementalGroups: opt(3, list(int64), 'Supplemental group IDs.'),
  },
)

const containerUser = object(
  'io.k8s.api.core.v1.ContainerUser',
  'User and groups of the first process of a container.',
  {
    linux: ptr(1, linuxContainerUser, 'User and groups, for containers on Linux.'),
  },
)

const resourceHealth = object(
  'io.k8s.api.core.v1.ResourceHealth',
  'Health of one device or other resource of a container.',
  {
    resourceID: req(1, string, 'ID of the resource, unique on its node.'),
    health: opt(2, string, 'Healthy, Unhealthy, or Unknown if none was reported.'),
    message: ptr(6, string, 'Human-readable details.'),
  },
)

const resourceStatus = object(
  'io.k8s.api.core.v1.ResourceStatus',
  'Health of the resources of a container with one name.',
  {
    name: req(1, string, 'Resource name as in the spec, or claim:name/request for a device claim.'),
    resources: opt(2, list(resourceHealth), 'Health of each resource.', {
      list: 'map',
      keys: ['resourceID'],
    }),
  },
)

export const containerStatus = object('io.k8s.api.core.v1.ContainerStatus', 'Status of one container of a pod.', {
  name: req(1, string, 'Name of the container.'),
  state: opt(2, containerState, 'Current state of the container.'),
  lastState: opt(3, containerState, 'State of the previous run, if the container was restarted.'),
  ready: req(4, boolean, 'Whether the container is ready, by its readiness probe if it has one.'),
  restartCount: req(5, int32, 'Number of restarts.'),
  image: req(6, string, 'Image of the container; may differ in form from the spec.'),
  imageID: req(7, string, 'ID of the image in use, usually with its digest.'),
  containerID: opt(8, string, 'Runtime ID of the container, in the form type://id.'),
  started: ptr(9, boolean, 'Whether postStart has completed and the startup probe has succeeded.'),
  allocatedResources: opt(10, map(quantity), 'Resources that the node has allocated to the container.'),
  resources: ptr(11, resourceRequirements, 'Requests and limits in force for the running container.'),
  volumeMounts: opt(12, list(volumeMountStatus), 'How each volume was mounted in the container.', {
    merge: 'mountPath',
    list: 'map',
    keys: ['mountPath'],
  }),
  user: ptr(13, containerUser, 'User and groups of the first process.'),
  allocatedResourcesStatus: opt(
    14,
    list(resourceStatus),
    'Health of the devices and other resources of the container.',
    { merge: 'name', list: 'map', keys: ['name'] },
  ),
  stopSignal: ptr(15, stopSignal, 'Stop signal of the container.'),
})

const podResourceClaimStatus = object(
  'io.k8s.api.core.v1.PodResourceClaimStatus',
  'The claim of an entry of spec.resourceClaims.',
  {
    name: req(1, string, 'Name of the entry in spec.resourceClaims.'),
    resourceClaimName: ptr(2, string, 'Claim generated for the entry; absent if none was needed.'),
  },
)

const containerExtendedResourceRequest = object(
  'io.k8s.api.core.v1.ContainerExtendedResourceRequest',
  'Links an extended resource of a container to a request in the generated claim.',
  {
    containerName: req(1, string, 'Container that requests the resource.'),
    resourceName: req(2, string, 'Requested extended resource.'),
    requestName: req(3, string, 'Request of the claim that provides the resource.'),
  },
)

const podExtendedResourceClaimStatus = object(
  'io.k8s.api.core.v1.PodExtendedResourceClaimStatus',
  'The claim generated for extended resources that devices provide.',
  {
    requestMappings: req(
      1,
      list(containerExtendedResourceRequest),
      'Maps resources of containers to requests of the claim.',
    ),
    resourceClaimName: req(2, string, 'Name of the generated claim, in the namespace of the pod.'),
  },
)

const nodeAllocatableMappedResources = object(
  'io.k8s.api.core.v1.NodeAllocatableMappedResources',
  'An amount of a node resource that a device claim provides.',
  {
    name: req(1, string, 'Node resource, for example cpu or memory.'),
    quantity: ptr(2, quantity, 'Amount for the whole claim, shared by the containers that use it.'),
  },
)

const nodeAllocatableOverheadResources = object(
  'io.k8s.api.core.v1.NodeAllocatableOverheadResources',
  'An additional amount of a node resource that a device claim consumes.',
  {
    name: req(1, string, 'Node resource, for example cpu or memory.'),
    perPod: ptr(2, quantity, 'Amount per pod.'),
    perContainer: ptr(3, quantity, 'Amount per container that uses the claim.'),
  },
)

const nodeAllocatableResourceClaimStatus = object(
  'io.k8s.api.core.v1.NodeAllocatableResourceClaimStatus',
  'Node resources such as CPU or memory that a device claim accounts for.',
  {
    resourceClaimName: req(1, string, 'Claim that the amounts belong to.'),
    containers: opt(2, list(string), 'Names of the containers in this pod that use the claim.', { list: 'set' }),
    mapping: opt(4, list(nodeAllocatableMappedResources), 'Node resources that the allocated devices provide.', {
      merge: 'name',
      list: 'map',
      keys: ['name'],
    }),
    overhead: opt(
      5,
      list(nodeAllocatableOverheadResources),
      'Node resources that the allocated devices consume in addition.',
      {
        merge: 'name',
        list: 'map',
        keys: ['name'],
      },
    ),
  },
)

const podVolumeHealth = object(
  'io.k8s.api.core.v1.PodVolumeHealth',
  'Health of one volume of a pod, as reported by its node.',
  {
    name: req(1, string, 'Name of the entry in spec.volumes.'),
    healthConditions: opt(
      2,
      list(volumeHealthCondition),
      'Problems that the storage driver reports on this node, at most 16; empty if healthy.',
      {
        merge: 'status',
        list: 'map',
        keys: ['status', 'reason'],
      },
    ),
    lastTransitionTime: opt(3, time, 'When the set of problems last changed.'),
  },
)

const podStatus = object(
  'io.k8s.api.core.v1.PodStatus',
  'Current state of a pod: phase, conditions, addresses and containers.',
  {
    observedGeneration: opt(17, int64, 'Generation of the pod that this status reflects.'),
    phase: opt(1, oneOf('Pending', 'Running', 'Succeeded', 'Failed', 'Unknown'), 'Phase of the pod.'),
    conditions: opt(2, list(podCondition), 'Conditions of the pod, such as PodScheduled and Ready.', {
      merge: 'type',
      list: 'map',
      keys: ['type'],
    }),
    message: opt(3, string, 'Human-readable details of the current state.'),
    reason: opt(4, string, 'Machine-readable reason for the current state, such as Evicted.'),
    nominatedNodeName: opt(
      11,
      string,
      'Node on which other pods are preempted for this pod, which may be scheduled to another node.',
    ),
    hostIP: opt(5, string, 'Primary IP address of the node.'),
    hostIPs: opt(16, list(hostIP), 'All IP addresses of the node, the primary one first.', { merge: 'ip' }),
    podIP: opt(6, string, 'Primary IP address of the pod; empty until it is allocated.'),
    podIPs: opt(12, list(podIP), 'All IP addresses of the pod, at most one per IP family, the primary one first.', {
      merge: 'ip',
      list: 'map',
      keys: ['ip'],
    }),
    startTime: ptr(7, time, 'When the node agent accepted the pod.'),
    initContainerStatuses: opt(10, list(containerStatus), 'Status of each init container.'),
    containerStatuses: opt(8, list(containerStatus), 'Status of each container.'),
    qosClass: opt(
      9,
      oneOf('Guaranteed', 'Burstable', 'BestEffort'),
      'QoS class derived from requests and limits; determines the order of eviction.',
    ),
    ephemeralContainerStatuses: opt(13, list(containerStatus), 'Status of each ephemeral container.'),
    resize: opt(
      14,
      string,
      'Progress of a resource change; deprecated, see PodResizePending and PodResizeInProgress conditions.',
    ),
    resourceClaimStatuses: opt(15, list(podResourceClaimStatus), 'Claims of the entries of spec.resourceClaims.', {
      merge: 'name',
      retainKeys: true,
      list: 'map',
      keys: ['name'],
    }),
    extendedResourceClaimStatus: ptr(
      18,
      podExtendedResourceClaimStatus,
      'Claim generated for extended resources that devices provide.',
    ),
    allocatedResources: opt(19, map(quantity), 'Resources that the node has allocated to the pod as a whole.'),
    resources: ptr(20, resourceRequirements, 'Pod-level requests and limits in force on the node.'),
    nodeAllocatableResourceClaimStatuses: opt(
      21,
      list(nodeAllocatableResourceClaimStatus),
      'Node resources that belong to device claims.',
      {
        merge: 'resourceClaimName',
        list: 'map',
        keys: ['resourceClaimName'],
      },
    ),
    volumeHealth: opt(22, list(podVolumeHealth), 'Health of the volumes in use, as reported by the node.', {
      list: 'map',
      keys: ['name'],
    }),
  },
)

export type PodStatus = Infer<typeof podStatus>

export const pod = object(
  'io.k8s.api.core.v1.Pod',
  'A group of containers that run on one node and share network and volumes.',
  {
    metadata: req(1, objectMeta, 'Standard object metadata.'),
    spec: opt(2, podSpec, 'Desired state of the pod.'),
    status: opt(3, podStatus, 'Current state of the pod; written by the node agent and the scheduler.'),
  },
)

export type Pod = Infer<typeof pod>

export const binding = object('io.k8s.api.core.v1.Binding', 'Assigns a pod to a node.', {
  metadata: req(1, objectMeta, 'Name and namespace of the pod.'),
  target: req(2, objectReference, 'Node to assign the pod to.'),
})

export type Binding = Infer<typeof binding>
