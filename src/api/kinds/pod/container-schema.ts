// The schemas of containers and ephemeral containers.

import {
  boolean,
  type Infer,
  int32,
  int64,
  intOrString,
  list,
  map,
  object,
  oneOf,
  opt,
  ptr,
  quantity,
  req,
  string,
  within,
} from '../../schema.ts'
import { localObjectReference } from '../shared/references-schema.ts'
import { objectFieldSelector, resourceFieldSelector } from './pod-volumes-schema.ts'

const containerPort = object('io.k8s.api.core.v1.ContainerPort', 'A port on which a container listens.', {
  name: opt(1, string, 'Name for references from services and probes; unique in the pod.'),
  hostPort: opt(2, int32, 'Port on the node that is forwarded to this port; rarely needed.'),
  containerPort: req(3, int32, 'Port number in the pod, from 1 to 65535.'),
  protocol: opt(4, oneOf('TCP', 'UDP', 'SCTP'), 'Transport protocol of the port; TCP by default.', { default: 'TCP' }),
  hostIP: opt(5, string, 'Node address to which hostPort is bound; all addresses by default.'),
})

const configMapEnvSource = object(
  'io.k8s.api.core.v1.ConfigMapEnvSource',
  'Adds every entry of a ConfigMap as an environment variable.',
  {
    ...within(1, localObjectReference.fields),
    optional: ptr(2, boolean, 'Start the container even if the ConfigMap does not exist.'),
  },
)

const secretEnvSource = object(
  'io.k8s.api.core.v1.SecretEnvSource',
  'Adds every entry of a Secret as an environment variable.',
  {
    ...within(1, localObjectReference.fields),
    optional: ptr(2, boolean, 'Start the container even if the Secret does not exist.'),
  },
)

const envFromSource = object(
  'io.k8s.api.core.v1.EnvFromSource',
  'A ConfigMap or Secret whose entries are added as environment variables.',
  {
    prefix: opt(1, string, 'Prefix of the variable names.'),
    configMapRef: ptr(2, configMapEnvSource, 'ConfigMap to take the variables from.'),
    secretRef: ptr(3, secretEnvSource, 'Secret to take the variables from.'),
  },
)

const configMapKeySelector = object(
  'io.k8s.api.core.v1.ConfigMapKeySelector',
  'Selects one entry of a ConfigMap.',
  {
    ...within(1, localObjectReference.fields),
    key: req(2, string, 'Entry of the ConfigMap whose value is used.'),
    optional: ptr(3, boolean, 'Omit the variable if the ConfigMap or key does not exist.'),
  },
  { atomic: true },
)

const secretKeySelector = object(
  'io.k8s.api.core.v1.SecretKeySelector',
  'Selects one entry of a Secret.',
  {
    ...within(1, localObjectReference.fields),
    key: req(2, string, 'Entry of the Secret whose value is used.'),
    optional: ptr(3, boolean, 'Omit the variable if the Secret or key does not exist.'),
  },
  { atomic: true },
)

const fileKeySelector = object(
  'io.k8s.api.core.v1.FileKeySelector',
  'Selects one variable of an env file on a volume.',
  {
    volumeName: req(1, string, 'Volume of the pod that holds the env file.'),
    path: req(2, string, 'Path of the file relative to the volume root, without "..".'),
    key: req(3, string, 'Variable in the file whose value is used.'),
    optional: ptr(4, boolean, 'Omit the variable if the file or key does not exist.'),
  },
  { atomic: true },
)

const envVarSource = object(
  'io.k8s.api.core.v1.EnvVarSource',
  'Source of the value of an environment variable; exactly one must be set.',
  {
    fieldRef: ptr(1, objectFieldSelector, 'A field of the pod, such as metadata.name.'),
    resourceFieldRef: ptr(2, resourceFieldSelector, 'A resource request or limit of a container.'),
    configMapKeyRef: ptr(3, configMapKeySelector, 'An entry of a ConfigMap.'),
    secretKeyRef: ptr(4, secretKeySelector, 'An entry of a Secret.'),
    fileKeyRef: ptr(5, fileKeySelector, 'A variable of an env file on a volume.'),
  },
)

export const envVar = object('io.k8s.api.core.v1.EnvVar', 'An environment variable of a container.', {
  name: req(1, string, 'Name of the variable inside the container.'),
  value: opt(2, string, 'Value; $(NAME) expands to an earlier variable, $$(NAME) to the text $(NAME).'),
  valueFrom: ptr(3, envVarSource, 'Source of the value, instead of value.'),
})

const resourceClaim = object(
  'io.k8s.api.core.v1.ResourceClaim',
  'Gives a container access to a device claim of its pod.',
  {
    name: req(1, string, 'Entry in the resourceClaims of the pod that the container uses.'),
    request: opt(2, string, 'Restricts access to this request of the claim; all requests if empty.'),
  },
)

export const resourceRequirements = object(
  'io.k8s.api.core.v1.ResourceRequirements',
  'Requests and limits by resource.',
  {
    limits: opt(1, map(quantity), 'Maximum amounts by resource.'),
    requests: opt(2, map(quantity), 'Reserved amounts by resource; default to the limits.'),
    claims: opt(3, list(resourceClaim), 'Device claims of the pod that are used here.', {
      list: 'map',
      keys: ['name'],
    }),
  },
)

const containerResizePolicy = object(
  'io.k8s.api.core.v1.ContainerResizePolicy',
  'Whether changing a resource of a running container restarts it.',
  {
    resourceName: req(1, string, 'Resource that the policy covers: cpu or memory.'),
    restartPolicy: req(
      2,
      string,
      'NotRequired changes the resource in place; RestartContainer restarts the container.',
    ),
  },
)

const containerRestartRuleOnExitCodes = object(
  'io.k8s.api.core.v1.ContainerRestartRuleOnExitCodes',
  'A condition on the exit code of a container.',
  {
    operator: opt(1, string, 'In or NotIn: whether the exit code must be among the values or must not.'),
    values: opt(2, list(int32), 'Exit codes to compare with, at most 255 of them.', { list: 'set' }),
  },
)

const containerRestartRule = object(
  'io.k8s.api.core.v1.ContainerRestartRule',
  'Action for certain exit codes of a container.',
  {
    action: opt(1, string, 'Action if the condition is met: Restart.'),
    exitCodes: ptr(2, containerRestartRuleOnExitCodes, 'Condition on the exit code.'),
  },
)

export const volumeMount = object('io.k8s.api.core.v1.VolumeMount', 'Mounts a volume of the pod into a container.', {
  name: req(1, string, 'Volume of the pod to mount.'),
  readOnly: opt(2, boolean, 'Mount read-only; false by default.'),
  recursiveReadOnly: ptr(
    7,
    string,
    'Whether mounts below a read-only mount are also read-only: Disabled, IfPossible or Enabled.',
  ),
  mountPath: req(3, string, 'Mount path in the container; must not contain a colon.'),
  subPath: opt(4, string, 'Directory or file of the volume to mount instead of its root.'),
  mountPropagation: ptr(
    5,
    oneOf('None', 'HostToContainer', 'Bidirectional'),
    'Whether later mounts propagate between the node and the container.',
  ),
  subPathExpr: opt(
    6,
    string,
    'Like subPath, with $(NAME) expanded from the environment of the container; excludes subPath.',
  ),
  bindMountOptions: opt(
    8,
    list(string),
    'Further Linux mount restrictions: any of noexec, nodev and nosuid; not for image volumes.',
    { list: 'set' },
  ),
})

export const volumeDevice = object(
  'io.k8s.api.core.v1.VolumeDevice',
  'Maps a raw block volume of the pod into a container.',
  {
    name: req(1, string, 'Claim-backed volume of the pod to expose as a device.'),
    devicePath: req(2, string, 'Path of the device in the container.'),
  },
)

const execAction = object('io.k8s.api.core.v1.ExecAction', 'A command run inside a container.', {
  command: opt(1, list(string), 'Program and arguments, run without a shell; exit status 0 is success.'),
})

const httpHeader = object('io.k8s.api.core.v1.HTTPHeader', 'A header of an HTTP probe.', {
  name: req(1, string, 'Name of the header; case-insensitive.'),
  value: req(2, string, 'Value of the header.'),
})

export const httpGetAction = object('io.k8s.api.core.v1.HTTPGetAction', 'An HTTP GET request sent to a container.', {
  path: opt(1, string, 'Path to request from the server, with query if needed.'),
  port: req(2, intOrString, 'Number or name of the container port.'),
  host: opt(3, string, 'Host of the request; the pod by default.'),
  scheme: opt(4, oneOf('HTTP', 'HTTPS'), 'HTTP by default; HTTPS skips certificate verification.'),
  httpHeaders: opt(5, list(httpHeader), 'Headers to send; the same name may appear more than once.'),
  protocol: ptr(6, oneOf('HTTP1', 'HTTP2'), 'HTTP1 or HTTP2; HTTP1 by default.'),
})

const tcpSocketAction = object('io.k8s.api.core.v1.TCPSocketAction', 'A TCP connection opened to a container.', {
  port: req(1, intOrString, 'Number or name of the container port to connect to.'),
  host: opt(2, string, 'Host to connect to; the pod itself by default.'),
})

const grpcAction = object(
  'io.k8s.api.core.v1.GRPCAction',
  'A call to the standard gRPC health service of a container.',
  {
    port: req(1, int32, 'Port number, from 1 to 65535, where the gRPC server listens.'),
    service: ptr(2, string, 'Service of the health check; empty for the whole server.'),
    mode: ptr(3, oneOf('Plaintext', 'TLS'), 'Plaintext by default; TLS skips certificate verification.'),
  },
)

const probeHandler = object('io.k8s.api.core.v1.ProbeHandler', 'Action of a probe; exactly one must be set.', {
  exec: ptr(1, execAction, 'Run a command in the container; exit status 0 passes.'),
  httpGet: ptr(2, httpGetAction, 'Send an HTTP request; a status from 200 to 399 passes.'),
  tcpSocket: ptr(3, tcpSocketAction, 'Open a TCP connection; an accepted connection passes.'),
  grpc: ptr(4, grpcAction, 'Call the gRPC health service of the container.'),
})

export const probe = object('io.k8s.api.core.v1.Probe', 'A periodic health check of a container.', {
  ...within(1, probeHandler.fields),
  initialDelaySeconds: opt(2, int32, 'Seconds between the start of the container and the first check.'),
  timeoutSeconds: opt(3, int32, 'Timeout of a check in seconds; 1 by default.'),
  periodSeconds: opt(4, int32, 'Seconds from one check to the next; 10 by default.'),
  successThreshold: opt(
    5,
    int32,
    'Consecutive successes needed after a failure; must be 1 for liveness and startup probes.',
  ),
  failureThreshold: opt(6, int32, 'Consecutive failures before the probe fails; 3 by default.'),
  terminationGracePeriodSeconds: ptr(
    7,
    int64,
    'Grace period after a failure of this probe; overrides that of the pod.',
  ),
})

const sleepAction = object('io.k8s.api.core.v1.SleepAction', 'A pause of a given length.', {
  seconds: req(1, int64, 'Length of the pause in seconds.'),
})

export const lifecycleHandler = object(
  'io.k8s.api.core.v1.LifecycleHandler',
  'Action of a lifecycle hook; exactly one must be set.',
  {
    exec: ptr(1, execAction, 'Run a command in the container.'),
    httpGet: ptr(2, httpGetAction, 'Send an HTTP request to the container.'),
    tcpSocket: ptr(3, tcpSocketAction, 'Deprecated: accepted for compatibility; the hook fails when it runs.'),
    sleep: ptr(4, sleepAction, 'Pause for some time.'),
  },
)

export const stopSignal = oneOf(
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
)

export const lifecycle = object(
  'io.k8s.api.core.v1.Lifecycle',
  'Hooks run after a container starts and before it stops.',
  {
    postStart: ptr(
      1,
      lifecycleHandler,
      'Run right after creation; if it fails, the container is stopped and restarted by policy.',
    ),
    preStop: ptr(2, lifecycleHandler, 'Run before the stop signal; its duration counts towards the grace period.'),
    stopSignal: ptr(
      3,
      stopSignal,
      'Stop signal of the container; requires spec.os.name. Chosen by the runtime if unset.',
    ),
  },
)

const capabilities = object(
  'io.k8s.api.core.v1.Capabilities',
  'Linux capabilities added to or dropped from the default set of the runtime.',
  {
    add: opt(1, list(string), 'Capabilities to add, for example NET_ADMIN.'),
    drop: opt(2, list(string), 'Capabilities to drop; ALL drops all.'),
  },
)

export const seLinuxOptions = object('io.k8s.api.core.v1.SELinuxOptions', 'An SELinux label.', {
  user: opt(1, string, 'User part of the label.'),
  role: opt(2, string, 'Role part of the label.'),
  type: opt(3, string, 'Type part of the label.'),
  level: opt(4, string, 'Level part of the label, such as s0:c123,c456.'),
})

export const windowsSecurityContextOptions = object(
  'io.k8s.api.core.v1.WindowsSecurityContextOptions',
  'Settings for containers that run on Windows.',
  {
    gmsaCredentialSpecName: ptr(1, string, 'Name of the group managed service account credential to use.'),
    gmsaCredentialSpec: ptr(2, string, 'Contents of that credential, set by an admission webhook.'),
    runAsUserName: ptr(3, string, 'Windows user that the process of the container runs as.'),
    hostProcess: ptr(4, boolean, 'Run as a host process container; must be the same for all containers of a pod.'),
  },
)

export const seccompProfile = object(
  'io.k8s.api.core.v1.SeccompProfile',
  'Seccomp profile, which limits system calls.',
  {
    type: req(
      1,
      oneOf('Unconfined', 'RuntimeDefault', 'Localhost'),
      'Source of the profile: the runtime, a file on the node, or none.',
    ),
    localhostProfile: ptr(
      2,
      string,
      'Profile file on the node, relative to its seccomp directory; only with type Localhost.',
    ),
  },
)

export const appArmorProfile = object('io.k8s.api.core.v1.AppArmorProfile', 'AppArmor profile.', {
  type: req(
    1,
    oneOf('Unconfined', 'RuntimeDefault', 'Localhost'),
    'Source of the profile: the container runtime, a profile on the node, or none.',
  ),
  localhostProfile: ptr(2, string, 'Name of a profile loaded on the node; only with type Localhost.'),
})

export const securityContext = object(
  'io.k8s.api.core.v1.SecurityContext',
  'Security settings of one container, which override those of the pod.',
  {
    capabilities: ptr(1, capabilities, 'Linux capabilities to add or drop.'),
    privileged: ptr(2, boolean, 'Run with nearly the privileges of root on the node; false by default.'),
    seLinuxOptions: ptr(3, seLinuxOptions, 'SELinux label of the container; chosen by the runtime if unset.'),
    windowsOptions: ptr(10, windowsSecurityContextOptions, 'Settings for Windows nodes.'),
    runAsUser: ptr(4, int64, 'User ID of the process; defaults to that of the image.'),
    runAsGroup: ptr(8, int64, 'Primary group ID of the process.'),
    runAsNonRoot: ptr(5, boolean, 'Do not start the container if it would run as user ID 0.'),
    readOnlyRootFilesystem: ptr(6, boolean, 'Make the root filesystem read-only; false by default.'),
    allowPrivilegeEscalation: ptr(
      7,
      boolean,
      'Whether a process may gain more privileges than its parent; always true if privileged.',
    ),
    procMount: ptr(9, oneOf('Default', 'Unmasked'), 'Default masks sensitive parts of /proc; Unmasked does not.'),
    seccompProfile: ptr(11, seccompProfile, 'System call filter of the container.'),
    appArmorProfile: ptr(12, appArmorProfile, 'AppArmor profile of the container.'),
  },
)

export const container = object('io.k8s.api.core.v1.Container', 'A container of a pod.', {
  name: req(1, string, 'Name of the container, unique in its pod; immutable.'),
  image: opt(2, string, 'Image to run, with an optional tag or digest.'),
  command: opt(3, list(string), 'Program to run; overrides the entry point of the image and is not run in a shell.'),
  args: opt(4, list(string), 'Arguments of the program; overrides those of the image.'),
  workingDir: opt(5, string, 'Working directory; by default that of the image.'),
  ports: opt(6, list(containerPort), 'Ports on which the container listens; mostly informative.', {
    merge: 'containerPort',
    list: 'map',
    keys: ['containerPort', 'protocol'],
  }),
  envFrom: opt(
    19,
    list(envFromSource),
    'ConfigMaps and Secrets whose entries become variables; env and later sources take precedence.',
  ),
  env: opt(7, list(envVar), 'Environment variables of the container.', {
    merge: 'name',
    list: 'map',
    keys: ['name'],
  }),
  resources: opt(8, resourceRequirements, 'Requests and limits of the container.'),
  resizePolicy: opt(23, list(containerResizePolicy), 'Whether a change of each resource restarts the container.'),
  restartPolicy: ptr(24, string, 'Restart policy of this container; an init container with Always is a sidecar.'),
  restartPolicyRules: opt(
    25,
    list(containerRestartRule),
    'Rules by exit code, evaluated in order before the restart policy.',
  ),
  volumeMounts: opt(9, list(volumeMount), 'Volumes of the pod and where they appear in the file system.', {
    merge: 'mountPath',
    list: 'map',
    keys: ['mountPath'],
  }),
  volumeDevices: opt(21, list(volumeDevice), 'Raw block volumes of the pod and where they appear as devices.', {
    merge: 'devicePath',
    list: 'map',
    keys: ['devicePath'],
  }),
  livenessProbe: ptr(10, probe, 'Probe that restarts the container if it fails.'),
  readinessProbe: ptr(11, probe, 'Probe that makes the container not ready while it fails.'),
  startupProbe: ptr(22, probe, 'Probe that delays the other probes until it succeeds.'),
  lifecycle: ptr(12, lifecycle, 'Hooks for the start and stop of the container.'),
  terminationMessagePath: opt(
    13,
    string,
    'File whose contents become the termination message; /dev/termination-log by default.',
  ),
  terminationMessagePolicy: opt(
    20,
    oneOf('File', 'FallbackToLogsOnError'),
    'Whether the end of the log serves as message when the file is empty after an error.',
  ),
  imagePullPolicy: opt(
    14,
    oneOf('Always', 'Never', 'IfNotPresent'),
    'When the image is fetched; Always for the latest tag, otherwise IfNotPresent.',
  ),
  securityContext: ptr(15, securityContext, 'Security settings of this container; they override those of the pod.'),
  stdin: opt(16, boolean, 'Whether standard input is kept open for attaching.'),
  stdinOnce: opt(17, boolean, 'Close standard input after the first attached client leaves.'),
  tty: opt(18, boolean, 'Give the container a terminal; stdin must be on as well.'),
})

export type Container = Infer<typeof container>

const ephemeralContainerCommon = object(
  'io.k8s.api.core.v1.EphemeralContainerCommon',
  'Fields that ephemeral containers share with ordinary ones.',
  {
    name: req(1, string, 'Name of the container, unique in its pod.'),
    image: opt(2, string, 'Image to run, with an optional tag or digest.'),
    command: opt(3, list(string), 'Program to run; overrides the entry point of the image and is not run in a shell.'),
    args: opt(4, list(string), 'Arguments of the program; overrides those of the image.'),
    workingDir: opt(5, string, 'Working directory; by default that of the image.'),
    ports: opt(6, list(containerPort), 'Must be empty: ephemeral containers have no ports.', {
      merge: 'containerPort',
      list: 'map',
      keys: ['containerPort', 'protocol'],
    }),
    envFrom: opt(
      19,
      list(envFromSource),
      'ConfigMaps and Secrets whose entries become variables; env and later sources take precedence.',
    ),
    env: opt(7, list(envVar), 'Environment variables of the container.', {
      merge: 'name',
      list: 'map',
      keys: ['name'],
    }),
    resources: opt(8, resourceRequirements, 'Must be empty: ephemeral containers have no resources of their own.'),
    resizePolicy: opt(23, list(containerResizePolicy), 'Must be empty: ephemeral containers have no resources.'),
    restartPolicy: ptr(24, string, 'Must be unset: ephemeral containers are never restarted.'),
    restartPolicyRules: opt(25, list(containerRestartRule), 'Must be empty: ephemeral containers are never restarted.'),
    volumeMounts: opt(9, list(volumeMount), 'Volumes to mount; subPath is not allowed.', {
      merge: 'mountPath',
      list: 'map',
      keys: ['mountPath'],
    }),
    volumeDevices: opt(21, list(volumeDevice), 'Raw block volumes of the pod and where they appear as devices.', {
      merge: 'devicePath',
      list: 'map',
      keys: ['devicePath'],
    }),
    livenessProbe: ptr(10, probe, 'Must be unset: ephemeral containers are not probed.'),
    readinessProbe: ptr(11, probe, 'Must be unset: ephemeral containers are not probed.'),
    startupProbe: ptr(22, probe, 'Must be unset: ephemeral containers are not probed.'),
    lifecycle: ptr(12, lifecycle, 'Must be unset: ephemeral containers have no hooks.'),
    terminationMessagePath: opt(
      13,
      string,
      'File whose contents become the termination message; /dev/termination-log by default.',
    ),
    terminationMessagePolicy: opt(
      20,
      oneOf('File', 'FallbackToLogsOnError'),
      'Whether the end of the log serves as message when the file is empty after an error.',
    ),
    imagePullPolicy: opt(
      14,
      oneOf('Always', 'Never', 'IfNotPresent'),
      'When the image is fetched; Always for the latest tag, otherwise IfNotPresent.',
    ),
    securityContext: ptr(15, securityContext, 'Security settings of this container; they override those of the pod.'),
    stdin: opt(16, boolean, 'Whether standard input is kept open for attaching.'),
    stdinOnce: opt(17, boolean, 'Close standard input after the first attached client leaves.'),
    tty: opt(18, boolean, 'Give the container a terminal; stdin must be on as well.'),
  },
)

export const ephemeralContainer = object(
  'io.k8s.api.core.v1.EphemeralContainer',
  'A container added to a running pod for debugging; it cannot be changed or removed.',
  {
    ...within(1, ephemeralContainerCommon.fields),
    targetContainerName: opt(2, string, 'Container of the pod whose process namespace is shared; none by default.'),
  },
)

export type EphemeralContainer = Infer<typeof ephemeralContainer>
