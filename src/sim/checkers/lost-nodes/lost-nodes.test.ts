// Tests the checkers of lost nodes: each plants a state or a request that a bug would cause, and expects the violation.
import { describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import { persistentVolumeKind } from '../../../api/kinds/volume/volume.ts'
import type { Client } from '../../../client/index.ts'
import { aClaim, aClass, aNode, aPod, aVolume, createFixture } from '../checkers.fixture.ts'
import { checkMounts } from '../mounts.ts'
import { findOperationProblems } from '../operations.ts'
import { followLostVolumes } from './lost-volumes.ts'
import { checkWriters, followStaleMounts } from './writers.ts'

const OUT_OF_SERVICE = { key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }
const MINUTE_MS = 60_000

describe('checkers of writers', () => {
  function createWriters(accessMode = 'ReadWriteOnce', driver: 'net.sim' | 'basic.sim' = 'net.sim') {
    const fixture = createFixture()
    const isStale = followStaleMounts(fixture.system, fixture.view)
    checkMounts(fixture.context, isStale)
    checkWriters(fixture.context, isStale)
    const driverVolume = fixture.addDriverVolume(driver, 'pv')
    fixture.put(
      ['volume', aVolume('pv', { phase: 'Bound', claim: 'c', driver, spec: { accessModes: [accessMode] } })],
      ['node', aNode('n1')],
    )
    return {
      setRunning: fixture.setRunning,
      /** Returns the violations since the last call. */
      takeViolations: () => fixture.violations.splice(0),
      fence: () =>
        fixture.put([
          'node',
          {
            ...aNode('n1', { taints: [OUT_OF_SERVICE] }),
            status: { conditions: [{ type: 'Ready', status: 'Unknown' }] },
          },
        ]),
      quarantine: () =>
        fixture.put(['node', aNode('n1', { taints: [{ key: 'stowage.dev/quarantine', effect: 'NoSchedule' }] })]),
      endFence: () => fixture.put(['node', aNode('n1')]),
      mount(node: string) {
        driverVolume.attachments[`id-${node}`] = {} as never
        const end = fixture.call(`agent-${node}`, driver, 'NodePublishVolume', 'pv', { nodeId: `id-${node}` })
        driverVolume.onNodes[`id-${node}`] = { staged: {}, published: {} } as never
        fixture.mounts.get(node)!.push({ path: `/${node}`, volume: `${driver}^pv` })
        end()
      },
      detach(node: string) {
        const end = fixture.call('control-1', driver, 'ControllerUnpublishVolume', 'pv', { nodeId: `id-${node}` })
        delete driverVolume.attachments[`id-${node}`]
        end()
      },
      /** Detaches the volume without a reply that a checker could see. */
      detachSilently: (node: string) => void delete driverVolume.attachments[`id-${node}`],
      changeAnything: () => fixture.put(['claim', aClaim('other')]),
    }
  }

  const TWO_WRITERS = 'two writers: net.sim^pv is mounted on n1 and n2, which all run'
  const STILL_MOUNTED = 'wrong mount: agent-n2 mounts net.sim^pv on n2, but it is still mounted on n1'
  const WRONG_DETACH = 'wrong mount: control-1 detaches net.sim^pv from n1, where /n1 is mounted'

  it('two writers: reports a volume that was detached from a node that is cut off and still runs', () => {
    const { mount, detach, takeViolations } = createWriters()
    mount('n1')
    detach('n1')
    expect(takeViolations()).toEqual([WRONG_DETACH])
    mount('n2')
    expect(takeViolations()).toEqual([STILL_MOUNTED, TWO_WRITERS])
  })

  it('two writers: accepts the stale mount of a fenced node that was suspended when its volume was detached', () => {
    const { mount, detach, setRunning, fence, quarantine, takeViolations } = createWriters()
    mount('n1')
    setRunning('n1', false)
    fence()
    detach('n1')
    mount('n2')
    setRunning('n1', true)
    quarantine()
    expect(takeViolations()).toEqual([])
    mount('n1') // attached again, although n2 has the volume
    expect(takeViolations()).toContain(TWO_WRITERS)
  })

  it('two writers: reports a stale mount that is left when the quarantine of its node ends', () => {
    const { mount, detach, setRunning, fence, endFence, takeViolations } = createWriters()
    mount('n1')
    setRunning('n1', false)
    fence()
    detach('n1')
    mount('n2')
    setRunning('n1', true)
    expect(takeViolations()).toEqual([])
    endFence()
    expect(takeViolations()).toEqual([TWO_WRITERS])
  })

  it('two writers: reports a suspended node whose volume was detached without the confirmation of an administrator', () => {
    const { mount, detach, setRunning, fence, changeAnything, takeViolations } = createWriters()
    mount('n1')
    setRunning('n1', false)
    detach('n1')
    expect(takeViolations()).toEqual([WRONG_DETACH])
    fence() // too late
    mount('n2')
    expect(takeViolations()).toEqual([STILL_MOUNTED])
    setRunning('n1', true)
    changeAnything()
    expect(takeViolations()).toEqual([TWO_WRITERS])
  })

  it('two writers: reports a node that is suspended only after its volume was detached', () => {
    const { mount, detachSilently, setRunning, fence, changeAnything, takeViolations } = createWriters()
    mount('n1')
    fence()
    detachSilently('n1')
    setRunning('n1', false)
    mount('n2')
    expect(takeViolations()).toEqual([STILL_MOUNTED])
    setRunning('n1', true)
    changeAnything()
    expect(takeViolations()).toEqual([TWO_WRITERS])
  })

  it('two writers: reports a suspended node that resumes before its volume is detached', () => {
    const { mount, setRunning, changeAnything, takeViolations } = createWriters()
    mount('n1')
    setRunning('n1', false)
    mount('n2')
    expect(takeViolations()).toEqual([STILL_MOUNTED])
    setRunning('n1', true)
    changeAnything()
    expect(takeViolations()).toEqual([TWO_WRITERS])
  })

  it('two writers: accepts a volume for several nodes', () => {
    const { mount, takeViolations } = createWriters('ReadWriteMany')
    mount('n1')
    mount('n2')
    expect(takeViolations()).toEqual([])
  })

  it('two writers: accepts pods on several nodes if the driver has no attachments', () => {
    const { mount, takeViolations } = createWriters('ReadWriteOnce', 'basic.sim')
    mount('n1')
    mount('n2')
    expect(takeViolations()).toEqual([])
  })
})

describe('checker of lost volumes', () => {
  const lostNode = () => ({
    ...aNode('n1', { taints: [OUT_OF_SERVICE] }),
    status: {
      conditions: [
        { type: 'Ready', status: 'Unknown' },
        { type: 'Lost', status: 'True' },
      ],
    },
  })
  const onNode = (name: string) => ({
    storageClassName: 'local',
    nodeAffinity: {
      required: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: 'topology.sim/node', operator: 'In', values: [name] }] }],
      },
    },
  })
  const marked = { conditions: [{ type: 'VolumeLost', status: 'True' }] }

  async function createLoss(policy: string, { reclaimPolicy = 'Delete', lostMs = 0 } = {}) {
    const fixture = createFixture()
    const checker = followLostVolumes(fixture.context)
    fixture.addDriverVolume('local.sim', 'pv')
    const storageClass = aClass('local', 'local.sim')
    const annotations = { 'stowage.dev/lost-volume-policy': policy }
    const volume = {
      phase: 'Bound',
      claim: 'c',
      policy: reclaimPolicy,
      driver: 'local.sim' as const,
      spec: onNode('n1'),
    }
    const bound = { phase: 'Bound', volumeName: 'pv', className: 'local' }
    fixture.put(
      ['class', { ...storageClass, metadata: { ...storageClass.metadata, annotations } }],
      ['volume', aVolume('pv', volume)],
      ['claim', aClaim('c', bound)],
      ['node', lostNode()],
    )
    await fixture.simulation.runFor(lostMs)
    const client = checker.wrapClient('control-1', { delete: async () => undefined } as unknown as Client)
    return {
      fixture,
      checker,
      violations: fixture.violations,
      texts: () => checker.problems().map(({ text }) => text),
      mark: (status: object) => fixture.put(['claim', aClaim('c', { ...bound, status })]),
      deleteClaim: () => client.delete(persistentVolumeClaimKind, { namespace: 'team-a', name: 'c' }),
      deleteVolume: () => client.delete(persistentVolumeKind, { name: 'pv' }),
    }
  }

  it('lost volume: reports every deletion with the policy wait', async () => {
    const { deleteClaim, deleteVolume, violations } = await createLoss('wait', { lostMs: 1_000 * MINUTE_MS })
    await deleteClaim()
    await deleteVolume()
    expect(violations).toHaveLength(2)
    expect(violations[0]).toContain('lost volume: control-1 deletes claim team-a/c of the lost node n1')
  })

  it('lost volume: reports a deletion before the time of delete-after, and one that does not happen', async () => {
    const early = await createLoss('delete-after=5m', { lostMs: 4 * MINUTE_MS })
    await early.deleteClaim()
    expect(early.violations).toHaveLength(1)
    const late = await createLoss('delete-after=5m', { lostMs: 7 * MINUTE_MS })
    late.mark(marked)
    expect(late.texts()).toEqual(['claim team-a/c should have been deleted 300000 ms after the loss of its node'])
    await late.deleteClaim()
    await late.deleteVolume()
    expect(late.violations).toEqual([])
    late.fixture.remove('volume', 'pv')
    expect(late.checker.isDropped('local.sim^pv')).toBe(true)
  })

  it('lost volume: reports the deletion of a retained volume', async () => {
    const { deleteClaim, mark, texts, violations } = await createLoss('delete-after=5m', {
      reclaimPolicy: 'Retain',
      lostMs: 7 * MINUTE_MS,
    })
    mark(marked)
    expect(texts()).toEqual([])
    await deleteClaim()
    expect(violations).toHaveLength(1)
  })

  it('lost volume: reports a condition that is missing, that stays after the return, or that the policy wait has', async () => {
    const { fixture, mark, texts } = await createLoss('mark-lost')
    expect(texts()).toEqual(['claim team-a/c should have the condition VolumeLost'])
    mark(marked)
    expect(texts()).toEqual([])
    fixture.put(['node', aNode('n1')])
    expect(texts()).toEqual(['claim team-a/c has the condition VolumeLost, but should not'])
    const waiting = await createLoss('wait')
    waiting.mark(marked)
    expect(waiting.texts()).toEqual(['claim team-a/c has the condition VolumeLost, but should not'])
  })
})

describe('checker of operations', () => {
  it('counts the operations of an agent until its machine is lost for good', () => {
    const { system, view, put, exemptions } = createFixture()
    const operation = (uid: string) => ({
      metadata: { namespace: 'team-a', name: `${uid}.0` },
      object: { kind: 'Pod', namespace: 'team-a', name: uid, uid },
      ...{ component: 'node', process: 'agent-n1', operation: 'Publish', phase: 'Waiting' },
      ...{ reason: 'WaitingForVolume', message: 'the claim does not exist' },
    })
    const list = () => [operation('uid-waiting'), operation('uid-deleted')]
    Object.assign(system, { operationRegistries: new Map([['agent-n1', { list }]]) })
    put(
      ['node', aNode('n1')],
      ['pod', aPod('waiting', ['c'], { spec: { nodeName: 'n1' }, status: { phase: 'Pending' } })],
    )
    const rules = () => findOperationProblems(system, view, exemptions).map(({ rule }) => rule)

    Object.assign(system.nodes.get('n1')!, { isOn: false, isRunning: false, isReachable: false })
    expect(rules()).toEqual(['stale operation'])
    Object.assign(system.nodes.get('n1')!, { isLostForGood: true })
    expect(rules()).toEqual(['no operation'])
  })

  it('requires an operation for a claim that is being deleted, unless only users hold it', () => {
    const { system, view, put, exemptions } = createFixture()
    Object.assign(system, { operationRegistries: new Map() })
    const putDeletedClaim = (finalizers: string[]) =>
      put([
        'claim',
        aClaim('c', { phase: 'Bound', metadata: { finalizers, deletionTimestamp: '2026-01-01T00:00:00Z' } }),
      ])
    const rules = () => findOperationProblems(system, view, exemptions).map(({ rule }) => rule)

    putDeletedClaim(['kubernetes.io/pvc-protection', 'sim.example/hold'])
    expect(rules()).toEqual(['no operation'])
    putDeletedClaim(['sim.example/hold'])
    expect(rules()).toEqual([])
  })

  it('accepts that a bound claim waits for amounts that its volume does not have', () => {
    const { system, view, put, exemptions } = createFixture()
    const operation = {
      metadata: { namespace: 'team-a', name: 'uid-c.0' },
      object: { kind: 'PersistentVolumeClaim', namespace: 'team-a', name: 'c', uid: 'uid-c' },
      ...{ component: 'resizer', process: 'control-1', operation: 'Modify', phase: 'Waiting' },
      ...{ reason: 'WaitingForChange', message: 'the driver cannot modify volumes' },
    }
    Object.assign(system, { operationRegistries: new Map([['control-1', { list: () => [operation] }]]) })
    const putClaim = (requests: object, capacity: object) =>
      put([
        'claim',
        aClaim('c', {
          phase: 'Bound',
          spec: { resources: { requests: { storage: '1Gi', ...requests } } },
          status: { capacity: { storage: '1Gi', ...capacity } },
        }),
      ])
    const rules = () => findOperationProblems(system, view, exemptions).map(({ rule }) => rule)

    putClaim({ iops: '500' }, {})
    expect(rules()).toEqual([])
    putClaim({ iops: '500' }, { iops: '0.5k' })
    expect(rules()).toEqual(['stale operation'])
    putClaim({}, {})
    expect(rules()).toEqual(['stale operation'])
  })

  it('accepts that a Running pod waits for a volume, only if its driver lost the volume', () => {
    const { system, view, put, exemptions, addDriverVolume } = createFixture()
    const operation = {
      metadata: { namespace: 'team-a', name: 'uid-p.0' },
      object: { kind: 'Pod', namespace: 'team-a', name: 'p', uid: 'uid-p' },
      ...{ component: 'node', process: 'agent-n1', operation: 'Publish', phase: 'Retrying' },
      ...{ reason: 'NotFound', message: 'volume "pv" does not exist' },
    }
    Object.assign(system, { operationRegistries: new Map([['agent-n1', { list: () => [operation] }]]) })
    addDriverVolume('net.sim', 'pv')
    const putPod = (phase: string) => put(['pod', aPod('p', ['c'], { spec: { nodeName: 'n1' }, status: { phase } })])
    put(
      ['volume', aVolume('pv', { phase: 'Bound', claim: 'c' })],
      ['claim', aClaim('c', { phase: 'Bound', volumeName: 'pv' })],
    )
    putPod('Running')
    const rules = () => findOperationProblems(system, view, exemptions).map(({ rule }) => rule)

    expect(rules()).toEqual(['stale operation'])
    system.drivers.get('net.sim')!.loseState()
    exemptions.update()
    expect(rules()).toEqual([])
    putPod('Succeeded')
    expect(rules()).toEqual(['stale operation'])
    putPod('Running')
    addDriverVolume('net.sim', 'pv')
    expect(rules()).toEqual(['stale operation'])
  })
})
