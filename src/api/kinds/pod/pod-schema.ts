// What a pod is: its spec, its status, and the pieces both are built from, plus the Binding that places
// a pod on a node. Containers live in container.ts, the volumes a pod can carry in pod-volumes.ts.
// Declarations only: what makes a pod valid or what changes its status is decided elsewhere.

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
  windowsSecurityContextOptions,
} from './container-schema.ts'
import { volume } from './pod-volumes-schema.ts'

export const sysctl = object('io.k8s.api.core.v1.Sysctl', 'A kernel parameter set for the whole pod.', {
  name: req(1, string, 'Kernel parameter to set, for example net.core.somaxconn.'),
  value: req(2, string, 'What the kernel parameter is set to.'),
})

export const podSecurityContext = object(
  'io.k8s.api.core.v1.PodSecurityContext',
  'Identity and confinement shared by all containers of a pod; a container may override parts.',
  {
    seLinuxOptions: ptr(1, seLinuxOptions, 'SELinux label for every container that does not set its own.'),
    windowsOptions: ptr(
      8,
      windowsSecurityContextOptions,
      'Windows settings for every container that does not set its own.',
    ),
    runAsUser: ptr(2, int64, 'User ID that container processes start as, unless a container chooses another.'),
    runAsGroup: ptr(
      6,
      int64,
      'Primary group ID that container processes start with, unless a container chooses another.',
    ),
    runAsNonRoot: ptr(3, boolean, 'Refuse to start containers that would run as user ID 0.'),
    supplementalGroups: opt(4, list(int64), 'Extra group IDs given to the first process of every container.'),
    supplementalGroupsPolicy: ptr(
      12,
      oneOf('Merge', 'Strict'),
      'Whether groups listed in the image count too (Merge) or only those set here (Strict).',
    ),
    fsGroup: ptr(5, int64, 'Group ID that owns the files of volumes which allow their ownership to change.'),
    sysctls: opt(7, list(sysctl), 'Kernel parameters to set in the namespaces of this pod.'),
    fsGroupChangePolicy: ptr(
      9,
      oneOf('OnRootMismatch', 'Always'),
      'Whether volume ownership is corrected at every mount or only when the root differs.',
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

export const preferredSchedulingTerm = object(
  'io.k8s.api.core.v1.PreferredSchedulingTerm',
  'A node preference and how strongly it counts.',
  {
    weight: req(1, int32, 'Points, from 1 to 100, that a matching node gains in scoring.'),
    preference: req(2, nodeSelectorTerm, 'Which nodes earn the points of this preference.'),
  },
)

export const nodeAffinity = object(
  'io.k8s.api.core.v1.NodeAffinity',
  'Rules about the nodes a pod must or would rather run on.',
  {
    requiredDuringSchedulingIgnoredDuringExecution: ptr(
      1,
      nodeSelector,
      'Nodes that are acceptable at all; checked while placing, not once the pod runs.',
    ),
    preferredDuringSchedulingIgnoredDuringExecution: opt(
      2,
      list(preferredSchedulingTerm),
      'Weighted preferences; nodes with the highest total of matched weights are favoured.',
    ),
  },
)

export const podAffinityTerm = object(
  'io.k8s.api.core.v1.PodAffinityTerm',
  'A set of other pods, and the topology domain within which they count as near.',
  {
    labelSelector: ptr(1, labelSelector, 'Which pods are meant, by label; without a selector no pod is.'),
    namespaces: opt(2, list(string), 'Names of the namespaces to look in; by default the namespace of this pod.'),
    topologyKey: req(
      3,
      string,
      'Node label whose equal values mean the same place, such as topology.kubernetes.io/zone.',
    ),
    namespaceSelector: ptr(
      4,
      labelSelector,
      'Further namespaces to look in, by label; an empty selector means all of them.',
    ),
    matchLabelKeys: opt(5, list(string), 'Count only pods that have the same values as this pod for these label keys.'),
    mismatchLabelKeys: opt(6, list(string), 'Count only pods whose values for these label keys differ from this pod.'),
  },
)

export const weightedPodAffinityTerm = object(
  'io.k8s.api.core.v1.WeightedPodAffinityTerm',
  'A pod affinity rule and how strongly it counts.',
  {
    weight: req(1, int32, 'Points, from 1 to 100, for nodes that satisfy the rule.'),
    podAffinityTerm: req(2, podAffinityTerm, 'The pods and topology domain this weight applies to.'),
  },
)

export const podAffinity = object(
  'io.k8s.api.core.v1.PodAffinity',
  'Rules that draw a pod towards places where certain other pods run.',
  {
    requiredDuringSchedulingIgnoredDuringExecution: opt(
      1,
      list(podAffinityTerm),
      'Pods that must already be near a node before this pod may land there.',
    ),
    preferredDuringSchedulingIgnoredDuringExecution: opt(
      2,
      list(weightedPodAffinityTerm),
      'Weighted wishes to be near other pods; higher totals win.',
    ),
  },
)

export const podAntiAffinity = object(
  'io.k8s.api.core.v1.PodAntiAffinity',
  'Rules that keep a pod away from places where certain other pods run.',
  {
    requiredDuringSchedulingIgnoredDuringExecution: opt(
      1,
      list(podAffinityTerm),
      'Pods that must not be near a node for this pod to land there.',
    ),
    preferredDuringSchedulingIgnoredDuringExecution: opt(
      2,
      list(weightedPodAffinityTerm),
      'Weighted wishes to stay away from other pods; a lower total of unwanted neighbours wins.',
    ),
  },
)

export const affinity = object(
  'io.k8s.api.core.v1.Affinity',
  'Placement rules of a pod, relative to nodes and to other pods.',
  {
    nodeAffinity: ptr(1, nodeAffinity, 'Rules about which nodes to run on, by their labels.'),
    podAffinity: ptr(2, podAffinity, 'Rules for running in the same place as other pods.'),
    podAntiAffinity: ptr(3, podAntiAffinity, 'Rules for running in a different place from other pods.'),
  },
)

export const toleration = object(
  'io.k8s.api.core.v1.Toleration',
  'Lets a pod run on nodes that carry a matching taint.',
  {
    key: opt(1, string, 'Taint key this toleration matches; leave empty with operator Exists to match every taint.'),
    operator: opt(
      2,
      oneOf('Exists', 'Equal', 'Lt', 'Gt'),
      'How the taint value is compared; Equal unless said otherwise, Exists accepts any value.',
    ),
    value: opt(3, string, 'Taint value to compare with; leave empty when the operator is Exists.'),
    effect: opt(
      4,
      oneOf('NoSchedule', 'PreferNoSchedule', 'NoExecute'),
      'Taint effect this toleration matches; empty matches every effect.',
    ),
    tolerationSeconds: ptr(5, int64, 'How long a NoExecute taint is borne before eviction; forever when unset.'),
  },
)

export type Toleration = Infer<typeof toleration>

export const hostAlias = object('io.k8s.api.core.v1.HostAlias', 'An extra line for the hosts file of the pod.', {
  ip: req(1, string, 'Address that the names on this line resolve to.'),
  hostnames: opt(2, list(string), 'Names that resolve to the address.'),
})

export const podDNSConfigOption = object(
  'io.k8s.api.core.v1.PodDNSConfigOption',
  'One resolver option, with or without a value.',
  {
    name: opt(1, string, 'Option name as written in resolv.conf, for example ndots.'),
    value: ptr(2, string, 'What the option is set to, for options that take a value.'),
  },
)

export const podDNSConfig = object(
  'io.k8s.api.core.v1.PodDNSConfig',
  'Resolver settings added to those that follow from dnsPolicy.',
  {
    nameservers: opt(1, list(string), 'Name server addresses to append, without duplicates.'),
    searches: opt(2, list(string), 'Search domains to append, without duplicates.'),
    options: opt(
      3,
      list(podDNSConfigOption),
      'Resolver options; one given here replaces the same option from dnsPolicy.',
    ),
  },
)

export const podReadinessGate = object(
  'io.k8s.api.core.v1.PodReadinessGate',
  'An additional condition that must be true before the pod counts as ready.',
  {
    conditionType: req(1, string, 'Type of the pod condition that has to be True.'),
  },
)

export const topologySpreadConstraint = object(
  'io.k8s.api.core.v1.TopologySpreadConstraint',
  'How evenly matching pods are to be spread over topology domains.',
  {
    maxSkew: req(1, int32, 'Greatest allowed difference in matching pods between a domain and the emptiest one.'),
    topologyKey: req(2, string, 'Node label that divides the nodes into domains; equal values share one domain.'),
    whenUnsatisfiable: req(
      3,
      oneOf('DoNotSchedule', 'ScheduleAnyway'),
      'Whether to keep the pod waiting or place it anyway when the spread cannot be kept.',
    ),
    labelSelector: ptr(4, labelSelector, 'Which pods are counted in each domain.'),
    minDomains: ptr(5, int32, 'With fewer eligible domains than this, the emptiest one counts as zero pods.'),
    nodeAffinityPolicy: ptr(
      6,
      oneOf('Ignore', 'Honor'),
      'Whether nodes excluded by node selector or affinity are left out of the count; Honor by default.',
    ),
    nodeTaintsPolicy: ptr(
      7,
      oneOf('Ignore', 'Honor'),
      'Whether nodes with taints the pod does not tolerate are left out; Ignore by default.',
    ),
    matchLabelKeys: opt(8, list(string), 'Count only pods that share the values of this pod for these label keys.'),
  },
)

export const podOS = object('io.k8s.api.core.v1.PodOS', 'The operating system a pod is meant for.', {
  name: req(1, string, 'Operating system the containers need: linux or windows.'),
})

export const podSchedulingGate = object(
  'io.k8s.api.core.v1.PodSchedulingGate',
  'Something that must be cleared before the scheduler considers the pod.',
  {
    name: req(1, string, 'Identifies the gate, so that whoever set it can remove it.'),
  },
)

export const podResourceClaim = object(
  'io.k8s.api.core.v1.PodResourceClaim',
  'A device claim made available to the containers of a pod, either existing or generated.',
  {
    name: req(1, string, 'How containers of this pod refer to the claim.'),
    resourceClaimName: ptr(3, string, 'Existing claim to use, from the namespace of the pod.'),
    resourceClaimTemplateName: ptr(4, string, 'Template from which a claim is made that lives as long as the pod.'),
  },
)

export const podSchedulingGroup = object(
  'io.k8s.api.core.v1.PodSchedulingGroup',
  'The group of pods with which a pod is scheduled.',
  {
    podGroupName: ptr(1, string, 'PodGroup object, in the same namespace, that this pod belongs to.'),
  },
)

export const evictionResponder = object(
  'io.k8s.api.core.v1.EvictionResponder',
  'A party that helps a pod end gracefully when it is to be evicted.',
  {
    name: req(1, string, 'Domain-prefixed key of the responder, such as example.com/drainer; unique in the list.'),
    priority: ptr(2, int32, 'From 0 to 100000; the responder with the highest number acts first.'),
  },
  { atomic: true },
)

export const podSpec = object(
  'io.k8s.api.core.v1.PodSpec',
  'What is wanted of a pod: its containers, volumes, placement and environment.',
  {
    volumes: opt(1, list(volume), 'Storage that containers of this pod can mount.', {
      merge: 'name',
      retainKeys: true,
      list: 'map',
      keys: ['name'],
    }),
    initContainers: opt(
      20,
      list(container),
      'Containers that run to completion, in order, before the main ones start.',
      { merge: 'name', list: 'map', keys: ['name'] },
    ),
    containers: req(
      2,
      list(container),
      'Main containers of the pod; at least one, and none is added or removed later.',
      { merge: 'name', list: 'map', keys: ['name'] },
    ),
    ephemeralContainers: opt(
      34,
      list(ephemeralContainer),
      'Containers added to a running pod for debugging, through the ephemeralcontainers subresource.',
      { merge: 'name', list: 'map', keys: ['name'] },
    ),
    restartPolicy: opt(
      3,
      oneOf('Always', 'OnFailure', 'Never'),
      'When containers that exit are started again; Always by default.',
    ),
    terminationGracePeriodSeconds: ptr(
      4,
      int64,
      'Seconds between asking processes to stop and killing them; 30 by default.',
    ),
    activeDeadlineSeconds: ptr(5, int64, 'Seconds the pod may run, counted from its start time, before it is failed.'),
    dnsPolicy: opt(
      6,
      oneOf('ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None'),
      'Where the pod gets its name resolution settings; ClusterFirst by default.',
    ),
    nodeSelector: opt(7, map(string), 'Labels that a node must carry to be chosen for this pod.', { atomic: true }),
    serviceAccountName: opt(8, string, 'Service account whose identity the pod uses.'),
    serviceAccount: opt(9, string, 'Older name of serviceAccountName, kept in step with it; deprecated.'),
    automountServiceAccountToken: ptr(21, boolean, 'Whether a service account token is mounted into the containers.'),
    nodeName: opt(10, string, 'Node the pod is placed on; empty until it has been scheduled.'),
    hostNetwork: opt(11, boolean, 'Use the network of the node instead of a private one.'),
    hostPID: opt(12, boolean, 'See and share the processes of the node.'),
    hostIPC: opt(13, boolean, 'Share inter-process communication with the node.'),
    shareProcessNamespace: ptr(27, boolean, 'Let all containers of the pod see the processes of one another.'),
    securityContext: ptr(14, podSecurityContext, 'Security settings for the pod and defaults for its containers.'),
    imagePullSecrets: opt(
      15,
      list(localObjectReference),
      'Secrets, in the same namespace, with credentials for pulling the images.',
      { merge: 'name', list: 'map', keys: ['name'] },
    ),
    hostname: opt(16, string, 'Name the pod sees as its own; by default the name of the pod.'),
    subdomain: opt(17, string, 'Makes the full host name hostname.subdomain.namespace.svc plus the cluster domain.'),
    affinity: ptr(18, affinity, 'Placement rules relative to nodes and other pods.'),
    schedulerName: opt(19, string, 'Which scheduler places the pod; default-scheduler when not given.'),
    tolerations: opt(22, list(toleration), 'Taints that do not keep this pod off a node.'),
    hostAliases: opt(23, list(hostAlias), 'Extra lines for the hosts file of the pod.', {
      merge: 'ip',
      list: 'map',
      keys: ['ip'],
    }),
    priorityClassName: opt(24, string, 'PriorityClass that decides how important the pod is.'),
    priority: ptr(25, int32, 'Importance as a number, taken from the priority class; higher goes first.'),
    dnsConfig: ptr(26, podDNSConfig, 'Resolver settings on top of what dnsPolicy gives.'),
    readinessGates: opt(
      28,
      list(podReadinessGate),
      'Conditions, besides ready containers, that the pod needs to be ready.',
    ),
    runtimeClassName: ptr(29, string, 'RuntimeClass that says which container runtime runs the pod.'),
    enableServiceLinks: ptr(
      30,
      boolean,
      'Whether services of the namespace appear as environment variables; true by default.',
    ),
    preemptionPolicy: ptr(
      31,
      oneOf('PreemptLowerPriority', 'Never'),
      'Whether pods of lower priority may be removed to make room for this one.',
    ),
    overhead: opt(32, map(quantity), 'Resources the runtime itself needs per pod, set from the RuntimeClass.'),
    topologySpreadConstraints: opt(
      33,
      list(topologySpreadConstraint),
      'How pods like this one are spread over zones, nodes or other domains.',
      {
        merge: 'topologyKey',
        list: 'map',
        keys: ['topologyKey', 'whenUnsatisfiable'],
      },
    ),
    setHostnameAsFQDN: ptr(35, boolean, 'Make the full domain name of the pod its host name; false by default.'),
    os: ptr(36, podOS, 'Operating system of the containers, which also limits what other fields may be set.'),
    hostUsers: ptr(37, boolean, 'Whether to use the user IDs of the node; false gives the pod its own.'),
    schedulingGates: opt(
      38,
      list(podSchedulingGate),
      'Gates that hold back scheduling until all of them are removed; settable only at creation.',
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
      'Host name the pod sees, before hostname and subdomain; DNS records stay as they are.',
    ),
    schedulingGroup: ptr(43, podSchedulingGroup, 'Group of pods to be scheduled with this one; fixed after creation.'),
    evictionResponders: opt(
      44,
      list(evictionResponder),
      'Up to ten parties asked, by priority, to handle an eviction of this pod.',
      { merge: 'name', list: 'map', keys: ['name'] },
    ),
  },
)

export type PodSpec = Infer<typeof podSpec>

export const podCondition = object(
  'io.k8s.api.core.v1.PodCondition',
  'One aspect of where a pod stands, such as scheduled or ready.',
  {
    type: req(1, string, 'Which aspect this is, for example PodScheduled or Ready.'),
    observedGeneration: opt(7, int64, 'Generation of the pod that this condition was derived from.'),
    status: req(2, string, 'Whether the condition holds: True, False or Unknown.'),
    lastProbeTime: opt(3, time, 'When the condition was most recently checked.'),
    lastTransitionTime: opt(4, time, 'When the status of this condition last changed.'),
    reason: opt(5, string, 'One CamelCase word telling why the status last changed.'),
    message: opt(6, string, 'Details about the last change, for people to read.'),
  },
)

export const hostIP = object('io.k8s.api.core.v1.HostIP', 'An address of the node a pod runs on.', {
  ip: req(1, string, 'IPv4 or IPv6 address of the node.'),
})

export const podIP = object('io.k8s.api.core.v1.PodIP', 'An address of a pod.', {
  ip: req(1, string, 'IPv4 or IPv6 address at which the pod is reached.'),
})

export const containerStateWaiting = object(
  'io.k8s.api.core.v1.ContainerStateWaiting',
  'Why a container is not running yet.',
  {
    reason: opt(1, string, 'Short cause of the wait, such as ContainerCreating.'),
    message: opt(2, string, 'Details about the wait, for people to read.'),
  },
)

export const containerStateRunning = object(
  'io.k8s.api.core.v1.ContainerStateRunning',
  'Facts about a container that is running now.',
  {
    startedAt: opt(1, time, 'When this run of the container began.'),
  },
)

export const containerStateTerminated = object(
  'io.k8s.api.core.v1.ContainerStateTerminated',
  'How a run of a container came to its end.',
  {
    exitCode: req(1, int32, 'Status the main process exited with; 0 means success.'),
    signal: opt(2, int32, 'Number of the signal that ended the container, if one did.'),
    reason: opt(3, string, 'Short cause of the end, such as Completed or OOMKilled.'),
    message: opt(4, string, 'What the container left behind as termination message, or other details.'),
    startedAt: opt(5, time, 'When the run that ended had begun.'),
    finishedAt: opt(6, time, 'When the run came to its end.'),
    containerID: opt(7, string, 'Runtime identifier of the container that ended, in the form type://id.'),
  },
)

export const containerState = object(
  'io.k8s.api.core.v1.ContainerState',
  'Where a container is in its life: waiting, running or terminated; waiting if none is given.',
  {
    waiting: ptr(1, containerStateWaiting, 'Present while the container has not started.'),
    running: ptr(2, containerStateRunning, 'Present while the container is running.'),
    terminated: ptr(3, containerStateTerminated, 'Present after the container has stopped.'),
  },
)

export const imageVolumeStatus = object(
  'io.k8s.api.core.v1.ImageVolumeStatus',
  'What is known about an image mounted as a volume.',
  {
    imageRef: opt(1, string, 'Digest of the image that was mounted.'),
  },
)

export const volumeStatus = object(
  'io.k8s.api.core.v1.VolumeStatus',
  'Details that depend on the type of the mounted volume.',
  {
    image: ptr(1, imageVolumeStatus, 'Details for a volume made from an image.'),
  },
)

export const volumeMountStatus = object(
  'io.k8s.api.core.v1.VolumeMountStatus',
  'How a volume was in fact mounted in a container.',
  {
    name: req(1, string, 'Which volume of the pod is mounted.'),
    mountPath: req(2, string, 'Where in the container it is mounted.'),
    readOnly: opt(3, boolean, 'Whether the container is kept from writing to it.'),
    recursiveReadOnly: ptr(4, string, 'Enabled or Disabled: whether mounts below this one became read-only as well.'),
    volumeStatus: ptr(5, volumeStatus, 'Further details for the type of volume.'),
  },
)

export const linuxContainerUser = object(
  'io.k8s.api.core.v1.LinuxContainerUser',
  'Identity the first process of a Linux container started with.',
  {
    uid: req(1, int64, 'User ID of the first process at its start.'),
    gid: req(2, int64, 'Primary group ID of the first process at its start.'),
    supplementalGroups: opt(3, list(int64), 'Additional group IDs of the first process at its start.'),
  },
)

export const containerUser = object(
  'io.k8s.api.core.v1.ContainerUser',
  'Identity a container started with, by operating system.',
  {
    linux: ptr(1, linuxContainerUser, 'User and groups, for containers on Linux.'),
  },
)

export const resourceHealth = object(
  'io.k8s.api.core.v1.ResourceHealth',
  'Health of one device or other resource given to a container.',
  {
    resourceID: req(1, string, 'Identifies the resource uniquely on its node.'),
    health: opt(2, string, 'Healthy, Unhealthy, or Unknown when nobody reports on it.'),
    message: ptr(6, string, 'More about the health, for people to read.'),
  },
)

export const resourceStatus = object(
  'io.k8s.api.core.v1.ResourceStatus',
  'Health of the resources of one name given to a container.',
  {
    name: req(1, string, 'Resource name as in the spec, or claim:name/request for a device claim.'),
    resources: opt(2, list(resourceHealth), 'Health of each resource handed out under this name.', {
      list: 'map',
      keys: ['resourceID'],
    }),
  },
)

export const containerStatus = object(
  'io.k8s.api.core.v1.ContainerStatus',
  'What is known about one container of a pod.',
  {
    name: req(1, string, 'Which container of the pod this is about.'),
    state: opt(2, containerState, 'Where the container is now in its life.'),
    lastState: opt(3, containerState, 'How the previous run ended, when the container has been restarted.'),
    ready: req(4, boolean, 'Whether the container is ready to serve, by its readiness probe if it has one.'),
    restartCount: req(5, int32, 'How many times the container has been started again.'),
    image: req(6, string, 'Image the container runs, which may be spelled differently from the spec.'),
    imageID: req(7, string, 'Exact image in use, usually with its digest.'),
    containerID: opt(8, string, 'Runtime identifier of the container, in the form type://id.'),
    started: ptr(9, boolean, 'Whether the container is up: postStart is done and the startup probe has passed.'),
    allocatedResources: opt(10, map(quantity), 'Resources the node has set aside for this container.'),
    resources: ptr(11, resourceRequirements, 'Requests and limits in force for the running container.'),
    volumeMounts: opt(12, list(volumeMountStatus), 'How each volume was mounted in the container.', {
      merge: 'mountPath',
      list: 'map',
      keys: ['mountPath'],
    }),
    user: ptr(13, containerUser, 'User and groups the container started with.'),
    allocatedResourcesStatus: opt(
      14,
      list(resourceStatus),
      'Health of the devices and other resources given to the container.',
      { merge: 'name', list: 'map', keys: ['name'] },
    ),
    stopSignal: ptr(
      15,
      oneOf(
        'SIGABRT',
        'SIGALRM',
        'SIGBUS',
        'SIGCHLD',
        'SIGCLD',
        'SIGCONT',
        'SIGFPE',
        'SIGHUP',
        'SIGILL',
        'SIGINT',
        'SIGIO',
        'SIGIOT',
        'SIGKILL',
        'SIGPIPE',
        'SIGPOLL',
        'SIGPROF',
        'SIGPWR',
        'SIGQUIT',
        'SIGSEGV',
        'SIGSTKFLT',
        'SIGSTOP',
        'SIGSYS',
        'SIGTERM',
        'SIGTRAP',
        'SIGTSTP',
        'SIGTTIN',
        'SIGTTOU',
        'SIGURG',
        'SIGUSR1',
        'SIGUSR2',
        'SIGVTALRM',
        'SIGWINCH',
        'SIGXCPU',
        'SIGXFSZ',
        'SIGRTMIN',
        'SIGRTMIN+1',
        'SIGRTMIN+2',
        'SIGRTMIN+3',
        'SIGRTMIN+4',
        'SIGRTMIN+5',
        'SIGRTMIN+6',
        'SIGRTMIN+7',
        'SIGRTMIN+8',
        'SIGRTMIN+9',
        'SIGRTMIN+10',
        'SIGRTMIN+11',
        'SIGRTMIN+12',
        'SIGRTMIN+13',
        'SIGRTMIN+14',
        'SIGRTMIN+15',
        'SIGRTMAX-14',
        'SIGRTMAX-13',
        'SIGRTMAX-12',
        'SIGRTMAX-11',
        'SIGRTMAX-10',
        'SIGRTMAX-9',
        'SIGRTMAX-8',
        'SIGRTMAX-7',
        'SIGRTMAX-6',
        'SIGRTMAX-5',
        'SIGRTMAX-4',
        'SIGRTMAX-3',
        'SIGRTMAX-2',
        'SIGRTMAX-1',
        'SIGRTMAX',
      ),
      'Signal the runtime sends to stop this container.',
    ),
  },
)

export const podResourceClaimStatus = object(
  'io.k8s.api.core.v1.PodResourceClaimStatus',
  'Which claim stands behind an entry of spec.resourceClaims.',
  {
    name: req(1, string, 'Entry in spec.resourceClaims that this belongs to.'),
    resourceClaimName: ptr(2, string, 'Claim generated for the entry; absent when none was needed.'),
  },
)

export const containerExtendedResourceRequest = object(
  'io.k8s.api.core.v1.ContainerExtendedResourceRequest',
  'Links an extended resource of a container to a request in the generated claim.',
  {
    containerName: req(1, string, 'Container that asks for the resource.'),
    resourceName: req(2, string, 'Extended resource the container asks for.'),
    requestName: req(3, string, 'Request within the claim that provides the resource.'),
  },
)

export const podExtendedResourceClaimStatus = object(
  'io.k8s.api.core.v1.PodExtendedResourceClaimStatus',
  'The claim generated for extended resources that devices provide.',
  {
    requestMappings: req(
      1,
      list(containerExtendedResourceRequest),
      'Which request of the claim serves which resource of which container.',
    ),
    resourceClaimName: req(2, string, 'Name of the generated claim, in the namespace of the pod.'),
  },
)

export const nodeAllocatableMappedResources = object(
  'io.k8s.api.core.v1.NodeAllocatableMappedResources',
  'An amount of a node resource that a device claim brings with it.',
  {
    name: req(1, string, 'Node resource, for example cpu or memory.'),
    quantity: ptr(2, quantity, 'Amount for the whole claim, shared by the containers that use it.'),
  },
)

export const nodeAllocatableOverheadResources = object(
  'io.k8s.api.core.v1.NodeAllocatableOverheadResources',
  'An amount of a node resource that using a device costs in addition.',
  {
    name: req(1, string, 'Node resource, for example cpu or memory.'),
    perPod: ptr(2, quantity, 'Cost that is counted once for the pod.'),
    perContainer: ptr(3, quantity, 'Cost that is counted for every container using the claim.'),
  },
)

export const nodeAllocatableResourceClaimStatus = object(
  'io.k8s.api.core.v1.NodeAllocatableResourceClaimStatus',
  'Node resources such as CPU or memory that a device claim accounts for.',
  {
    resourceClaimName: req(1, string, 'Claim from which the amounts follow.'),
    containers: opt(2, list(string), 'Names of the containers in this pod that use the claim.', { list: 'set' }),
    mapping: opt(4, list(nodeAllocatableMappedResources), 'Node resources that the allocated devices stand for.', {
      merge: 'name',
      list: 'map',
      keys: ['name'],
    }),
    overhead: opt(5, list(nodeAllocatableOverheadResources), 'Node resources that the allocated devices cost on top.', {
      merge: 'name',
      list: 'map',
      keys: ['name'],
    }),
  },
)

export const podVolumeHealth = object(
  'io.k8s.api.core.v1.PodVolumeHealth',
  'Health of one volume of a pod, as seen from its node.',
  {
    name: req(1, string, 'Entry in spec.volumes that this is about.'),
    healthConditions: opt(
      2,
      list(volumeHealthCondition),
      'Problems the storage driver reports from this node, 16 at most; none means healthy.',
      {
        merge: 'status',
        list: 'map',
        keys: ['status', 'reason'],
      },
    ),
    lastTransitionTime: opt(3, time, 'Since when the present set of problems has been reported.'),
  },
)

export const podStatus = object(
  'io.k8s.api.core.v1.PodStatus',
  'What is known about a pod: phase, conditions, addresses and containers.',
  {
    observedGeneration: opt(17, int64, 'Generation of the pod that this status reflects.'),
    phase: opt(
      1,
      oneOf('Pending', 'Running', 'Succeeded', 'Failed', 'Unknown'),
      'Summary of how far the pod has come in its life.',
    ),
    conditions: opt(2, list(podCondition), 'Where the pod stands on each aspect, such as scheduled and ready.', {
      merge: 'type',
      list: 'map',
      keys: ['type'],
    }),
    message: opt(3, string, 'What led to the present state, for people to read.'),
    reason: opt(4, string, 'What led to the present state, in one CamelCase word such as Evicted.'),
    nominatedNodeName: opt(
      11,
      string,
      'Node being freed for this pod by removing others; it may still land elsewhere.',
    ),
    hostIP: opt(5, string, 'Main address of the node that took on the pod.'),
    hostIPs: opt(16, list(hostIP), 'All addresses of the node, the main one first.', { merge: 'ip' }),
    podIP: opt(6, string, 'Main address of the pod; empty until the pod is given one.'),
    podIPs: opt(12, list(podIP), 'All addresses of the pod, at most one per IP family, the main one first.', {
      merge: 'ip',
      list: 'map',
      keys: ['ip'],
    }),
    startTime: ptr(7, time, 'When the node accepted the pod, before images were pulled.'),
    initContainerStatuses: opt(10, list(containerStatus), 'State of each init container of the pod.'),
    containerStatuses: opt(8, list(containerStatus), 'State of each main container of the pod.'),
    qosClass: opt(
      9,
      oneOf('Guaranteed', 'Burstable', 'BestEffort'),
      'Service class derived from requests and limits; decides who suffers first under pressure.',
    ),
    ephemeralContainerStatuses: opt(13, list(containerStatus), 'State of each debugging container that was added.'),
    resize: opt(
      14,
      string,
      'Progress of a resource change; deprecated, see PodResizePending and PodResizeInProgress conditions.',
    ),
    resourceClaimStatuses: opt(
      15,
      list(podResourceClaimStatus),
      'Claims that stand behind the entries of spec.resourceClaims.',
      {
        merge: 'name',
        retainKeys: true,
        list: 'map',
        keys: ['name'],
      },
    ),
    extendedResourceClaimStatus: ptr(
      18,
      podExtendedResourceClaimStatus,
      'Claim generated for extended resources that devices provide.',
    ),
    allocatedResources: opt(19, map(quantity), 'Resources the node has set aside for the pod as a whole.'),
    resources: ptr(20, resourceRequirements, 'Pod-level requests and limits in force on the node.'),
    nodeAllocatableResourceClaimStatuses: opt(
      21,
      list(nodeAllocatableResourceClaimStatus),
      'CPU, memory and similar node resources that came with device claims.',
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
    metadata: req(1, objectMeta, 'Name, namespace, labels and other data about the object.'),
    spec: opt(2, podSpec, 'What is wanted: containers, volumes and placement.'),
    status: opt(3, podStatus, 'What was last observed; written by the system, not by users.'),
  },
)

export type Pod = Infer<typeof pod>

export const binding = object('io.k8s.api.core.v1.Binding', 'Places a pod on a node.', {
  metadata: req(1, objectMeta, 'Names the pod that is to be placed.'),
  target: req(2, objectReference, 'Node on which the pod is to run.'),
})

export type Binding = Infer<typeof binding>
