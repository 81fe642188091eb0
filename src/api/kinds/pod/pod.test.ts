import { describe, expect, it } from 'vitest'
import { tryCreate, tryStatus } from '../kind.fixture.ts'
import { aPod, type PodOptions } from './pod.fixture.ts'
import { podKind } from './pod.ts'

const createPod = (options?: PodOptions) => tryCreate(podKind, aPod(options)).object
const errorsOf = (options?: PodOptions) => tryCreate(podKind, aPod(options)).errors

describe('creating a pod', () => {
  it('applies the defaults of a pod with one container and one claim', () => {
    expect(createPod()).toEqual({
      metadata: { name: 'db-0', namespace: 'shop' },
      spec: {
        containers: [
          {
            name: 'db',
            image: 'postgres:17',
            terminationMessagePath: '/dev/termination-log',
            terminationMessagePolicy: 'File',
            imagePullPolicy: 'IfNotPresent',
          },
        ],
        volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'db-data' } }],
        restartPolicy: 'Always',
        terminationGracePeriodSeconds: 30,
        dnsPolicy: 'ClusterFirst',
        securityContext: {},
        schedulerName: 'default-scheduler',
        enableServiceLinks: true,
      },
      status: { phase: 'Pending', qosClass: 'BestEffort' },
    })
  })

  it.each([
    ['postgres', 'Always'],
    ['postgres:latest', 'Always'],
    ['registry:5000/postgres', 'Always'],
    ['registry:5000/postgres:17', 'IfNotPresent'],
    ['postgres@sha256:abc', 'IfNotPresent'],
    ['postgres:latest@sha256:abc', 'Always'],
  ])('defaults the pull policy of %s to %s', (image, policy) => {
    expect(createPod({ container: { image } }).spec?.containers[0]?.imagePullPolicy).toBe(policy)
  })

  it('defaults requests to limits', () => {
    const resources = { limits: { cpu: '2', memory: '1Gi' }, requests: { cpu: '1' } }
    expect(createPod({ container: { resources } }).spec?.containers[0]?.resources).toEqual({
      limits: { cpu: '2', memory: '1Gi' },
      requests: { cpu: '1', memory: '1Gi' },
    })
  })

  it('sets both serviceAccountName and serviceAccount', () => {
    expect(createPod({ spec: { serviceAccount: 'robot' } }).spec).toMatchObject({
      serviceAccount: 'robot',
      serviceAccountName: 'robot',
    })
    expect(createPod({ spec: { serviceAccount: 'old', serviceAccountName: 'new' } }).spec).toMatchObject({
      serviceAccount: 'new',
      serviceAccountName: 'new',
    })
  })

  it('defaults host ports to container ports on the host network', () => {
    const container = { ports: [{ containerPort: 80 }] }
    expect(
      createPod({ spec: { hostNetwork: true, containers: [{ name: 'a', image: 'a', ...container }] } }).spec,
    ).toMatchObject({
      containers: [{ ports: [{ containerPort: 80, hostPort: 80, protocol: 'TCP' }] }],
    })
  })

  it('applies the defaults of probes and hooks', () => {
    const container = { livenessProbe: { httpGet: { port: 80 } }, lifecycle: { preStop: { httpGet: { port: 80 } } } }
    expect(createPod({ container }).spec?.containers[0]).toMatchObject({
      livenessProbe: {
        httpGet: { port: 80, path: '/', scheme: 'HTTP' },
        timeoutSeconds: 1,
        periodSeconds: 10,
        successThreshold: 1,
        failureThreshold: 3,
      },
      lifecycle: { preStop: { httpGet: { port: 80, path: '/', scheme: 'HTTP' } } },
    })
  })

  it('changes a negative grace period to one second', () => {
    expect(createPod({ spec: { terminationGracePeriodSeconds: -5 } }).spec?.terminationGracePeriodSeconds).toBe(1)
  })

  it('replaces the status, and sets the condition PodScheduled to False if the pod has a scheduling gate', () => {
    const { object } = tryCreate(podKind, {
      ...aPod({ spec: { schedulingGates: [{ name: 'example.com/wait' }] } }),
      status: { phase: 'Running', podIP: '10.0.0.1' },
    })
    expect(object.status).toEqual({
      phase: 'Pending',
      qosClass: 'BestEffort',
      conditions: [
        {
          type: 'PodScheduled',
          status: 'False',
          reason: 'SchedulingGated',
          message: 'Scheduling is blocked due to non-empty scheduling gates',
        },
      ],
    })
  })
})

describe("a pod's spec", () => {
  it('is accepted with one container and one claim', () => expect(errorsOf()).toEqual([]))

  it.each([
    [{ containers: [] }, 'spec.containers: Required value'],
    [
      { restartPolicy: 'Often' },
      'spec.restartPolicy: Unsupported value: "Often": supported values: "Always", "OnFailure", "Never"',
    ],
    [
      { dnsPolicy: 'Custom' },
      'spec.dnsPolicy: Unsupported value: "Custom": supported values: "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"',
    ],
    [{ dnsPolicy: 'None' }, 'spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None'],
    [
      { dnsPolicy: 'None', dnsConfig: {} },
      'spec.dnsConfig.nameservers: Required value: must provide at least one DNS nameserver when `dnsPolicy` is None',
    ],
    [
      { dnsConfig: { nameservers: ['dns'] } },
      'spec.dnsConfig.nameservers[0]: Invalid value: "dns": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
    ],
    [{ nodeName: 'Node_1' }, 'spec.nodeName: Invalid value: "Node_1": a lowercase RFC 1123 subdomain'],
    [{ serviceAccountName: 'A' }, 'spec.serviceAccountName: Invalid value: "A": a lowercase RFC 1123 subdomain'],
    [{ hostname: 'a.b' }, 'spec.hostname: Invalid value: "a.b": must not contain dots'],
    [
      { activeDeadlineSeconds: 0 },
      'spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive',
    ],
    [{ nodeSelector: { disk: 'very fast' } }, 'spec.nodeSelector: Invalid value: "very fast": a valid label must be'],
    [{ schedulingGates: [{ name: 'a' }, { name: 'a' }] }, 'spec.schedulingGates[1]: Duplicate value: "a"'],
    [
      { schedulingGates: [{ name: 'a' }], nodeName: 'node-1' },
      'spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared',
    ],
    [
      { ephemeralContainers: [{ name: 'debug', image: 'busybox:1' }] },
      'spec.ephemeralContainers: Forbidden: cannot be set on create',
    ],
    [
      { readinessGates: [{ conditionType: 'a b' }] },
      'spec.readinessGates[0].conditionType: Invalid value: "a b": name part must consist of',
    ],
    [
      { shareProcessNamespace: true, hostPID: true },
      'spec.shareProcessNamespace: Invalid value: true: ShareProcessNamespace and HostPID cannot both be enabled',
    ],
    [
      { securityContext: { fsGroup: -1 } },
      'spec.securityContext.fsGroup: Invalid value: -1: must be between 0 and 2147483647, inclusive',
    ],
    [
      { preemptionPolicy: 'Maybe' },
      'spec.preemptionPolicy: Unsupported value: "Maybe": supported values: "PreemptLowerPriority", "Never"',
    ],
    [{ os: { name: 'plan9' } }, 'spec.os: Unsupported value: "plan9": supported values: "linux", "windows"'],
    [{ hostAliases: [{ ip: 'x' }] }, 'spec.hostAliases[0].ip: Invalid value: "x": must be a valid IP address'],
    [{ overhead: { cpu: '-1' } }, 'spec.overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0'],
  ])('is rejected with %j', (spec, message) => {
    const errors = errorsOf({ spec })
    expect(errors).toHaveLength(1)
    expect(errors[0]).toContain(message)
  })

  it('may have a nodeName on create', () => expect(errorsOf({ spec: { nodeName: 'node-1' } })).toEqual([]))
})

describe("a pod's status", () => {
  const storedPod = createPod({ spec: { restartPolicy: 'OnFailure' } })

  it('keeps its QoS class', () => {
    expect(tryStatus(podKind, storedPod, { phase: 'Running' }).object.status).toEqual({
      phase: 'Running',
      qosClass: 'BestEffort',
    })
    expect(tryStatus(podKind, storedPod, { qosClass: 'Guaranteed' }).errors).toEqual([
      'status.qosClass: Invalid value: "Guaranteed": field is immutable',
    ])
  })

  it('has the same address in podIP and podIPs', () => {
    expect(tryStatus(podKind, storedPod, { podIP: '10.0.0.1' }).object.status?.podIPs).toEqual([{ ip: '10.0.0.1' }])
    expect(tryStatus(podKind, storedPod, { podIPs: [{ ip: '10.0.0.1' }] }).object.status?.podIP).toBe('10.0.0.1')
  })

  it.each([
    [{ podIPs: [{ ip: 'x' }] }, 'status.podIPs[0]: Invalid value: "x": must be a valid IP address'],
    [{ podIPs: [{ ip: '10.0.0.1' }, { ip: '10.0.0.2' }] }, 'may specify no more than one IP for each IP family'],
    [{ hostIPs: [{ ip: '10.0.0.1' }] }, 'status.hostIPs[0].ip: Invalid value: "10.0.0.1": must be equal to `hostIP`'],
    [{ nominatedNodeName: 'A' }, 'status.nominatedNodeName: Invalid value: "A": a lowercase RFC 1123 subdomain'],
    [{ conditions: [{ type: 'a b', status: 'True' }] }, 'status.conditions[0].Type: Invalid value: "a b"'],
    [{ observedGeneration: -1 }, 'status.observedGeneration: Invalid value: -1: must be a non-negative integer'],
  ])('is rejected with %j', (status, message) => {
    const { errors } = tryStatus(podKind, storedPod, status)
    expect(errors).toHaveLength(1)
    expect(errors[0]).toContain(message)
  })

  it('is rejected with a nominated node if the pod has a node', () => {
    const boundPod = { ...storedPod, spec: { ...storedPod.spec!, nodeName: 'node-1' } }
    expect(tryStatus(podKind, boundPod, { nominatedNodeName: 'node-2' }).errors).toEqual([
      'status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node',
    ])
  })

  it('is rejected if a container that ended with exit code 0 runs again although the restart policy is OnFailure', () => {
    const container = { name: 'db', ready: false, restartCount: 0, image: '', imageID: '' }
    const podTerminatedWith = (exitCode: number) => ({
      ...storedPod,
      status: { ...storedPod.status, containerStatuses: [{ ...container, state: { terminated: { exitCode } } }] },
    })
    const runningStatus = { containerStatuses: [{ ...container, state: { running: {} } }] }
    expect(tryStatus(podKind, podTerminatedWith(1), runningStatus).errors).toEqual([])
    expect(tryStatus(podKind, podTerminatedWith(0), runningStatus).errors).toEqual([
      'status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state',
    ])
  })
})

describe("a pod's deletion", () => {
  const assignedPod = createPod({ spec: { nodeName: 'node-1', terminationGracePeriodSeconds: 45 } })
  it.each([
    ['terminationGracePeriodSeconds by default', assignedPod, undefined, 45],
    ['the requested seconds', assignedPod, 5, 5],
    ['zero if requested', assignedPod, 0, 0],
    ['one second for a negative request', assignedPod, -3, 1],
    ['zero without a node', createPod(), undefined, 0],
    ['zero in a final phase', { ...assignedPod, status: { phase: 'Succeeded' as const } }, 30, 0],
  ])('has a grace period of %s', (_case, pod, requestedSeconds, seconds) => {
    expect(podKind.gracePeriodSeconds?.(pod, requestedSeconds)).toBe(seconds)
  })
})

describe('the field selectors of a pod', () => {
  it('select by fields of the spec and the status', () => {
    const pod = createPod({ spec: { nodeName: 'node-1', hostNetwork: true } })
    const values = Object.entries(podKind.selectableFields ?? {}).map(([field, select]) => [field, select(pod)])
    expect(Object.fromEntries(values)).toEqual({
      'spec.nodeName': 'node-1',
      'spec.host': 'node-1',
      'spec.restartPolicy': 'Always',
      'spec.schedulerName': 'default-scheduler',
      'spec.serviceAccountName': undefined,
      'spec.hostNetwork': 'true',
      'status.phase': 'Pending',
      'status.podIP': undefined,
      'status.podIPs': '',
      'status.nominatedNodeName': undefined,
    })
  })
})
