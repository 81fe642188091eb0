import { describe, expect, it } from 'vitest'
import { changeNodes } from './change-nodes.ts'
import { groupLike } from './node-group.ts'
import { aClaim, aClass, aPod, aSnapshot, cpu, DRIVER, HOST, runScenario } from './simulation.fixture.ts'

const nodeOf = (result: Awaited<ReturnType<typeof runScenario>>) =>
  Object.fromEntries(result.placed.map(({ name, node }) => [name, node]))

describe('simulate', () => {
  it('PLUS-2 places each pod with its volumes, and reserves the capacity that they use', async () => {
    const snapshot = aSnapshot([
      { name: 'n1', free: '10Gi' },
      { name: 'n2', free: '4Gi' },
    ])
    const claims = [aClaim('a', '8Gi'), aClaim('b', '3Gi')]
    const result = await runScenario({ snapshot, claims, pods: [aPod('pa', ['a']), aPod('pb', ['b'])] })
    expect(result.fits).toBe(true)
    expect(result.placed).toEqual([
      { namespace: 'shop', name: 'pa', node: 'n1', volumes: [{ claim: 'a', class: 'local', size: '8Gi' }] },
      { namespace: 'shop', name: 'pb', node: 'n2', volumes: [{ claim: 'b', class: 'local', size: '3Gi' }] },
    ])
    expect(result.classes).toMatchObject([
      {
        name: 'local',
        free: '3Gi',
        largestFree: '2Gi',
        segments: [
          { topology: `${HOST}=n1`, capacity: '10Gi', free: '2Gi' },
          { topology: `${HOST}=n2`, capacity: '4Gi', free: '1Gi' },
        ],
      },
    ])
    expect(result.nodes).toMatchObject([
      { name: 'n1', pods: 1, left: { cpu: '4', pods: '9' } },
      { name: 'n2', pods: 1, left: { cpu: '4', pods: '9' } },
    ])
  })

  it('PLUS-2 reports the causes of a pod that does not fit, with the amounts after the pods before it', async () => {
    const snapshot = aSnapshot([{ name: 'n1', free: '10Gi' }])
    const claims = [aClaim('a', '8Gi'), aClaim('b', '3Gi')]
    const result = await runScenario({ snapshot, claims, pods: [aPod('pa', ['a']), aPod('pb', ['b'])] })
    expect(result.fits).toBe(false)
    expect(result.rejected).toMatchObject([
      {
        kind: 'Pod',
        name: 'pb',
        diagnosis: {
          reason: 'NoNodeFits',
          children: [{ reason: 'NotEnoughSpace', numbers: { requested: '3Gi', free: '2Gi', reserved: '8Gi' } }],
        },
      },
    ])
  })

  it('PLUS-2 diagnoses one of many pods that are rejected with the same message', async () => {
    const snapshot = aSnapshot([{ name: 'n1', free: '10Gi', cpu: '1' }])
    const pods = Array.from({ length: 30 }, (_, index) => aPod(`p${index}`, [], cpu('2')))
    const { rejected } = await runScenario({ snapshot, pods })
    expect(rejected).toHaveLength(30)
    expect(rejected.filter(({ diagnosis }) => diagnosis)).toHaveLength(1)
  })

  it('PLUS-2 resolves priority classes as the API server does', async () => {
    const classes = [{ metadata: { name: 'high' }, value: 10 }] as never
    const snapshot = { ...aSnapshot([{ name: 'n1', free: '10Gi', cpu: '1' }]), priorityClasses: classes }
    const pods = [
      aPod('low', [], cpu('1')),
      aPod('high', [], { ...cpu('1'), priorityClassName: 'high' }),
      aPod('unknown', [], { ...cpu('1'), priorityClassName: 'none' }),
    ]
    const { placed, rejected } = await runScenario({ snapshot, pods })
    expect(placed.map(({ name }) => name)).toEqual(['high'])
    expect(rejected.map(({ name, message }) => [name, message])).toEqual([
      ['unknown', 'the API server rejects the creation: no PriorityClass with name none was found'],
      ['low', expect.stringContaining('Insufficient cpu')],
    ])
  })

  it('PLUS-2 places pods of a higher priority first', async () => {
    const snapshot = aSnapshot([{ name: 'n1', free: '10Gi', cpu: '1' }])
    const pods = [aPod('low', [], cpu('1')), aPod('high', [], { ...cpu('1'), priority: 10 })]
    expect(nodeOf(await runScenario({ snapshot, pods }))).toEqual({ high: 'n1' })
  })

  it("PLUS-2 keeps pods that share a claim on its new volume's node", async () => {
    const snapshot = aSnapshot([
      { name: 'n1', free: '10Gi' },
      { name: 'n2', free: '10Gi' },
    ])
    const pods = [aPod('p1', ['a']), aPod('p2', ['a']), aPod('p3', ['a'])]
    const nodes = Object.values(nodeOf(await runScenario({ snapshot, claims: [aClaim('a', '1Gi')], pods })))
    expect(new Set(nodes).size).toBe(1)
    expect(nodes).toHaveLength(3)
  })

  it('PLUS-2 binds existing volumes, including volumes of classes with immediate binding', async () => {
    const volume = (name: string, storageClassName: string) => ({
      metadata: { name, uid: name, resourceVersion: '1' },
      spec: {
        capacity: { storage: '5Gi' },
        accessModes: ['ReadWriteOnce'],
        volumeMode: 'Filesystem',
        storageClassName,
        nodeAffinity: {
          required: { nodeSelectorTerms: [{ matchExpressions: [{ key: HOST, operator: 'In', values: ['n2'] }] }] },
        },
      },
      status: { phase: 'Available' },
    })
    const nodes = [
      { name: 'n1', free: '10Gi' },
      { name: 'n2', free: '10Gi' },
    ]
    const snapshot = aSnapshot(nodes, {
      classes: [
        aClass('static', { provisioner: 'kubernetes.io/no-provisioner' }),
        aClass('now', { provisioner: 'kubernetes.io/no-provisioner', volumeBindingMode: 'Immediate' }),
      ],
      volumes: [volume('v1', 'static'), volume('v2', 'now')],
    })
    const claims = [
      aClaim('a', '1Gi', { storageClassName: 'static', volumeMode: 'Filesystem' }),
      aClaim('b', '1Gi', { storageClassName: 'now', volumeMode: 'Filesystem' }),
    ]
    const { placed } = await runScenario({ snapshot, claims, pods: [aPod('pa', ['a']), aPod('pb', ['b'])] })
    expect(placed).toMatchObject([
      { name: 'pa', node: 'n2', volumes: [{ claim: 'a', volume: 'v1' }] },
      { name: 'pb', node: 'n2', volumes: [{ claim: 'b', volume: 'v2' }] },
    ])
  })

  it('PLUS-2 notes that new volumes of classes with immediate binding are assumed to be usable everywhere', async () => {
    const snapshot = aSnapshot([{ name: 'n1', free: '1Gi' }], {
      classes: [aClass('now', { volumeBindingMode: 'Immediate' })],
    })
    const claims = [aClaim('a', '5Gi', { storageClassName: 'now' })]
    const { fits, notes } = await runScenario({ snapshot, claims, pods: [aPod('p', ['a'])] })
    expect(fits).toBe(true)
    expect(notes).toEqual([expect.stringContaining('The class now creates volumes before a node is selected')])
  })

  it('PLUS-2 creates the claims of ephemeral volumes', async () => {
    const snapshot = aSnapshot([{ name: 'n1', free: '10Gi' }])
    const spec = aClaim('', '4Gi').spec
    const pod = aPod('p', [], { volumes: [{ name: 'tmp', ephemeral: { volumeClaimTemplate: { spec } } }] })
    const { placed } = await runScenario({ snapshot, pods: [pod] })
    expect(placed).toMatchObject([{ node: 'n1', volumes: [{ claim: 'p-tmp', size: '4Gi' }] }])
  })

  it('PLUS-2 charges quotas, and names the quota that rejects a claim and the pod that uses it', async () => {
    const quota = {
      metadata: { namespace: 'shop', name: 'team', uid: 'q', resourceVersion: '1' },
      spec: { hard: { 'requests.storage': '10Gi', pods: '5' } },
      status: { used: { 'requests.storage': '4Gi', pods: '1' } },
    }
    const snapshot = aSnapshot([{ name: 'n1', free: '100Gi' }], { quotas: [quota] })
    const claims = [aClaim('a', '4Gi'), aClaim('b', '4Gi')]
    const result = await runScenario({ snapshot, claims, pods: [aPod('pa', ['a']), aPod('pb', ['b'])] })
    expect(nodeOf(result)).toEqual({ pa: 'n1' })
    expect(result.rejected).toMatchObject([
      {
        kind: 'PersistentVolumeClaim',
        name: 'b',
        diagnosis: { children: [{ reason: 'QuotaExceeded', numbers: { 'requests.storage used': '8Gi' } }] },
      },
      { kind: 'Pod', name: 'pb', diagnosis: { children: [{ subject: { name: 'b' }, reason: 'QuotaExceeded' }] } },
    ])
    expect(result.quotas).toEqual([
      { namespace: 'shop', name: 'team', hard: quota.spec.hard, used: { 'requests.storage': '8Gi', pods: '3' } },
    ])
  })

  it('PLUS-2 rejects pods and claims that violate a limit range of their namespace', async () => {
    const range = (namespace: string) => ({
      metadata: { namespace, name: 'limits', uid: namespace, resourceVersion: '1' },
      spec: { limits: [{ type: 'PersistentVolumeClaim', max: { storage: '2Gi' } }] },
    })
    const pods = [aPod('p', ['a'])]
    const claims = [aClaim('a', '3Gi')]
    const nodes = [{ name: 'n1', free: '100Gi' }]
    const limited = await runScenario({ snapshot: aSnapshot(nodes, { limitRanges: [range('shop')] }), claims, pods })
    expect(limited.rejected).toMatchObject([{ diagnosis: { reason: 'LimitRangeViolated' } }, { kind: 'Pod' }])
    const other = await runScenario({ snapshot: aSnapshot(nodes, { limitRanges: [range('other')] }), claims, pods })
    expect(other.fits).toBe(true)
  })

  it('PLUS-2 names a class that does not exist, with the existing ones', async () => {
    const snapshot = aSnapshot([{ name: 'n1', free: '10Gi' }])
    const claims = [aClaim('a', '1Gi', { storageClassName: 'locl' })]
    const { rejected } = await runScenario({ snapshot, claims, pods: [aPod('p', ['a'])] })
    expect(rejected).toMatchObject([
      { diagnosis: { children: [{ reason: 'StorageClassNotFound', message: expect.stringContaining('local') }] } },
    ])
  })

  it('PLUS-2 does not change existing claims or pods', async () => {
    const existing = [aPod('p', [], { nodeName: 'n1' })]
    const snapshot = aSnapshot([{ name: 'n1', free: '10Gi' }], { pods: existing })
    const { fits, placed, notes } = await runScenario({ snapshot, pods: [aPod('p')] })
    expect({ fits, placed }).toEqual({ fits: true, placed: [] })
    expect(notes).toEqual(['The pod shop/p already exists and is not changed.'])
  })
})

describe('simulate with added, drained and removed nodes', () => {
  const nodes = [
    { name: 'n1', free: '6Gi' },
    { name: 'n2', free: '1Gi' },
  ]
  const localVolume = {
    metadata: { name: 'v', uid: 'v', resourceVersion: '1' },
    spec: {
      capacity: { storage: '4Gi' },
      csi: { driver: DRIVER, volumeHandle: 'v' },
      nodeAffinity: {
        required: { nodeSelectorTerms: [{ matchExpressions: [{ key: HOST, operator: 'In', values: ['n1'] }] }] },
      },
    },
    status: { phase: 'Bound' },
  }

  it('PLUS-2 adds empty nodes like an existing one: their free capacity includes the size of the volumes on it', async () => {
    const snapshot = aSnapshot(nodes, { volumes: [localVolume] })
    const group = groupLike('n1', snapshot)!
    const claims = [aClaim('a', '10Gi'), aClaim('b', '10Gi')]
    const pods = [aPod('pa', ['a']), aPod('pb', ['b'])]
    const result = await runScenario({ snapshot, claims, pods, group, nodeCount: 2 })
    expect(Object.values(nodeOf(result)).sort()).toEqual(['n1-new-1', 'n1-new-2'])
    expect(result.nodeGroup).toEqual({ name: 'n1-new', nodes: 2, isSearched: false })
    expect(result.nodes.filter(({ isNew }) => isNew)).toHaveLength(2)
  })

  it('PLUS-2 finds the number of nodes that the pods need, and the pods that fit on no new node', async () => {
    const snapshot = aSnapshot(nodes)
    const group = groupLike('n1', snapshot)!
    const claims = ['a', 'b', 'c', 'd'].map((name) => aClaim(name, '4Gi'))
    const pods = ['a', 'b', 'c', 'd'].map((name) => aPod(`p${name}`, [name]))
    const result = await runScenario({ snapshot, claims, pods, group })
    expect(result).toMatchObject({ fits: true, nodeGroup: { nodes: 3, isSearched: true } })
    const large = await runScenario({ snapshot, claims: [aClaim('a', '7Gi')], pods: [aPod('p', ['a'])], group })
    expect(large).toMatchObject({ fits: false, nodeGroup: { nodes: 0, isSearched: true } })
    const none = await runScenario({ snapshot, claims: [aClaim('a', '5Gi')], pods: [aPod('p', ['a'])], group })
    expect(none).toMatchObject({ fits: true, nodeGroup: { nodes: 0 } })
  })

  it('PLUS-2 places the pods of a drained node on other nodes, except DaemonSet pods, or names the volume that prevents it', async () => {
    const daemon = { ownerReferences: [{ controller: true, kind: 'DaemonSet', name: 'd', uid: 'd', apiVersion: 'v1' }] }
    const bound = {
      metadata: { ...aClaim('a', '4Gi').metadata, annotations: { 'pv.kubernetes.io/bind-completed': 'yes' } },
    }
    const snapshot = aSnapshot(nodes, {
      volumes: [localVolume],
      claims: [
        aClaim('a', '4Gi', { volumeName: 'v' }, { ...bound, status: { phase: 'Bound', capacity: { storage: '4Gi' } } }),
      ],
      pods: [
        aPod('stays', [], { nodeName: 'n1' }, daemon),
        aPod('moves', [], { nodeName: 'n1' }),
        aPod('local', ['a'], { nodeName: 'n1' }),
        aPod('other', [], { nodeName: 'n2' }),
      ],
    })
    const drained = changeNodes(snapshot, { removed: new Set(), drained: new Set(['n1']) })
    expect(drained.uncontrolledPods).toEqual(['shop/moves', 'shop/local'])
    const result = await runScenario({ snapshot: drained.snapshot, unplacedPods: drained.evictedPods })
    expect(nodeOf(result)).toEqual({ moves: 'n2' })
    expect(result.rejected).toMatchObject([
      {
        name: 'local',
        diagnosis: { children: [{ reason: 'NodeUnschedulable' }, { reason: 'VolumeNodeConflict' }] },
      },
    ])
    expect(result.nodes).toMatchObject([
      { name: 'n1', pods: 1 },
      { name: 'n2', pods: 2 },
    ])
  })

  it('PLUS-2 removes a node with its pods and creates the volumes of their ephemeral claims again', async () => {
    const owner = { ownerReferences: [{ controller: true, kind: 'Pod', name: 'p', uid: 'uid-p', apiVersion: 'v1' }] }
    const template = aClaim('', '1Gi').spec
    const claim = aClaim('p-tmp', '1Gi', { volumeName: 'v' }, { status: { phase: 'Bound' } })
    const snapshot = aSnapshot(nodes, {
      volumes: [{ ...localVolume, spec: { ...localVolume.spec, claimRef: { uid: claim.metadata.uid } } }],
      claims: [{ ...claim, metadata: { ...claim.metadata, ...owner } }],
      pods: [
        aPod('p', [], {
          nodeName: 'n1',
          volumes: [{ name: 'tmp', ephemeral: { volumeClaimTemplate: { spec: template } } }],
        }),
      ],
    })
    const removed = changeNodes(snapshot, { removed: new Set(['n1']), drained: new Set() })
    const result = await runScenario({ snapshot: removed.snapshot, unplacedPods: removed.evictedPods })
    expect(result.placed).toEqual([
      { namespace: 'shop', name: 'p', node: 'n2', volumes: [{ claim: 'p-tmp', class: 'local', size: '1Gi' }] },
    ])
    expect(result.nodes.map(({ name }) => name)).toEqual(['n2'])
    expect(result.classes[0]!.segments.map(({ topology }) => topology)).toEqual([`${HOST}=n2`])
  })
})
