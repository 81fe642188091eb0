// What runs inside a pod: containers and ephemeral containers, with their environment, ports, probes,
// hooks, resource needs, mounts and security settings. Declarations only: rules about which
// combinations are allowed are validation's job.

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

export const containerPort = object('io.k8s.api.core.v1.ContainerPort', 'A port on which a container listens.', {
  name: opt(1, string, 'Name by which services and probes can refer to the port; unique in the pod.'),
  hostPort: opt(2, int32, 'Port of the node that leads to this one; most pods need none.'),
  containerPort: req(3, int32, 'Port number inside the pod, from 1 to 65535.'),
  protocol: opt(4, oneOf('TCP', 'UDP', 'SCTP'), 'Transport protocol of the port; TCP by default.', { default: 'TCP' }),
  hostIP: opt(5, string, 'Node address to which hostPort is bound; all addresses by default.'),
})

export const configMapEnvSource = object(
  'io.k8s.api.core.v1.ConfigMapEnvSource',
  'Turns every entry of a ConfigMap into an environment variable.',
  {
    ...within(1, localObjectReference.fields),
    optional: ptr(2, boolean, 'Start the container even when the ConfigMap is missing.'),
  },
)

export const secretEnvSource = object(
  'io.k8s.api.core.v1.SecretEnvSource',
  'Turns every entry of a Secret into an environment variable.',
  {
    ...within(1, localObjectReference.fields),
    optional: ptr(2, boolean, 'Start the container even when the Secret is missing.'),
  },
)

export const envFromSource = object(
  'io.k8s.api.core.v1.EnvFromSource',
  'A ConfigMap or Secret whose entries all become environment variables.',
  {
    prefix: opt(1, string, 'Text put before each key to form the variable name.'),
    configMapRef: ptr(2, configMapEnvSource, 'ConfigMap to take the variables from.'),
    secretRef: ptr(3, secretEnvSource, 'Secret to take the variables from.'),
  },
)

export const configMapKeySelector = object(
  'io.k8s.api.core.v1.ConfigMapKeySelector',
  'Picks one entry of a ConfigMap.',
  {
    ...within(1, localObjectReference.fields),
    key: req(2, string, 'Entry of the ConfigMap whose value is used.'),
    optional: ptr(3, boolean, 'Carry on without the variable when the ConfigMap or key is missing.'),
  },
  { atomic: true },
)

export const secretKeySelector = object(
  'io.k8s.api.core.v1.SecretKeySelector',
  'Picks one entry of a Secret.',
  {
    ...within(1, localObjectReference.fields),
    key: req(2, string, 'Entry of the Secret whose value is used.'),
    optional: ptr(3, boolean, 'Carry on without the variable when the Secret or key is missing.'),
  },
  { atomic: true },
)

export const fileKeySelector = object(
  'io.k8s.api.core.v1.FileKeySelector',
  'Picks one variable from an env file stored on a volume.',
  {
    volumeName: req(1, string, 'Volume of the pod that holds the env file.'),
    path: req(2, string, 'Where the file is, relative to the volume root and without "..".'),
    key: req(3, string, 'Variable in the file whose value is used.'),
    optional: ptr(4, boolean, 'Carry on without the variable when the file or key is missing.'),
  },
  { atomic: true },
)

export const envVarSource = object(
  'io.k8s.api.core.v1.EnvVarSource',
  'Where an environment variable gets its value; choose exactly one source.',
  {
    fieldRef: ptr(1, objectFieldSelector, 'Take the value from a field of the pod, such as metadata.name.'),
    resourceFieldRef: ptr(2, resourceFieldSelector, 'Take the value from a resource request or limit of a container.'),
    configMapKeyRef: ptr(3, configMapKeySelector, 'Take the value from an entry of a ConfigMap.'),
    secretKeyRef: ptr(4, secretKeySelector, 'Take the value from an entry of a Secret.'),
    fileKeyRef: ptr(5, fileKeySelector, 'Take the value from an env file on a volume.'),
  },
)

export const envVar = object('io.k8s.api.core.v1.EnvVar', 'An environment variable that a container starts with.', {
  name: req(1, string, 'Name of the variable inside the container.'),
  value: opt(2, string, 'Its value; $(NAME) inserts an earlier variable, $$(NAME) stays as $(NAME).'),
  valueFrom: ptr(3, envVarSource, 'Source to read the value from, instead of giving it here.'),
})

export const resourceClaim = object(
  'io.k8s.api.core.v1.ResourceClaim',
  'Gives a container access to a device claim of its pod.',
  {
    name: req(1, string, 'Entry in the resourceClaims of the pod that the container uses.'),
    request: opt(2, string, 'Only this request of the claim; all of them when empty.'),
  },
)

export const resourceRequirements = object(
  'io.k8s.api.core.v1.ResourceRequirements',
  'How much of each resource is asked for, and how much may be used at most.',
  {
    limits: opt(1, map(quantity), 'Most that may be used of each resource.'),
    requests: opt(
      2,
      map(quantity),
      'Amount to be set aside for each resource; equals the limit when only that is given.',
    ),
    claims: opt(3, list(resourceClaim), 'Device claims of the pod that are used here.', {
      list: 'map',
      keys: ['name'],
    }),
  },
)

export const containerResizePolicy = object(
  'io.k8s.api.core.v1.ContainerResizePolicy',
  'Whether changing a resource of a running container restarts it.',
  {
    resourceName: req(1, string, 'Resource that the policy covers: cpu or memory.'),
    restartPolicy: req(2, string, 'NotRequired to change it in place, RestartContainer to start the container again.'),
  },
)

export const containerRestartRuleOnExitCodes = object(
  'io.k8s.api.core.v1.ContainerRestartRuleOnExitCodes',
  'A test on the exit code of a container.',
  {
    operator: opt(1, string, 'In or NotIn: whether the exit code must be among the values or must not.'),
    values: opt(2, list(int32), 'Exit codes to compare with, at most 255 of them.', { list: 'set' }),
  },
)

export const containerRestartRule = object(
  'io.k8s.api.core.v1.ContainerRestartRule',
  'What to do when a container exits in a certain way.',
  {
    action: opt(1, string, 'What happens when the test is met; Restart starts the container again.'),
    exitCodes: ptr(2, containerRestartRuleOnExitCodes, 'Which exit codes this rule is about.'),
  },
)

export const volumeMount = object(
  'io.k8s.api.core.v1.VolumeMount',
  'Where in a container a volume of the pod appears.',
  {
    name: req(1, string, 'Volume of the pod to mount.'),
    readOnly: opt(2, boolean, 'Keep the container from writing to the volume; false by default.'),
    recursiveReadOnly: ptr(
      7,
      string,
      'Disabled, IfPossible or Enabled: whether a read-only mount covers mounts below it too.',
    ),
    mountPath: req(3, string, 'Where the volume appears in the container; must not contain a colon.'),
    subPath: opt(4, string, 'Directory or file of the volume to mount instead of its root.'),
    mountPropagation: ptr(
      5,
      oneOf('None', 'HostToContainer', 'Bidirectional'),
      'Whether mounts made later by the node or the container become visible to the other.',
    ),
    subPathExpr: opt(
      6,
      string,
      'Like subPath, with $(NAME) replaced by variables of the container; use one of the two.',
    ),
    bindMountOptions: opt(
      8,
      list(string),
      'Further Linux mount restrictions: any of noexec, nodev and nosuid; not for image volumes.',
      { list: 'set' },
    ),
  },
)

export const volumeDevice = object(
  'io.k8s.api.core.v1.VolumeDevice',
  'Where in a container a raw block volume of the pod appears.',
  {
    name: req(1, string, 'Claim-backed volume of the pod to expose as a device.'),
    devicePath: req(2, string, 'Path of the device as the container sees it.'),
  },
)

export const execAction = object('io.k8s.api.core.v1.ExecAction', 'A command run inside a container.', {
  command: opt(1, list(string), 'Program and arguments, run without a shell; exit status 0 is success.'),
})

export const httpHeader = object('io.k8s.api.core.v1.HTTPHeader', 'One header sent along with an HTTP probe.', {
  name: req(1, string, 'Header field to send; upper and lower case are the same.'),
  value: req(2, string, 'Contents of the header field.'),
})

export const httpGetAction = object('io.k8s.api.core.v1.HTTPGetAction', 'An HTTP GET request sent to a container.', {
  path: opt(1, string, 'Path to request from the server, with query if needed.'),
  port: req(2, intOrString, 'Number or name of the container port to call.'),
  host: opt(3, string, 'Host to call; the pod itself by default, so seldom needed.'),
  scheme: opt(4, oneOf('HTTP', 'HTTPS'), 'HTTP by default, or HTTPS without checking the certificate.'),
  httpHeaders: opt(5, list(httpHeader), 'Headers to send; the same name may appear more than once.'),
  protocol: ptr(6, oneOf('HTTP1', 'HTTP2'), 'HTTP1 or HTTP2 on the wire; HTTP1 when not given.'),
})

export const tcpSocketAction = object('io.k8s.api.core.v1.TCPSocketAction', 'A TCP connection opened to a container.', {
  port: req(1, intOrString, 'Number or name of the container port to connect to.'),
  host: opt(2, string, 'Host to connect to; the pod itself by default.'),
})

export const grpcAction = object(
  'io.k8s.api.core.v1.GRPCAction',
  'A call to the standard gRPC health service of a container.',
  {
    port: req(1, int32, 'Port number, from 1 to 65535, where the gRPC server listens.'),
    service: ptr(2, string, 'Service whose health is asked for; empty asks about the whole server.'),
    mode: ptr(
      3,
      oneOf('Plaintext', 'TLS'),
      'Plaintext, or TLS without checking the certificate; Plaintext when not given.',
    ),
  },
)

export const probeHandler = object(
  'io.k8s.api.core.v1.ProbeHandler',
  'How a probe examines a container; choose exactly one way.',
  {
    exec: ptr(1, execAction, 'Run a command in the container and look at its exit status.'),
    httpGet: ptr(2, httpGetAction, 'Send an HTTP request; a status from 200 to 399 passes.'),
    tcpSocket: ptr(3, tcpSocketAction, 'Open a TCP connection; being accepted is enough.'),
    grpc: ptr(4, grpcAction, 'Ask the gRPC health service of the container.'),
  },
)

export const probe = object('io.k8s.api.core.v1.Probe', 'A health check repeated on a container.', {
  ...within(1, probeHandler.fields),
  initialDelaySeconds: opt(2, int32, 'Seconds to leave the container alone before the first check.'),
  timeoutSeconds: opt(3, int32, 'Seconds after which a check without answer has failed; 1 by default.'),
  periodSeconds: opt(4, int32, 'Seconds from one check to the next; 10 by default.'),
  successThreshold: opt(5, int32, 'Passes in a row needed after a failure; liveness and startup probes allow only 1.'),
  failureThreshold: opt(6, int32, 'Failures in a row before the probe counts as failed; 3 by default.'),
  terminationGracePeriodSeconds: ptr(
    7,
    int64,
    'Grace period to use instead of the one of the pod when this probe fails.',
  ),
})

export const sleepAction = object('io.k8s.api.core.v1.SleepAction', 'A pause of a given length.', {
  seconds: req(1, int64, 'How many seconds the pause lasts.'),
})

export const lifecycleHandler = object(
  'io.k8s.api.core.v1.LifecycleHandler',
  'What a lifecycle hook does; choose exactly one action.',
  {
    exec: ptr(1, execAction, 'Run a command in the container.'),
    httpGet: ptr(2, httpGetAction, 'Send an HTTP request to the container.'),
    tcpSocket: ptr(3, tcpSocketAction, 'Accepted for compatibility only; a hook with it fails when it runs.'),
    sleep: ptr(4, sleepAction, 'Wait for a while before going on.'),
  },
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
    preStop: ptr(
      2,
      lifecycleHandler,
      'Run before the container is told to stop; its time counts against the grace period.',
    ),
    stopSignal: ptr(
      3,
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
      'Signal sent to stop the container; needs spec.os.name, and otherwise the runtime chooses.',
    ),
  },
)

export const capabilities = object(
  'io.k8s.api.core.v1.Capabilities',
  'Linux capabilities granted or withdrawn beyond the usual set of the runtime.',
  {
    add: opt(1, list(string), 'Capabilities the container gains, for example NET_ADMIN.'),
    drop: opt(2, list(string), 'Capabilities the container loses; ALL removes every one.'),
  },
)

export const seLinuxOptions = object('io.k8s.api.core.v1.SELinuxOptions', 'The parts of an SELinux label.', {
  user: opt(1, string, 'User part of the label that applies.'),
  role: opt(2, string, 'Role part of the label that applies.'),
  type: opt(3, string, 'Type part of the label that applies.'),
  level: opt(4, string, 'Level part of the label, such as s0:c123,c456.'),
})

export const windowsSecurityContextOptions = object(
  'io.k8s.api.core.v1.WindowsSecurityContextOptions',
  'Settings for containers that run on Windows.',
  {
    gmsaCredentialSpecName: ptr(1, string, 'Name of the group managed service account credential to use.'),
    gmsaCredentialSpec: ptr(2, string, 'Contents of that credential, filled in by an admission webhook.'),
    runAsUserName: ptr(3, string, 'Windows user that the process of the container runs as.'),
    hostProcess: ptr(4, boolean, 'Run directly on the node; all containers of a pod must agree.'),
  },
)

export const seccompProfile = object('io.k8s.api.core.v1.SeccompProfile', 'Which system calls a process may make.', {
  type: req(
    1,
    oneOf('Unconfined', 'RuntimeDefault', 'Localhost'),
    'Kind of filter: from the runtime, from a file on the node, or none.',
  ),
  localhostProfile: ptr(
    2,
    string,
    'Profile file on the node, relative to its seccomp directory; only with type Localhost.',
  ),
})

export const appArmorProfile = object('io.k8s.api.core.v1.AppArmorProfile', 'Which AppArmor rules confine a process.', {
  type: req(
    1,
    oneOf('Unconfined', 'RuntimeDefault', 'Localhost'),
    'Kind of profile: from the runtime, loaded on the node, or none.',
  ),
  localhostProfile: ptr(2, string, 'Name of a profile loaded on the node; only with type Localhost.'),
})

export const securityContext = object(
  'io.k8s.api.core.v1.SecurityContext',
  'Identity and confinement of one container; it wins over the settings of the pod.',
  {
    capabilities: ptr(1, capabilities, 'Linux capabilities to add or drop.'),
    privileged: ptr(2, boolean, 'Give the container nearly the powers of root on the node; false by default.'),
    seLinuxOptions: ptr(3, seLinuxOptions, 'SELinux label of the container; the runtime picks one if none is set.'),
    windowsOptions: ptr(10, windowsSecurityContextOptions, 'Settings that matter only on Windows nodes.'),
    runAsUser: ptr(4, int64, 'User ID the container starts as; by default the one its image names.'),
    runAsGroup: ptr(8, int64, 'Primary group ID the container starts with.'),
    runAsNonRoot: ptr(5, boolean, 'Refuse to start the container if it would run as user ID 0.'),
    readOnlyRootFilesystem: ptr(6, boolean, 'Forbid writing outside mounted volumes; false by default.'),
    allowPrivilegeEscalation: ptr(
      7,
      boolean,
      'Whether a process may gain more rights than its parent; always true when privileged.',
    ),
    procMount: ptr(
      9,
      oneOf('Default', 'Unmasked'),
      'Whether sensitive parts of /proc are hidden (Default) or all shown (Unmasked).',
    ),
    seccompProfile: ptr(11, seccompProfile, 'System call filter of the container.'),
    appArmorProfile: ptr(12, appArmorProfile, 'AppArmor profile of the container.'),
  },
)

export const container = object(
  'io.k8s.api.core.v1.Container',
  'A program packaged as an image, and how it is run in a pod.',
  {
    name: req(1, string, 'Name of the container, unique in its pod; cannot be changed.'),
    image: opt(2, string, 'Image to run, with an optional tag or digest.'),
    command: opt(3, list(string), 'Program to run instead of the entry point of the image; no shell is involved.'),
    args: opt(4, list(string), 'Arguments for the program, instead of those the image brings.'),
    workingDir: opt(5, string, 'Directory to start in; by default the one the image names.'),
    ports: opt(
      6,
      list(containerPort),
      'Ports the container listens on; mostly informative, as leaving one out blocks nothing.',
      { merge: 'containerPort', list: 'map', keys: ['containerPort', 'protocol'] },
    ),
    envFrom: opt(
      19,
      list(envFromSource),
      'ConfigMaps and Secrets whose entries all become variables; env and later sources win.',
    ),
    env: opt(7, list(envVar), 'Environment variables to set, one by one.', {
      merge: 'name',
      list: 'map',
      keys: ['name'],
    }),
    resources: opt(8, resourceRequirements, 'CPU, memory and other resources the container asks for and may use.'),
    resizePolicy: opt(
      23,
      list(containerResizePolicy),
      'Which resource changes can be made without restarting the container.',
    ),
    restartPolicy: ptr(
      24,
      string,
      'When to restart this container alone; Always on an init container makes a sidecar.',
    ),
    restartPolicyRules: opt(
      25,
      list(containerRestartRule),
      'Exceptions by exit code, tried in order before the restart policy.',
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
    livenessProbe: ptr(10, probe, 'Check that restarts the container when it fails.'),
    readinessProbe: ptr(11, probe, 'Check that takes the container out of service while it fails.'),
    startupProbe: ptr(22, probe, 'Check that holds back the other probes until it has passed once.'),
    lifecycle: ptr(12, lifecycle, 'Actions to take when the container starts and stops.'),
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
    securityContext: ptr(15, securityContext, 'Security settings of this container, before those of the pod.'),
    stdin: opt(16, boolean, 'Keep standard input open, so that one can attach to it.'),
    stdinOnce: opt(17, boolean, 'Close standard input after the first attached client leaves.'),
    tty: opt(18, boolean, 'Give the container a terminal; stdin must be on as well.'),
  },
)

export type Container = Infer<typeof container>

export const ephemeralContainerCommon = object(
  'io.k8s.api.core.v1.EphemeralContainerCommon',
  'What an ephemeral container shares with an ordinary one.',
  {
    name: req(1, string, 'Name of the container, unlike that of any other in the pod.'),
    image: opt(2, string, 'Image to run, with an optional tag or digest.'),
    command: opt(3, list(string), 'Program to run instead of the entry point of the image; no shell is involved.'),
    args: opt(4, list(string), 'Arguments for the program, instead of those the image brings.'),
    workingDir: opt(5, string, 'Directory to start in; by default the one the image names.'),
    ports: opt(6, list(containerPort), 'Must stay empty: ephemeral containers have no ports.', {
      merge: 'containerPort',
      list: 'map',
      keys: ['containerPort', 'protocol'],
    }),
    envFrom: opt(
      19,
      list(envFromSource),
      'ConfigMaps and Secrets whose entries all become variables; env and later sources win.',
    ),
    env: opt(7, list(envVar), 'Environment variables to set, one by one.', {
      merge: 'name',
      list: 'map',
      keys: ['name'],
    }),
    resources: opt(8, resourceRequirements, 'Must stay empty: ephemeral containers live on what the pod has to spare.'),
    resizePolicy: opt(23, list(containerResizePolicy), 'Must stay empty: there are no resources to change.'),
    restartPolicy: ptr(24, string, 'Must stay unset: ephemeral containers are never restarted.'),
    restartPolicyRules: opt(
      25,
      list(containerRestartRule),
      'Must stay empty: ephemeral containers are never restarted.',
    ),
    volumeMounts: opt(9, list(volumeMount), 'Volumes of the pod and where they appear; subPath cannot be used here.', {
      merge: 'mountPath',
      list: 'map',
      keys: ['mountPath'],
    }),
    volumeDevices: opt(21, list(volumeDevice), 'Raw block volumes of the pod and where they appear as devices.', {
      merge: 'devicePath',
      list: 'map',
      keys: ['devicePath'],
    }),
    livenessProbe: ptr(10, probe, 'Must stay unset: ephemeral containers are not probed.'),
    readinessProbe: ptr(11, probe, 'Must stay unset: ephemeral containers are not probed.'),
    startupProbe: ptr(22, probe, 'Must stay unset: ephemeral containers are not probed.'),
    lifecycle: ptr(12, lifecycle, 'Must stay unset: ephemeral containers have no hooks.'),
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
    securityContext: ptr(15, securityContext, 'Security settings of this container, before those of the pod.'),
    stdin: opt(16, boolean, 'Keep standard input open, so that one can attach to it.'),
    stdinOnce: opt(17, boolean, 'Close standard input after the first attached client leaves.'),
    tty: opt(18, boolean, 'Give the container a terminal; stdin must be on as well.'),
  },
)

export const ephemeralContainer = object(
  'io.k8s.api.core.v1.EphemeralContainer',
  'A container added to a running pod for debugging; it cannot be changed or removed.',
  {
    ...within(1, ephemeralContainerCommon.fields),
    targetContainerName: opt(2, string, 'Container of the pod whose processes this one joins; none by default.'),
  },
)

export type EphemeralContainer = Infer<typeof ephemeralContainer>
