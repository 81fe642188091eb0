// Tests causes on snapshots, mainly those that are slow or difficult to produce in a running system. test/why.test.ts tests
// common causes on `stowage up`.
import { describe, expect, it } from 'vitest'
import type { Operation } from '../api/kinds/operation/operation-schema.ts'
import { diagnose, type Target } from './diagnose.ts'
import type { Diagnosis } from './diagnosis.ts'
import { explainClaims } from './explain-claims.ts'
import { SNAPSHOT_KINDS, type Snapshot, type SnapshotList } from './snapshot.ts'

const NOW_MS = Date.parse('2026-01-01T00:10:00Z')
const DRIVER = 'disk.example'
const at = (secondsAgo: number) => new Date(NOW_MS - secondsAgo * 1_000).toISOString()
const inShop = (name: string, fields: object = {}) => ({ namespace: 'shop', name, uid: `uid-${name}`, ...fields })
const pod: Target = { kind: 'pod', namespace: 'shop', name: 'web' }
const claim: Target = { kind: 'pvc', namespace: 'shop', name: 'data' }

function snapshotOf(lists: Partial<Record<SnapshotList, readonly object[]>>): Snapshot {
  const empty = Object.fromEntries(Object.keys(SNAPSHOT_KINDS).map((list) => [list, []]))
  const facts = { nowMs: NOW_MS, missingRules: [], notServed: new Set() }
  return { ...empty, ...lists, ...facts } as unknown as Snapshot
}

function diagnoseIn(lists: Partial<Record<SnapshotList, readonly object[]>>, target: Target): Diagnosis {
  const result = diagnose(snapshotOf(lists), target)
  if (result.is !== 'diagnosed') throw new Error(result.is)
  return result.diagnosis
}

const node = (name: string) => ({
  metadata: { name, labels: { 'topology.example/node': name } },
  status: { allocatable: { pods: '10' }, conditions: [{ type: 'Ready', status: 'True' }] },
})
const csiNode = (name: string, ...drivers: readonly object[]) => ({ metadata: { name }, spec: { drivers } })
const podWith = (name: string, claimName: string, spec: object = {}) => ({
  metadata: inShop(name),
  spec: { containers: [{ name: 'app' }], volumes: [{ name: 'v', persistentVolumeClaim: { claimName } }], ...spec },
  status: { phase: 'Pending' },
})
const storageClass = (volumeBindingMode: string) => ({
  metadata: { name: 'fast' },
  provisioner: DRIVER,
  volumeBindingMode,
})
const pendingClaim = (name: string, fields: object = {}) => ({
  metadata: inShop(name, { creationTimestamp: at(60), ...fields }),
  spec: { storageClassName: 'fast', accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '5Gi' } } },
  status: { phase: 'Pending' },
})
const boundClaim = (name: string, volumeName: string, request = '1Gi') => ({
  metadata: inShop(name, { annotations: { 'pv.kubernetes.io/bind-completed': 'yes' } }),
  spec: { volumeName, accessModes: ['ReadWriteOnce'], resources: { requests: { storage: request } } },
  status: { phase: 'Bound', capacity: { storage: '1Gi' } },
})
const volume = (name: string, claimName: string) => ({
  metadata: { name },
  spec: {
    capacity: { storage: '1Gi' },
    accessModes: ['ReadWriteOnce'],
    csi: { driver: DRIVER, volumeHandle: name },
    claimRef: { namespace: 'shop', name: claimName, uid: `uid-${claimName}` },
  },
  status: { phase: 'Bound' },
})
const driver = { metadata: { name: DRIVER }, spec: { storageCapacity: true, attachRequired: true } }

const operation = (kind: string, name: string, fields: Partial<Operation>) => ({
  metadata: inShop(`${name}.0123456789`),
  object: { kind, name, ...(kind === 'VolumeAttachment' || kind === 'StorageClass' ? {} : { namespace: 'shop' }) },
  component: 'provisioner',
  process: 'p',
  attempts: 3,
  lastAttempt: at(2),
  ...fields,
})

describe('the diagnosis of a pending claim that names its volume', () => {
  const named = {
    ...pendingClaim('data'),
    spec: { ...pendingClaim('data').spec, volumeName: 'disk-1', storageClassName: '' },
  }

  it('PLUS-1 reports that the volume does not exist, and lists similar names', () => {
    const diagnosis = diagnoseIn({ claims: [named], volumes: [volume('disk-12', 'other')] }, claim)
    expect(diagnosis).toMatchObject({
      reason: 'VolumeNotFound',
      message: 'the volume "disk-1", which the claim names in spec.volumeName, does not exist; similar names: disk-12',
      fixes: [
        { message: 'create the volume disk-1' },
        { command: 'kubectl -n shop delete pvc data', losesData: false },
      ],
    })
  })

  it('PLUS-1 reports that the volume is bound to another claim', () => {
    const diagnosis = diagnoseIn({ claims: [named], volumes: [volume('disk-1', 'other')] }, claim)
    expect(diagnosis).toMatchObject({
      reason: 'FailedBinding',
      message: expect.stringContaining('already bound to a different claim'),
      fixes: [{ command: 'kubectl describe pv disk-1' }, { command: 'kubectl -n shop delete pvc data' }],
    })
  })
})

describe('the diagnosis of a pod whose claim does not exist', () => {
  const rejection = (namespace: string, claimName: string) => ({
    metadata: { namespace, name: `web.${claimName}` },
    type: 'Warning',
    reason: 'FailedCreate',
    involvedObject: { kind: 'StatefulSet', namespace, name: 'web' },
    message: `create Claim ${claimName} failed: persistentvolumeclaims "${claimName}" is forbidden: exceeded quota: storage`,
  })
  const diagnoseWith = (...events: readonly object[]) => diagnoseIn({ pods: [podWith('web', 'data')], events }, pod)

  it('PLUS-1 reports the rejection of the claim by a quota', () => {
    expect(JSON.stringify(diagnoseWith(rejection('shop', 'data')))).toContain('exceeded quota')
  })

  it('PLUS-1 ignores a rejection in another namespace, and one of a claim with a longer name', () => {
    const diagnosis = diagnoseWith(
      rejection('other', 'data'),
      rejection('shop', 'data-1'),
      rejection('shop', 'old-data'),
    )
    expect(JSON.stringify(diagnosis)).not.toContain('exceeded quota')
  })
})

describe('the diagnosis of a pod without a node', () => {
  it('PLUS-1 reports a node on which the driver has reached its volume limit', () => {
    const diagnosis = diagnoseIn(
      {
        pods: [podWith('web', 'data'), podWith('other', 'used', { nodeName: 'a' })],
        nodes: [node('a')],
        csiNodes: [csiNode('a', { name: DRIVER, nodeID: 'a', allocatable: { count: 1 } })],
        drivers: [driver],
        claims: [boundClaim('data', 'pv-data'), boundClaim('used', 'pv-used')],
        volumes: [volume('pv-data', 'data'), volume('pv-used', 'used')],
      },
      pod,
    )
    expect(diagnosis).toMatchObject({
      reason: 'NoNodeFits',
      children: [
        {
          subject: { kind: 'Node', name: 'a' },
          reason: 'TooManyVolumes',
          fixes: [{ message: 'delete a pod with volumes of the driver on the node, or add a node' }],
        },
      ],
    })
  })

  it('PLUS-1 reports a capacity report as stale if its driver is not registered on the node', () => {
    const diagnosis = diagnoseIn(
      {
        pods: [podWith('web', 'data')],
        nodes: [node('a')],
        csiNodes: [csiNode('a')],
        drivers: [driver],
        classes: [storageClass('WaitForFirstConsumer')],
        claims: [pendingClaim('data')],
        capacities: [
          {
            metadata: { namespace: 'csi', name: 'report', creationTimestamp: at(300) },
            storageClassName: 'fast',
            nodeTopology: { matchLabels: { 'topology.example/node': 'a' } },
            capacity: '1Gi',
          },
        ],
      },
      pod,
    )
    expect(diagnosis.children?.[0]).toMatchObject({
      reason: 'StaleCapacityReport',
      numbers: { requested: '5Gi', free: '1Gi', reportAgeSeconds: 300 },
    })
  })

  it('PLUS-1 includes the failed GetCapacity call of the driver', () => {
    const driverAnswer = { driver: DRIVER, method: 'GetCapacity', code: 'InvalidArgument' }
    const diagnosis = diagnoseIn(
      {
        pods: [podWith('web', 'data')],
        nodes: [node('a')],
        csiNodes: [csiNode('a', { name: DRIVER, nodeID: 'a' })],
        drivers: [driver],
        classes: [storageClass('WaitForFirstConsumer')],
        claims: [pendingClaim('data')],
        operations: [
          operation('StorageClass', 'fast', { operation: 'ReportCapacity', phase: 'Retrying', driverAnswer }),
        ],
      },
      pod,
    )
    expect(diagnosis.children).toMatchObject([
      { subject: { kind: 'Component', name: 'provisioner' }, numbers: { method: 'GetCapacity', attempts: 3 } },
      { subject: { kind: 'Node', name: 'a' }, reason: 'NoCapacityReport' },
    ])
    expect(diagnosis.children?.[0]).not.toHaveProperty('fixes')
  })
})

describe('an operation that a component reports', () => {
  const lists = { classes: [storageClass('Immediate')], claims: [pendingClaim('data')] }
  const provision = (fields: Partial<Operation>) =>
    diagnoseIn(
      { ...lists, operations: [operation('PersistentVolumeClaim', 'data', { operation: 'Provision', ...fields })] },
      claim,
    )

  it('PLUS-1 changes the reason of the claim from ProvisionerSilent to Provisioning', () => {
    expect(diagnoseIn(lists, claim)).toMatchObject({ reason: 'ProvisionerSilent' })
    expect(provision({ phase: 'Running' })).toMatchObject({
      ...{ state: 'waiting', reason: 'Provisioning' },
      children: [{ state: 'waiting', message: 'Provision: attempt 3 started 2 s ago' }],
    })
  })

  it('PLUS-1 is still diagnosed as failed while the next attempt is running', () => {
    const driverAnswer = { driver: DRIVER, method: 'CreateVolume', code: 'DeadlineExceeded' }
    const message = 'the driver did not respond'
    expect(provision({ phase: 'Running', driverAnswer, message })).toMatchObject({
      state: 'failed',
      reason: 'ProvisioningFailed',
      children: [{ numbers: { code: 'DeadlineExceeded', isFinal: 'false' } }],
    })
  })

  it('PLUS-1 names the object that it waits for', () => {
    const waitsFor = { kind: 'Secret', namespace: 'shop', name: 'key' }
    const message = 'the secret is missing'
    expect(provision({ phase: 'Waiting', waitsFor, message })).toMatchObject({
      children: [
        {
          message:
            'Provision: attempt 3 ended 2 s ago: the secret is missing; a change of the Secret key starts the next attempt',
        },
      ],
    })
  })

  it('PLUS-1 adds the next attempt to the failure that a condition of the claim reports', () => {
    const growing = boundClaim('data', 'pv', '2Gi')
    const conditions = [{ type: 'ControllerResizeError', status: 'True', message: 'the pool is full' }]
    const allocatedResourceStatuses = { storage: 'ControllerResizeInfeasible' }
    const expand = {
      operation: 'ExpandController',
      phase: 'Waiting',
      nextAttempt: at(-30),
      component: 'resizer',
    } as const
    const diagnosis = diagnoseIn(
      {
        claims: [{ ...growing, status: { ...growing.status, conditions, allocatedResourceStatuses } }],
        volumes: [volume('pv', 'data')],
        operations: [operation('PersistentVolumeClaim', 'data', expand)],
      },
      claim,
    )
    expect(diagnosis).toMatchObject({
      ...{ state: 'failed', reason: 'ControllerResizeInfeasible' },
      message: 'the claim is bound to pv, and the expansion from 1Gi to 2Gi is not possible',
      children: [
        {
          message: 'the pool is full; the next attempt starts in 30 s',
          numbers: { component: 'resizer', attempts: 3, nextAttemptSeconds: 30 },
          fixes: [{ command: 'stowage retry pvc/data -n shop' }],
        },
        { reason: 'NotUsed' },
      ],
    })
  })

  it('PLUS-1 explains a volume that the attacher cannot attach', () => {
    const driverAnswer = { driver: DRIVER, method: 'ControllerPublishVolume', code: 'Internal' }
    const attaching = { component: 'attacher', operation: 'Attach', phase: 'Retrying', driverAnswer } as const
    const source = { persistentVolumeName: 'pv' }
    const diagnosis = diagnoseIn(
      {
        pods: [podWith('web', 'data', { nodeName: 'a' })],
        nodes: [node('a')],
        drivers: [driver],
        claims: [boundClaim('data', 'pv')],
        volumes: [volume('pv', 'data')],
        attachments: [{ metadata: { name: 'csi-1' }, spec: { attacher: DRIVER, nodeName: 'a', source } }],
        operations: [operation('VolumeAttachment', 'csi-1', { ...attaching, nextAttempt: at(-5) })],
      },
      pod,
    )
    expect(diagnosis).toMatchObject({
      ...{ state: 'failed', reason: 'AttachFailed', message: 'the pod is on a and is not ready' },
      children: [
        {
          children: [
            { numbers: { method: 'ControllerPublishVolume' }, fixes: [{ command: 'stowage retry va/csi-1' }] },
          ],
        },
      ],
    })
  })
})

describe('the diagnosis of a pending claim on a stock cluster', () => {
  const csiClass = (name: string, provisioner: string) => ({ metadata: { name }, provisioner })

  it('PLUS-1 suggests a default class with a driver that is registered on a node', () => {
    const { storageClassName: _, ...spec } = pendingClaim('data').spec
    const lists = {
      claims: [{ ...pendingClaim('data'), spec }],
      classes: [csiClass('ebs', 'ebs.csi.aws.com'), csiClass('hostpath', 'hostpath.csi.k8s.io')],
    }
    const commandIn = (csiNodes: readonly object[]) => diagnoseIn({ ...lists, csiNodes }, claim).fixes?.[0]?.command
    expect(commandIn([csiNode('a', { name: 'hostpath.csi.k8s.io', nodeID: 'a' })])).toContain('storageclass hostpath ')
    expect(commandIn([])).toContain('storageclass ebs ')
  })

  it('PLUS-1 suggests recreating the claim if the driver rejects its size', () => {
    const event = {
      metadata: inShop('data.1'),
      involvedObject: { kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'data', uid: 'uid-data' },
      type: 'Warning',
      reason: 'ProvisioningFailed',
      message:
        'failed to provision volume with StorageClass "fast": rpc error: code = OutOfRange desc = Requested capacity 21990232555520 exceeds maximum allowed 1099511627776',
      lastTimestamp: at(5),
      count: 7,
    }
    const lists = { claims: [pendingClaim('data')], classes: [storageClass('Immediate')], events: [event] }
    expect(diagnoseIn(lists, claim)).toMatchObject({
      reason: 'ProvisioningFailed',
      fixes: [{ command: 'kubectl -n shop delete pvc data' }],
      children: [{ reason: 'LastAnswer', numbers: { code: 'OutOfRange', attempts: 7 } }],
    })
  })
})

describe('the diagnosis of a claim whose volume existed on a lost node only', () => {
  const lostNode = {
    metadata: { name: 'a', labels: { 'topology.example/node': 'a' } },
    spec: { taints: [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }] },
    status: {
      conditions: [
        { type: 'Ready', status: 'Unknown' },
        { type: 'Lost', status: 'True', message: 'the machine is off', lastTransitionTime: at(60) },
      ],
    },
  }
  const localVolume = () => {
    const { metadata, spec, status } = volume('pv', 'data')
    const matchExpressions = [{ key: 'topology.example/node', operator: 'In', values: ['a'] }]
    const nodeAffinity = { required: { nodeSelectorTerms: [{ matchExpressions }] } }
    return { metadata, spec: { ...spec, storageClassName: 'fast', nodeAffinity }, status }
  }
  const lists = { claims: [boundClaim('data', 'pv')], volumes: [localVolume()] }

  it('PLUS-1 PLUS-11 names the node and the policy of the class, and nothing if the node is not lost', () => {
    const classes = [
      {
        ...storageClass('Immediate'),
        metadata: { name: 'fast', annotations: { 'stowage.dev/lost-volume-policy': 'mark-lost' } },
      },
    ]
    const lost = diagnoseIn({ ...lists, classes, nodes: [lostNode, node('b')] }, claim)
    expect(lost).toMatchObject({
      state: 'failed',
      reason: 'VolumeLost',
      message:
        'the claim is bound to pv, which exists on the node a only, and the node is lost; the policy of the class fast for lost volumes is mark-lost',
    })
    expect(lost.children?.[0]).toMatchObject({ subject: { kind: 'Node', name: 'a' }, reason: 'NodeLost' })
    expect(diagnoseIn({ ...lists, nodes: [lostNode] }, claim).message).toContain('sets no policy for lost volumes')
    expect(diagnoseIn({ ...lists, classes, nodes: [node('a'), node('b')] }, claim)).toMatchObject({ reason: 'Bound' })
  })

  it('PLUS-1 PLUS-11 lists the claim among those that are not ready, although its status shows no problem', async () => {
    const explain = async (...nodes: readonly object[]) =>
      (await explainClaims(snapshotOf({ ...lists, nodes }), { linesMax: 10, pause: async () => {} })).lines
    expect(await explain(lostNode)).toMatchObject([{ name: 'data', state: 'failed' }])
    expect(await explain(node('a'))).toEqual([])
  })
})

describe('the diagnosis of a volume that is being deleted', () => {
  it.each(['external-provisioner.volume.kubernetes.io/finalizer', 'kubernetes.io/pv-controller'])(
    'PLUS-1 names the finalizer %s that the provisioner removes',
    (finalizer) => {
      const { metadata, spec } = volume('pv', 'data')
      const deleted = {
        metadata: { ...metadata, deletionTimestamp: at(60), finalizers: [finalizer] },
        spec,
        status: { phase: 'Released' },
      }
      const diagnosis = diagnoseIn({ volumes: [deleted] }, { kind: 'pv', name: 'pv' } as Target)
      expect(diagnosis.children).toMatchObject([{ subject: { name: finalizer }, reason: 'StorageExists' }])
    },
  )
})

describe('the diagnosis of a node whose labels do not match its drivers', () => {
  const target: Target = { kind: 'node', name: 'a' } as Target
  const aDriver = (...topologyKeys: string[]) => ({ name: DRIVER, nodeID: 'a', topologyKeys })
  const withCondition = (type: string, reason: string, message: string) => {
    const { metadata, status } = node('a')
    const condition = { type, status: 'True', reason, message }
    return { metadata, status: { ...status, conditions: [...status.conditions, condition] } }
  }

  it('PLUS-1 names the missing label and the command that sets it', () => {
    const diagnosis = diagnoseIn({ nodes: [node('a')], csiNodes: [csiNode('a', aDriver('zone'))] }, target)
    expect(diagnosis).toMatchObject({ state: 'failed', reason: 'TopologyLabelsMissing' })
    expect(diagnosis.children?.[0]?.fixes).toContainEqual(
      expect.objectContaining({ command: 'kubectl label node a zone=VALUE' }),
    )
    const matching = { nodes: [node('a')], csiNodes: [csiNode('a', aDriver('topology.example/node'))] }
    expect(diagnoseIn(matching, target)).toMatchObject({ state: 'ready', reason: 'Ready' })
  })

  it('PLUS-1 names the label for a pod whose claim is not provisioned for the node', () => {
    const lists = {
      nodes: [node('a')],
      csiNodes: [csiNode('a', aDriver('zone'))],
      pods: [podWith('web', 'data')],
      claims: [pendingClaim('data')],
      classes: [storageClass('WaitForFirstConsumer')],
    }
    expect(JSON.stringify(diagnoseIn(lists, pod))).toContain('the node lacks the label zone')
  })

  it('PLUS-1 shows the conditions that the labels do not explain', () => {
    const csiNodes = [csiNode('a', aDriver())]
    const conflict = withCondition('TopologyConflict', 'LabelConflict', 'zone=b')
    expect(diagnoseIn({ nodes: [conflict], csiNodes }, target)).toMatchObject({
      state: 'failed',
      reason: 'LabelConflict',
    })
    const changed = withCondition('TopologyMismatch', 'KeysChanged', 'keep zone')
    const diagnosis = diagnoseIn({ nodes: [changed], csiNodes }, target)
    expect(diagnosis).toMatchObject({ state: 'ready' })
    expect(diagnosis.children).toContainEqual(expect.objectContaining({ reason: 'KeysChanged', message: 'keep zone' }))
  })
})

describe('containers', () => {
  it.each([
    ['CrashLoopBackOff', 'kubectl -n shop logs web -c app --previous'],
    ['ImagePullBackOff', 'kubectl -n shop describe pod web'],
  ])('suggests a command that can explain the reason %s', (reason, command) => {
    const web = {
      metadata: inShop('web'),
      spec: { nodeName: 'a', containers: [{ name: 'app' }] },
      status: { phase: 'Pending', containerStatuses: [{ name: 'app', state: { waiting: { reason } } }] },
    }
    const { children = [] } = diagnoseIn({ nodes: [node('a')], pods: [web] }, pod)
    expect(children).toMatchObject([{ subject: { kind: 'Container', name: 'app' }, reason, fixes: [{ command }] }])
  })
})
