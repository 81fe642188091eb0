import { describe, expect, it } from 'vitest'
import { microTimestamp, timestamp } from '../../../../base/timestamps.ts'
import { managedBy } from '../../../../controllers/capacity/index.ts'
import type { Check, FindingStatus } from '../check.ts'
import { aContext, aCsiNode, type ContextOptions, createDriverFacts, createForbiddenError } from '../doctor.fixture.ts'
import { runChecks } from '../report.ts'
import { servedApis } from './apis.ts'
import { capacityObjects } from './capacity-objects.ts'
import { clocks } from './clocks.ts'
import { csiNodes } from './csi-nodes.ts'
import { describeUsage, disk } from './disk.ts'
import { driverCapabilities } from './driver-capabilities.ts'
import { finalizers } from './finalizers.ts'
import { CHECKS } from './index.ts'
import { leases } from './leases.ts'
import { lostVolumePolicy } from './lost-volume-policy.ts'
import { placement } from './placement.ts'
import { rights } from './rights.ts'
import { topology } from './topology.ts'

const DRIVER = 'disks.example.com'
const NOW_MS = aContext().clock.nowMs()
const createObject = (name: string, rest: object = {}) => ({ metadata: { name }, ...rest })

/** Runs a check and returns the status, the object and the message of each finding in one line. */
async function run(check: Check, options: ContextOptions = {}): Promise<string[]> {
  const [report] = await runChecks([check], aContext(options))
  return report!.findings.map(({ status, object, message }) => `${status} ${object ? `${object}: ` : ''}${message}`)
}

const createSocketOptions = (facts = createDriverFacts()) => ({
  driver: facts.name,
  socket: { address: '/csi.sock', facts },
})

describe('the checks', () => {
  it('PLUS-9 report unknown instead of an error for objects that the user may not read', async () => {
    const plurals = ['nodes', 'csinodes', 'csidrivers', 'storageclasses', 'csistoragecapacities', 'leases']
    const otherPlurals = ['persistentvolumes', 'persistentvolumeclaims', 'volumeattachments', 'volumeattributesclasses']
    const objects = Object.fromEntries(
      [...plurals, ...otherPlurals].map((plural) => [plural, createForbiddenError(plural)]),
    )
    const reports = await runChecks(CHECKS, aContext({ objects, ...createSocketOptions() }))
    const statuses = Object.fromEntries(
      reports.map(({ id, findings }) => [id, [...new Set(findings.map(({ status }) => status))]] as const),
    )
    expect(statuses).toEqual({
      apis: ['ok'],
      rights: ['unknown'],
      'driver-capabilities': ['unknown'],
      'csi-nodes': ['unknown'],
      topology: ['unknown'],
      'capacity-objects': ['unknown'],
      placement: ['unknown'],
      'lost-volume-policy': ['unknown'],
      finalizers: ['unknown'],
      leases: ['unknown'],
      clocks: ['unknown'],
      certificates: [],
      disk: [],
    } satisfies Record<string, FindingStatus[]>)
  })

  it('PLUS-9 have different ids and titles', () => {
    expect(new Set(CHECKS.map(({ id }) => id)).size).toBe(CHECKS.length)
    expect(new Set(CHECKS.map(({ title }) => title)).size).toBe(CHECKS.length)
  })
})

describe('the check of the API server', () => {
  it('PLUS-9 reports the version if everything is served', async () => {
    expect(await run(servedApis)).toEqual([
      'ok Kubernetes v1.36.0 at http://cluster.example serves every API that Stowage uses.',
    ])
  })

  it('PLUS-9 reports a missing kind as an error, and a missing optional one as a warning', async () => {
    expect(await run(servedApis, { unservedPlurals: ['csinodes', 'volumeattributesclasses'] })).toEqual([
      'error The server does not serve csinodes.storage.k8s.io, without which volumes cannot be managed.',
      'warning The server does not serve volumeattributesclasses.storage.k8s.io: the attributes of volumes cannot be modified.',
    ])
  })

  it('PLUS-9 ignores an optional kind that the driver cannot use', async () => {
    const socket = createSocketOptions(createDriverFacts({ controller: new Set(['CREATE_DELETE_VOLUME']) }))
    const unservedPlurals = ['volumeattributesclasses', 'csistoragecapacities']
    expect(await run(servedApis, { unservedPlurals, ...socket })).toEqual([expect.stringMatching(/^ok /)])
  })
})

describe('the check of rights', () => {
  /** Answers reviews: a review is denied if its verb and resource are listed. */
  const createDenyingClient = (...deniedRights: string[]): ContextOptions['client'] => ({
    create: (async (kind: { kind: string }, { spec }: { spec?: Record<string, any> }) => {
      if (kind.kind === 'SelfSubjectReview') return { status: { userInfo: { username: 'csi-driver' } } }
      const { verb, group, resource, subresource } = spec!.resourceAttributes
      const id = `${verb} ${resource}${group ? `.${group}` : ''}${subresource ? `/${subresource}` : ''}`
      return { status: { allowed: !deniedRights.includes(id) } }
    }) as never,
  })
  const subject = { component: 'resizer', namespace: 'csi' } as const

  it('PLUS-9 names the user and the number of rights if none is missing', async () => {
    expect(await run(rights, { client: createDenyingClient(), subject })).toEqual([
      expect.stringMatching(/^ok csi-driver has all \d+ rights of the component resizer\.$/),
    ])
  })

  it('PLUS-9 reports a missing right as an error, and one of a feature as a warning that names the feature', async () => {
    const client = createDenyingClient(
      'list volumeattributesclasses.storage.k8s.io',
      'watch volumeattributesclasses.storage.k8s.io',
      'list pods',
      'create leases.coordination.k8s.io',
    )
    expect(await run(rights, { client, subject })).toEqual([
      'error csi-driver cannot list pods, which the component resizer always needs.',
      'warning csi-driver cannot list, watch volumeattributesclasses.storage.k8s.io: the feature attributes is out of service.',
      'warning csi-driver cannot create leases.coordination.k8s.io in the namespace csi: the feature leader-election is out of service.',
    ])
  })

  it('PLUS-9 accepts update instead of patch, and omits resources that are not served', async () => {
    const client = createDenyingClient('patch persistentvolumes', 'list volumeattributesclasses.storage.k8s.io')
    expect(await run(rights, { client, subject, unservedPlurals: ['volumeattributesclasses'] })).toEqual([
      expect.stringMatching(/^ok /),
    ])
    const clientWithoutUpdate = createDenyingClient('patch persistentvolumes', 'update persistentvolumes')
    expect(await run(rights, { client: clientWithoutUpdate, subject })).toEqual([
      'error csi-driver cannot patch persistentvolumes, which the component resizer always needs.',
    ])
  })

  it('PLUS-9 checks a service account in its own namespace', async () => {
    const create = async (kind: { kind: string }, { spec }: { spec?: Record<string, any> }) =>
      kind.kind === 'SelfSubjectReview'
        ? { status: { userInfo: { username: 'system:serviceaccount:storage:driver' } } }
        : { status: { allowed: spec!.resourceAttributes.namespace !== 'storage' } }
    const options = { client: { create: create as never }, subject: { component: 'resizer' } as const }
    expect(await run(rights, options)).toEqual([
      'warning system:serviceaccount:storage:driver cannot get, create, update, patch leases.coordination.k8s.io in the ' +
        'namespace storage: the feature leader-election is out of service.',
    ])
  })

  it('PLUS-9 omits the rights of transactions on a server without them', async () => {
    const client = createDenyingClient('patch persistentvolumes/status', 'update persistentvolumes/status')
    const provisioner = { component: 'provisioner', namespace: 'csi' } as const
    expect(await run(rights, { client, subject: provisioner })).toEqual([expect.stringMatching(/^ok /)])
    const clientWithTransactions = { ...client, commitsAtomically: async () => true }
    expect(await run(rights, { client: clientWithTransactions, subject: provisioner })).toEqual([
      'warning csi-driver cannot patch persistentvolumes/status: the feature transactions is out of service.',
    ])
  })

  it('PLUS-9 checks another user with its groups, and prints the command that grants its rights', async () => {
    const reviewedSpecs: Record<string, unknown>[] = []
    const client = {
      create: (async (_: unknown, { spec }: { spec: Record<string, unknown> }) => {
        reviewedSpecs.push(spec)
        return { status: { allowed: false } }
      }) as never,
    }
    const user = 'system:serviceaccount:csi:driver'
    const [report] = await runChecks(
      [rights],
      aContext({ client, subject: { component: 'resizer', namespace: 'csi', features: [], user } }),
    )
    expect(reviewedSpecs[0]).toMatchObject({
      user,
      groups: ['system:serviceaccounts', 'system:serviceaccounts:csi', 'system:authenticated'],
    })
    expect(report!.findings[0]!.remedy).toBe(
      "stowage rbac print --component resizer --features '' --namespace csi --service-account driver | kubectl apply -f -",
    )
  })
})

describe('the check of driver capabilities', () => {
  const csidrivers = [createObject(DRIVER, { spec: { attachRequired: true, storageCapacity: true } })]
  const storageclasses = [
    createObject('fast', { provisioner: DRIVER, allowVolumeExpansion: true }),
    createObject('foreign', { provisioner: 'other.example', allowVolumeExpansion: true }),
  ]
  const volumeattributesclasses = [createObject('gold', { driverName: DRIVER, parameters: {} })]

  it('PLUS-9 reports the capabilities if they suffice', async () => {
    const objects = { csidrivers, storageclasses, volumeattributesclasses }
    expect(await run(driverCapabilities, { objects, ...createSocketOptions() })).toEqual([
      expect.stringMatching(
        /^ok disks\.example\.com 1\.2 has every capability that its objects need\. Controller capabilities: CREATE_DELETE_VOLUME, /,
      ),
    ])
  })

  it('PLUS-9 names each object that uses a capability which the driver lacks', async () => {
    const facts = createDriverFacts({
      controller: new Set(['CREATE_DELETE_VOLUME']),
      plugin: new Set(['CONTROLLER_SERVICE']),
    })
    const restrictedClass = createObject('zonal', { provisioner: DRIVER, allowedTopologies: [{}] })
    const objects = { csidrivers, storageclasses: [...storageclasses, restrictedClass], volumeattributesclasses }
    expect(await run(driverCapabilities, { objects, ...createSocketOptions(facts) })).toEqual([
      `error StorageClass fast: It allows the expansion of volumes, but the driver ${DRIVER} does not report EXPAND_VOLUME.`,
      `warning StorageClass zonal: It restricts the topology of volumes, but the driver ${DRIVER} does not report VOLUME_ACCESSIBILITY_CONSTRAINTS.`,
      `error VolumeAttributesClass gold: It modifies volumes, but the driver ${DRIVER} does not report MODIFY_VOLUME.`,
      `error CSIDriver ${DRIVER}: It makes the scheduler require storage capacity, but the driver ${DRIVER} does not report GET_CAPACITY.`,
      `warning CSIDriver ${DRIVER}: It makes every volume wait for a VolumeAttachment, but the driver ${DRIVER} does not report PUBLISH_UNPUBLISH_VOLUME.`,
    ])
  })

  it('PLUS-9 reports volumes that are not published to nodes, a missing CSIDriver, and another driver', async () => {
    const detachedDrivers = [createObject(DRIVER, { spec: { attachRequired: false } })]
    expect(
      await run(driverCapabilities, { objects: { csidrivers: detachedDrivers }, ...createSocketOptions() }),
    ).toEqual([
      expect.stringMatching(/^error CSIDriver .* attachRequired: false, .* volumes are not published to nodes\.$/),
    ])
    expect(await run(driverCapabilities, { ...createSocketOptions(), driver: 'other.example' })).toEqual([
      `error The driver at the socket is ${DRIVER}, not other.example.`,
      expect.stringMatching(/^warning CSIDriver disks.example.com: It does not exist/),
    ])
  })

  it('PLUS-9 reports a driver that cannot be read as an error, and no socket as unknown', async () => {
    const socket = { address: '/csi.sock', facts: { problem: 'connection refused' } }
    expect(await run(driverCapabilities, { socket })).toEqual([
      'error The capabilities of the driver at /csi.sock cannot be read: connection refused.',
    ])
    expect(await run(driverCapabilities)).toEqual([expect.stringMatching(/^unknown Not checked/)])
  })
})

describe('the check of drivers on nodes', () => {
  const nodes = [createObject('n1'), createObject('n2')]
  const csidrivers = [createObject(DRIVER, { spec: {} }), createObject('absent.example', { spec: {} })]
  const objects = { nodes, csidrivers, csinodes: [aCsiNode('n1', DRIVER), aCsiNode('removed', DRIVER)] }

  it('PLUS-9 reports drivers that are registered on no node, and CSINodes without a node', async () => {
    expect(await run(csiNodes, { objects })).toEqual([
      `ok ${DRIVER} is registered on 1 node.`,
      'warning CSIDriver absent.example: It is not registered on 2 of 2 nodes: n1, n2. Its volumes cannot be used there.',
      'warning CSINode removed: There is no node with this name.',
    ])
  })

  it('PLUS-9 reports every node on which the selected driver is missing', async () => {
    expect((await run(csiNodes, { objects, driver: DRIVER }))[0]).toBe(
      `warning CSIDriver ${DRIVER}: It is not registered on 1 of 2 nodes: n2. Its volumes cannot be used there.`,
    )
  })
})

describe('the check of topology', () => {
  const node = (name: string, labels: object) => ({ metadata: { name, labels } })

  it('PLUS-9 reports a node without the label of a topology key, and keys that differ between nodes', async () => {
    const objects = {
      nodes: [node('n1', { zone: 'a' }), node('n2', {})],
      csinodes: [aCsiNode('n1', DRIVER, ['zone']), aCsiNode('n2', DRIVER, ['rack', 'zone'])],
    }
    expect(await run(topology, { objects })).toEqual([
      `error Node n2: It has no label rack, which ${DRIVER} has registered as a topology key: no volume can be provisioned for the node.`,
      `error Node n2: It has no label zone, which ${DRIVER} has registered as a topology key: no volume can be provisioned for the node.`,
      `warning CSIDriver ${DRIVER}: Its nodes have different topology keys: n1 has zone; n2 has rack, zone.`,
    ])
    expect(await run(topology, { objects, driver: 'other.example' })).toEqual([])
  })

  it('PLUS-9 reports a rejected driver and changed keys from the conditions of nodes', async () => {
    const condition = (type: string, reason: string, status = 'True') => ({ type, status, reason, message: 'why' })
    const withConditions = (name: string, ...conditions: object[]) => ({
      ...node(name, { zone: 'a' }),
      status: { conditions },
    })
    const objects = {
      nodes: [
        withConditions('n1', condition('TopologyConflict', 'LabelConflict')),
        withConditions('n2', condition('TopologyMismatch', 'KeysChanged')),
        withConditions('n3', condition('TopologyMismatch', 'KeysChanged', 'False')),
      ],
      csinodes: [aCsiNode('n2', DRIVER, ['zone']), aCsiNode('n3', DRIVER, ['zone'])],
    }
    const findings = [
      'error Node n1: Its agent rejected a driver: why.',
      'warning Node n2: Topology keys have changed: why.',
    ]
    expect(await run(topology, { objects })).toEqual(findings)
    expect(await run(topology, { objects: { ...objects, csinodes: [] } })).toEqual(findings)
  })

  it('PLUS-9 lists the keys if all nodes have their labels', async () => {
    const objects = { nodes: [node('n1', { zone: 'a' })], csinodes: [aCsiNode('n1', DRIVER, ['zone'])] }
    expect(await run(topology, { objects })).toEqual(['ok Every node has the labels of its drivers: zone.'])
  })
})

describe('the check of placement policies', () => {
  const aClass = (name: string, policy?: string) => ({
    metadata: { name, ...(policy === undefined ? {} : { annotations: { 'stowage.dev/placement': policy } }) },
    provisioner: DRIVER,
  })

  it('PLUS-9 reports a policy that the scheduler ignores', async () => {
    const objects = { storageclasses: [aClass('fast', 'packed'), aClass('slow', 'pack')] }
    expect(await run(placement, { objects })).toEqual([
      'warning StorageClass fast: Its placement policy is invalid, so the scheduler ignores it: expected spread, pack, headroom or headroom=PERCENT%, e.g. headroom=30%.',
    ])
    expect(await run(placement, { objects, driver: 'other.example' })).toEqual([])
  })

  it('PLUS-9 lists valid policies, and nothing if no class has one', async () => {
    const objects = { storageclasses: [aClass('fast', 'headroom'), aClass('slow')] }
    expect(await run(placement, { objects })).toEqual(['ok The placement policies are valid: fast has headroom=20%.'])
    expect(await run(placement, { objects: { storageclasses: [aClass('slow')] } })).toEqual([])
  })
})

describe('the check of policies for lost volumes', () => {
  const aClass = (name: string, policy?: string) => ({
    metadata: { name, ...(policy === undefined ? {} : { annotations: { 'stowage.dev/lost-volume-policy': policy } }) },
    provisioner: DRIVER,
  })

  it('PLUS-9 reports a policy that counts as wait, and lists valid ones', async () => {
    const objects = { storageclasses: [aClass('fast', 'delete-after=3d'), aClass('slow', 'mark-lost'), aClass('none')] }
    expect(await run(lostVolumePolicy, { objects })).toEqual([
      'warning StorageClass fast: Its policy for lost volumes is invalid, so it counts as wait: "3d" is not a duration: expected hours, minutes or seconds, e.g. 72h, 90m or 30s.',
    ])
    expect(await run(lostVolumePolicy, { objects: { storageclasses: objects.storageclasses.slice(1) } })).toEqual([
      'ok The policies for lost volumes are valid: slow has mark-lost.',
    ])
    expect(await run(lostVolumePolicy, { objects, driver: 'other.example' })).toEqual([])
  })
})

describe('the check of capacity objects', () => {
  const capacity = (name: string, fields: object, labels: object = {}) => ({
    metadata: { namespace: 'csi', name, labels: { 'csi.storage.k8s.io/drivername': DRIVER, ...labels } },
    storageClassName: 'fast',
    nodeTopology: { matchLabels: { zone: 'a' } },
    ...fields,
  })
  const objects = {
    nodes: [{ metadata: { name: 'n1', labels: { zone: 'a' } } }],
    csinodes: [aCsiNode('n1', DRIVER)],
    storageclasses: [createObject('fast', { provisioner: DRIVER })],
  }

  it('PLUS-9 reports objects of a deleted class, of a segment without nodes, and of a node without the driver, but no templates of node groups', async () => {
    const csistoragecapacities = [
      capacity('in-use', {}),
      capacity('of-node', {}, { 'csi.storage.k8s.io/managed-by': managedBy('n1') }),
      capacity('no-class', { storageClassName: 'slow' }),
      capacity('no-node', { nodeTopology: { matchLabels: { zone: 'b' } } }),
      capacity(
        'template',
        { nodeTopology: { matchLabels: { zone: 'c' } } },
        { 'capacity.stowage.dev/template': 'group' },
      ),
      capacity('removed', {}, { 'csi.storage.k8s.io/managed-by': managedBy('n2') }),
    ]
    expect(await run(capacityObjects, { objects: { ...objects, csistoragecapacities } })).toEqual([
      'warning CSIStorageCapacity csi/no-class: It is orphaned: the StorageClass slow does not exist.',
      'warning CSIStorageCapacity csi/no-node: It is orphaned: no node has the labels zone=b.',
      `warning CSIStorageCapacity csi/removed: It is orphaned: the node n2 does not run the driver ${DRIVER}.`,
    ])
    const otherDriverOptions = { objects: { ...objects, csistoragecapacities }, driver: 'other.example' }
    expect(await run(capacityObjects, otherDriverOptions)).toEqual([])
  })
})

describe('the check of finalizers', () => {
  const createDeletedObject = (name: string, finalizer: string, agoMs: number, spec: object = {}) => ({
    metadata: { name, deletionTimestamp: timestamp(NOW_MS - agoMs), finalizers: [finalizer] },
    spec,
  })
  const attacherFinalizer = 'external-attacher/disks-example-com'

  it('PLUS-9 reports a finalizer of a driver that is not installed', async () => {
    const volumeattachments = [createDeletedObject('csi-1', attacherFinalizer, 1_000, { attacher: DRIVER })]
    expect(await run(finalizers, { objects: { volumeattachments } })).toEqual([
      `error VolumeAttachment csi-1: It is being deleted, but nothing removes the finalizer ${attacherFinalizer}: the driver ${DRIVER} is not installed.`,
    ])
    const csinodes = [aCsiNode('n1', DRIVER)]
    expect(await run(finalizers, { objects: { volumeattachments, csinodes } })).toEqual([
      'ok No deleted object waits for a finalizer.',
    ])
    expect(await run(finalizers, { objects: { volumeattachments }, driver: 'other.example' })).toEqual([
      'ok No deleted object waits for a finalizer. Objects of drivers other than other.example are not checked.',
    ])
  })

  it('PLUS-9 reports deleted objects that have waited for more than five minutes, and what they wait for', async () => {
    const objects = {
      persistentvolumeclaims: [createDeletedObject('orders', 'kubernetes.io/pvc-protection', 720_000)],
      persistentvolumes: [
        createDeletedObject('pv-1', 'example.com/custom', 301_000),
        createDeletedObject('pv-2', 'example.com/custom', 1_000),
      ],
      volumeattachments: createForbiddenError('volumeattachments'),
    }
    expect(await run(finalizers, { objects })).toEqual([
      'warning PersistentVolumeClaim orders: It was deleted 12m0s ago and waits for the finalizer kubernetes.io/pvc-protection (removed when no pod uses the claim).',
      'warning PersistentVolume pv-1: It was deleted 5m1s ago and waits for the finalizer example.com/custom (which neither Kubernetes nor Stowage removes).',
      expect.stringMatching(/^unknown Not checked: volumeattachments is forbidden/),
    ])
  })
})

describe('the check of leases', () => {
  const lease = (id: string, holderIdentity: string, renewedMsAgo = 1_000) => {
    const [namespace, name] = id.split('/')
    const renewTime = microTimestamp(NOW_MS - renewedMsAgo)
    return { metadata: { namespace, name }, spec: { holderIdentity, leaseDurationSeconds: 15, renewTime } }
  }
  const csidrivers = [createObject(DRIVER, { spec: {} })]
  const runWithLeases = (...heldLeases: object[]) => run(leases, { objects: { csidrivers, leases: heldLeases } })

  it('PLUS-9 names the lease and the holder of an upstream sidecar', async () => {
    expect(await runWithLeases(lease('csi/external-resizer-disks-example-com', 'csi-resizer-0'))).toEqual([
      'warning Lease csi/external-resizer-disks-example-com: It is held by csi-resizer-0, which runs external-resizer or a ' +
        'command in its place. `stowage sidecar` does not lead until the lease is released.',
    ])
  })

  it.each([
    ['external-provisioner', 'disks-example-com'],
    ['external-attacher', 'external-attacher-leader-disks-example-com'],
    ['external-health-monitor-controller', 'external-health-monitor-leader-disks-example-com'],
  ])('PLUS-9 recognizes the lease of %s', async (program, name) => {
    expect(await runWithLeases(lease(`csi/${name}`, 'old-0'))).toEqual([
      expect.stringContaining(`held by old-0, which runs ${program} or`),
    ])
  })

  it('PLUS-9 reports an upstream sidecar that runs in addition to a leading sidecar, unless the sidecar holds both leases', async () => {
    const sidecar = lease('csi/stowage-sidecar-disks-example-com', 'sidecar-0')
    expect(await runWithLeases(sidecar, lease('csi/disks-example-com', 'csi-provisioner-0'))).toEqual([
      expect.stringMatching(/held by csi-provisioner-0, while sidecar-0 leads as stowage sidecar/),
    ])
    expect(await runWithLeases(sidecar, lease('csi/disks-example-com', 'sidecar-0'))).toEqual([
      'ok sidecar-0 leads with the lease csi/stowage-sidecar-disks-example-com.',
    ])
  })

  it('PLUS-9 reports two leaders in two namespaces, and an expired lease of the sidecar', async () => {
    const name = 'stowage-sidecar-disks-example-com'
    expect(await runWithLeases(lease(`a/${name}`, 'one'), lease(`b/${name}`, 'two'))).toEqual([
      `error Several processes lead as stowage sidecar for one driver: one with the lease a/${name} and two with the lease b/${name}.`,
    ])
    expect(await runWithLeases(lease(`a/${name}`, 'one', 75_000))).toEqual([
      `warning Lease a/${name}: It expired 1m0s ago. Its holder one stopped without releasing it, and no other process leads.`,
    ])
  })

  it('PLUS-9 reports controllers of Stowage that run in addition to kube-controller-manager, and ignores expired foreign leases', async () => {
    const controllers = lease('kube-system/stowage-controllers', 'c1')
    expect(await runWithLeases(controllers, lease('kube-system/kube-controller-manager', 'kcm'))).toEqual([
      expect.stringMatching(/^warning Lease kube-system\/stowage-controllers: It is held by c1 while kcm leads/),
    ])
    expect(await runWithLeases(controllers, lease('kube-system/kube-controller-manager', 'kcm', 60_000))).toEqual([
      'ok No upstream sidecar and no other process holds a lease that stowage sidecar needs.',
    ])
  })
})

describe('the check of clocks', () => {
  const createVersionResponse = (dateMs: number) => ({ dateMs, sentMs: NOW_MS, receivedMs: NOW_MS })

  it('PLUS-9 reports whether the local clock is ahead of or behind the API server', async () => {
    expect(await run(clocks, { server: createVersionResponse(NOW_MS + 60_000) })).toEqual([
      'warning The clock of this machine is 60 s behind that of the API server.',
    ])
    expect(await run(clocks, { server: createVersionResponse(NOW_MS - 61_000) })).toEqual([
      'warning The clock of this machine is 60 s ahead of that of the API server.',
    ])
    expect(await run(clocks, { server: createVersionResponse(NOW_MS - 5_900) })).toEqual([
      expect.stringMatching(/^ok /),
    ])
  })

  it('PLUS-9 reports leases whose renewTime is in the future', async () => {
    const spec = { holderIdentity: 'node-7', renewTime: microTimestamp(NOW_MS + 31_000) }
    expect(await run(clocks, { objects: { leases: [createObject('node-7', { spec })] } })).toEqual([
      'warning Leases are renewed up to 30 s in the future, so the clocks of their holders are ahead: node-7.',
    ])
  })
})

describe('the check of the disk', () => {
  const MIB = 1_024 ** 2
  const usage = { dataDir: '/data', storeBytes: 4 * MIB, availableFiles: 50_000 }
  const statusOfUsage = (fields: object) =>
    describeUsage({ ...usage, availableBytes: 5_000 * MIB, ...fields })[0]!.status

  it('PLUS-9 reports little space as a warning, almost none as an error, and few free files', () => {
    expect(statusOfUsage({})).toBe('ok')
    expect(statusOfUsage({ availableBytes: 900 * MIB })).toBe('warning')
    expect(statusOfUsage({ availableBytes: 99 * MIB })).toBe('error')
    expect(statusOfUsage({ availableFiles: 999 })).toBe('warning')
    expect(describeUsage({ ...usage, availableBytes: 5_000 * MIB })[0]!.message).toBe(
      'The file system of /data has 4.9 GiB available, and the store uses 4.0 MiB.',
    )
  })

  it('PLUS-9 applies to an existing data directory only', async () => {
    expect(await run(disk, { dataDir: import.meta.dirname })).toHaveLength(1)
    expect(await run(disk)).toEqual([])
  })
})
