import { describe, expect, it } from 'vitest'
import { tryCreate } from '../kind.fixture.ts'
import { aClaimVolume, aPod } from './pod.fixture.ts'
import { podKind } from './pod.ts'

const errorsOf = (container: object) => tryCreate(podKind, aPod({ container })).errors

/** Invalid fields of a container with the error, whose path is relative to spec.containers[0]. */
const INVALID_FIELDS: [part: object, message: string][] = [
  [{ name: '' }, '.name: Required value'],
  [{ name: 'My' }, '.name: Invalid value: "My": a lowercase RFC 1123 label'],
  [{ image: '' }, '.image: Required value'],
  [{ image: ' a:1' }, '.image: Invalid value: " a:1": must not have leading or trailing whitespace'],
  [
    { imagePullPolicy: 'Twice' },
    '.imagePullPolicy: Unsupported value: "Twice": supported values: "Always", "IfNotPresent", "Never"',
  ],
  [
    { terminationMessagePolicy: 'Shout' },
    '.terminationMessagePolicy: Unsupported value: "Shout": supported values: "File", "FallbackToLogsOnError"',
  ],

  [{ ports: [{ containerPort: 0 }] }, '.ports[0].containerPort: Required value'],
  [
    { ports: [{ containerPort: 65_536 }] },
    '.ports[0].containerPort: Invalid value: 65536: must be between 1 and 65535, inclusive',
  ],
  [
    { ports: [{ containerPort: 1, protocol: 'ICMP' }] },
    '.ports[0].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"',
  ],
  [
    {
      ports: [
        { containerPort: 1, name: 'a' },
        { containerPort: 2, name: 'a' },
      ],
    },
    '.ports[1].name: Duplicate value: "a"',
  ],
  [
    { ports: [{ containerPort: 1, name: 'much-too-long-name' }] },
    '.ports[0].name: Invalid value: "much-too-long-name": must be no more than 15 characters',
  ],
  [
    {
      ports: [
        { containerPort: 1, hostPort: 9 },
        { containerPort: 2, hostPort: 9 },
      ],
    },
    '.ports[1].hostPort: Duplicate value: "TCP//9"',
  ],

  [{ env: [{ name: '' }] }, '.env[0].name: Required value'],
  [{ env: [{ name: 'A=B' }] }, '.env[0].name: Invalid value: "A=B": a valid environment variable name'],
  [{ env: [{ name: 'A', valueFrom: {} }] }, '.env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`'],
  [
    { env: [{ name: 'A', value: 'x', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }] },
    '.env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty',
  ],
  [
    { env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 's', key: '' } } }] },
    '.env[0].valueFrom.secretKeyRef.key: Required value',
  ],
  [
    { env: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'spec.volumes' } } }] },
    '.env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "spec.volumes"',
  ],
  [
    { env: [{ name: 'A', valueFrom: { resourceFieldRef: { resource: 'limits.disk' } } }] },
    '.env[0].valueFrom.resourceFieldRef.resource: Unsupported value: "limits.disk"',
  ],
  [{ envFrom: [{}] }, '.envFrom: Invalid value: "": must specify one of: `configMapRef` or `secretRef`'],

  [
    { resources: { requests: { cpu: '2' }, limits: { cpu: '1' } } },
    '.resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
  ],
  [
    { resources: { requests: { disks: '1' } } },
    '.resources.requests[disks]: Invalid value: "disks": must be a standard resource for containers',
  ],
  [
    { resources: { requests: { cpu: '-1' } } },
    '.resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0',
  ],
  [
    { resources: { requests: { 'example.com/gpu': '1' } } },
    '.resources.limits: Required value: Limit must be set for non overcommitable resources',
  ],
  [
    { resources: { requests: { 'example.com/gpu': '1' }, limits: { 'example.com/gpu': '2' } } },
    '.resources.requests: Invalid value: "1": must be equal to example.com/gpu limit of 2',
  ],
  [{ resources: { limits: { 'hugepages-2Mi': '2Mi' } } }, '.resources: Forbidden: HugePages require cpu or memory'],

  [{ livenessProbe: {} }, '.livenessProbe: Required value: must specify a handler type'],
  [{ livenessProbe: { exec: { command: [] } } }, '.livenessProbe.exec.command: Required value'],
  [
    { livenessProbe: { exec: { command: ['a'] }, tcpSocket: { port: 1 } } },
    '.livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type',
  ],
  [
    { livenessProbe: { tcpSocket: { port: 'no-such-port-name' } } },
    '.livenessProbe.tcpSocket.port: Invalid value: "no-such-port-name": must be no more than 15 characters',
  ],
  [
    { livenessProbe: { tcpSocket: { port: 1 }, successThreshold: 2 } },
    '.livenessProbe.successThreshold: Invalid value: 2: must be 1',
  ],
  [
    { readinessProbe: { tcpSocket: { port: 1 }, periodSeconds: -1 } },
    '.readinessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0',
  ],
  [
    { readinessProbe: { tcpSocket: { port: 1 }, terminationGracePeriodSeconds: 5 } },
    '.readinessProbe.terminationGracePeriodSeconds: Invalid value: 5: must not be set for readinessProbes',
  ],
  [
    { lifecycle: { preStop: { sleep: { seconds: 31 } } } },
    '.lifecycle.preStop.sleep: Invalid value: 31: must be non-negative and less than terminationGracePeriodSeconds (30)',
  ],

  [{ volumeMounts: [{ name: 'data', mountPath: '' }] }, '.volumeMounts[0].mountPath: Required value'],
  [{ volumeMounts: [{ name: 'logs', mountPath: '/logs' }] }, '.volumeMounts[0].name: Not found: "logs"'],
  [
    {
      volumeMounts: [
        { name: 'data', mountPath: '/a' },
        { name: 'data', mountPath: '/a' },
      ],
    },
    '.volumeMounts[1].mountPath: Invalid value: "/a": must be unique',
  ],
  [
    { volumeMounts: [{ name: 'data', mountPath: '/a', subPath: '/b' }] },
    '.volumeMounts.subPath: Invalid value: "/b": must be a relative path',
  ],
  [
    { volumeMounts: [{ name: 'data', mountPath: '/a', subPath: 'b', subPathExpr: 'c' }] },
    '.volumeMounts[0].subPathExpr: Invalid value: "c": subPathExpr and subPath are mutually exclusive',
  ],
  [
    { volumeMounts: [{ name: 'data', mountPath: '/a', mountPropagation: 'Bidirectional' }] },
    '.volumeMounts.mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers',
  ],
  [
    { volumeMounts: [{ name: 'data', mountPath: '/a', recursiveReadOnly: 'Enabled' }] },
    '.volumeMounts.recursiveReadOnly: Forbidden: may only be specified when readOnly is true',
  ],
  [{ volumeDevices: [{ name: 'data', devicePath: '' }] }, '.volumeDevices[0].devicePath: Required value'],
  [{ volumeDevices: [{ name: 'logs', devicePath: '/dev/a' }] }, '.volumeDevices[0].name: Not found: "logs"'],
  [
    { volumeDevices: [{ name: 'data', devicePath: '/dev/../a' }] },
    '.volumeDevices[0].devicePath: Invalid value: "/dev/../a": can not contain backsteps (\'..\')',
  ],

  [
    { securityContext: { runAsUser: -1 } },
    '.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive',
  ],
  [
    { securityContext: { privileged: true, allowPrivilegeEscalation: false } },
    'cannot set `allowPrivilegeEscalation` to false and `privileged` to true',
  ],
]

describe('validateContainers', () => {
  it.each(INVALID_FIELDS)('rejects %j', (fields, message) => {
    const errors = errorsOf(fields)
    expect(errors).toHaveLength(1)
    expect(errors[0]).toContain('spec.containers[0]')
    expect(errors[0]).toContain(message)
  })

  it('accepts a container with valid fields', () => {
    expect(
      errorsOf({
        ports: [{ containerPort: 5432, name: 'sql', hostPort: 5432 }],
        env: [
          { name: 'PLAIN', value: 'x' },
          { name: 'NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
          { name: 'APP', valueFrom: { fieldRef: { fieldPath: "metadata.labels['app']" } } },
        ],
        envFrom: [{ prefix: 'DB_', configMapRef: { name: 'settings' } }],
        resources: { requests: { cpu: '1' }, limits: { cpu: '2', 'example.com/gpu': '1' } },
        volumeMounts: [{ name: 'data', mountPath: '/var/lib/data', subPath: 'pg' }],
        readinessProbe: { tcpSocket: { port: 'sql' } },
        livenessProbe: { exec: { command: ['pg_isready'] } },
        lifecycle: { preStop: { sleep: { seconds: 5 } } },
      }),
    ).toEqual([])
  })

  it('rejects a claim that is both mounted and used as a device', () => {
    const container = {
      volumeMounts: [{ name: 'data', mountPath: '/a' }],
      volumeDevices: [{ name: 'data', devicePath: '/a' }],
    }
    expect(errorsOf(container)).toEqual([
      'spec.containers[0].volumeMounts[0].name: Invalid value: "data": must not already exist in volumeDevices',
      'spec.containers[0].volumeMounts[0].mountPath: Invalid value: "/a": must not already exist as a path in volumeDevices',
      'spec.containers[0].volumeDevices[0].name: Invalid value: "data": must not already exist in volumeMounts',
      'spec.containers[0].volumeDevices[0].devicePath: Invalid value: "/a": must not already exist as a path in volumeMounts',
    ])
  })

  it('accepts a claim as a device, but not an emptyDir', () => {
    const container = { volumeDevices: [{ name: 'tmp', devicePath: '/dev/x' }] }
    expect(tryCreate(podKind, aPod({ container, volumes: [{ name: 'tmp' }] })).errors).toEqual([
      'spec.containers[0].volumeDevices[0].name: Invalid value: "tmp": can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode',
    ])
    const containerWithClaim = { volumeDevices: [{ name: 'data', devicePath: '/dev/x' }] }
    expect(tryCreate(podKind, aPod({ container: containerWithClaim, volumes: [aClaimVolume] })).errors).toEqual([])
  })

  it('requires unique names among containers and init containers', () => {
    const spec = { initContainers: [{ name: 'db', image: 'a:1' }] }
    expect(tryCreate(podKind, aPod({ spec })).errors).toEqual(['spec.initContainers[0].name: Duplicate value: "db"'])
  })

  it('accepts probes on an init container only with restartPolicy Always', () => {
    const initContainer = { name: 'side', image: 'a:1', livenessProbe: { tcpSocket: { port: 1 } } }
    expect(tryCreate(podKind, aPod({ spec: { initContainers: [initContainer] } })).errors).toEqual([
      'spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without restartPolicy=Always',
    ])
    const sidecar = { ...initContainer, restartPolicy: 'Always' }
    expect(tryCreate(podKind, aPod({ spec: { initContainers: [sidecar] } })).errors).toEqual([])
  })
})
