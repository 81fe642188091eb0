// Tests checkers with planted violations, because a checker that never reports one proves nothing.
import { readFile } from 'node:fs/promises'
import { Counter, Gauge, Registry } from 'prom-client'
import { describe, expect, it } from 'vitest'
import { leaseKind } from '../../api/kinds/lease/lease.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { ApiError } from '../../api/status-error.ts'
import { collectionPrefix } from '../../apiserver/index.ts'
import { createBindingMetrics } from '../../controllers/binding/index.ts'
import { VolumeCapability_AccessMode_Mode as Mode } from '../../csi/gen/csi_pb.js'
import { createCsiMetrics } from '../../csi/index.ts'
import { fakeVolumeCache } from '../../volumes/claims-and-volumes.fixture.ts'
import { PRE_RESIZE_CAPACITY } from '../../volumes/names.ts'
import { GI } from '../plan/catalog.ts'
import { checkAttributes, UNDO } from './attributes.ts'
import { checkBindings } from './bindings.ts'
import { createOrderCheck } from './cache-follower.ts'
import { aClaim, aClass, aNode, aPod, aVolume, createFixture } from './checkers.fixture.ts'
import { checkDeletions } from './deletions.ts'
import { checkIntents } from './intents.ts'
import { checkLeases } from './leases.ts'
import { checkLostWrites } from './lost-writes.ts'
import { findGaugeProblems, findMetricProblems } from './metrics.ts'
import { checkMounts } from './mounts.ts'
import { checkOverlaps } from './overlaps.ts'
import { checkPlacements } from './placements.ts'
import { checkQuotas } from './quotas.ts'
import { followRetries } from './retries.ts'
import { checkSizes } from './sizes.ts'
import { createCommitLog } from './watch-observer.ts'

const INTENT = 'provisioning.stowage.dev/net.sim'
const BOUND = { phase: 'Bound', volumeName: 'pv' }

const putBound = (fixture: ReturnType<typeof createFixture>, claimParts: object = {}) =>
  fixture.put(
    ['volume', aVolume('pv', { phase: 'Bound', claim: 'a' })],
    ['claim', aClaim('a', { ...BOUND, ...claimParts })],
  )

it('docs/explanation/simulation.md explains every rule', async () => {
  const readText = (path: string) => readFile(new URL(path, import.meta.url), 'utf8')
  const rules = (await readText('context.ts')).matchAll(/^ {2}\| '([a-z ]+)'$/gm)
  const table = (await readText('../../../docs/explanation/simulation.md')).match(/^\| rule \| when [\s\S]*?\n\n/m)![0]
  const missing = [...rules].map(([, rule]) => `\`${rule}\``).filter((rule) => !table.includes(rule))
  expect(missing).toEqual([])
})

describe('checkers of every commit and driver call', () => {
  it('wrong deletion: reports the deletion of a retained volume', async () => {
    const fixture = createFixture()
    const { wrapClient } = checkDeletions(fixture.context)
    wrapClient('control-1', {} as never)
    fixture.put(['volume', aVolume('pv', { policy: 'Retain' })], ['volume', aVolume('free')])
    await fixture.simulation.runFor(1_000)
    fixture.call('control-1', 'net.sim', 'DeleteVolume', 'free')
    fixture.call('control-1', 'local.sim', 'DeleteVolume', 'pv')
    expect(fixture.violations).toEqual([])
    fixture.call('control-1', 'net.sim', 'DeleteVolume', 'pv')
    expect(fixture.violations).toEqual([
      'wrong deletion: control-1 deletes net.sim^pv, but volume pv has the policy Retain',
    ])
  })

  it('shrunk, wrong status, no intent: reports sizes that fall, that the driver does not have or that are not charged', () => {
    const fixture = createFixture()
    checkSizes(fixture.context)
    const driverVolume = fixture.addDriverVolume('net.sim', 'pv', 2)
    putBound(fixture)
    fixture.call('control-1', 'net.sim', 'ControllerExpandVolume', 'pv', {
      capacityRange: { requiredBytes: 2n ** 31n },
    })()
    expect(fixture.violations).toEqual([
      `no intent: control-1 requests ${2n ** 31n} bytes of net.sim^pv, but claim team-a/a is charged ${GI}`,
    ])
    fixture.violations.length = 0
    putBound(fixture, { status: { capacity: { storage: '3Gi' } } })
    putBound(fixture, { status: { capacity: { storage: '2Gi' } } })
    driverVolume.capacityBytes = GI
    fixture.call('control-1', 'net.sim', 'ControllerGetVolume', 'pv')()
    fixture.put(['volume', aVolume('pv', { claim: 'a', spec: { capacity: { storage: '500Mi' } } })])
    expect(fixture.violations.map((text) => text.replace(/\d{6,}/g, 'N'))).toEqual([
      'wrong status: claim team-a/a reports N, but net.sim^pv has N',
      'shrunk: the capacity of claim team-a/a fell from N to N',
      'shrunk: net.sim^pv had N bytes and has N',
      'shrunk: the capacity of volume pv fell from N to N',
    ])
  })

  it('shrunk: reports a request below the size that a claim reports, not one below an unanswered expansion', () => {
    const fixture = createFixture()
    checkSizes(fixture.context)
    fixture.addDriverVolume('net.sim', 'pv', 7)
    const claim = (gi: number) =>
      aClaim('a', { ...BOUND, storage: '7Gi', status: { capacity: { storage: `${gi}Gi` } } })
    fixture.put(['claim', claim(1)], ['volume', aVolume('pv', { phase: 'Bound', claim: 'a' })])
    const expand = (gi: number, outcome: string) =>
      fixture.call('control-1', 'net.sim', 'ControllerExpandVolume', 'pv', {
        capacityRange: { requiredBytes: BigInt(gi * GI) },
      })(outcome)
    expand(7, 'DEADLINE_EXCEEDED')
    expand(3, 'OK')
    expect(fixture.violations).toEqual([])
    fixture.put(['claim', claim(7)])
    expand(3, 'OK')
    expect(fixture.violations).toEqual([
      `shrunk: control-1 requests ${3 * GI} bytes of net.sim^pv, whose claim reports ${7 * GI}`,
    ])
  })

  it('size: reports at rest an expansion to more than the claim still requests', () => {
    const fixture = createFixture()
    fixture.addDriverVolume('net.sim', 'pv', 1)
    const expandingStatus = (storage: string, state: string) => ({
      capacity: { storage: '1Gi' },
      allocatedResources: { storage },
      allocatedResourceStatuses: { storage: state },
    })
    putBound(fixture, { storage: '1Gi', status: expandingStatus('7Gi', 'ControllerResizeInProgress') })
    expect(fixture.problems()).toEqual([
      `size: claim team-a/a requests ${GI}, but its status still requests ${7 * GI} (ControllerResizeInProgress)`,
    ])
  })

  it('wrong status: reports a size that the file system does not have yet', () => {
    const fixture = createFixture()
    checkSizes(fixture.context)
    fixture.addDriverVolume('net.sim', 'pv', 2).onNodes['id-n1'] = {
      staged: { s: {} as never },
      published: {},
      fileSystemBytes: GI,
    }
    putBound(fixture)
    expect(fixture.violations).toEqual([])
    putBound(fixture, { status: { capacity: { storage: '2Gi' } } })
    expect(fixture.violations).toEqual([
      `wrong status: claim team-a/a reports ${2 * GI}, but the file system of net.sim^pv has ${GI}`,
    ])
  })

  it('no intent: reports CreateVolume without an intent, or long after it was removed', async () => {
    const fixture = createFixture()
    checkIntents(fixture.context)
    fixture.put(['claim', aClaim('a', { metadata: { finalizers: [INTENT] } })])
    fixture.call('control-1', 'net.sim', 'CreateVolume', 'pvc-uid-a')
    fixture.put(['claim', aClaim('a')])
    fixture.call('control-2', 'net.sim', 'CreateVolume', 'pvc-uid-a') // the caller read the claim before the intent was removed
    expect(fixture.violations).toEqual([])
    await fixture.simulation.runFor(60_000)
    fixture.call('control-1', 'net.sim', 'CreateVolume', 'pvc-uid-a')
    fixture.call('control-1', 'net.sim', 'CreateVolume', 'pvc-uid-b')
    expect(fixture.violations).toEqual([
      'no intent: control-1 calls CreateVolume of net.sim for pvc-uid-a, whose intent was removed 60 s ago',
      'no intent: control-1 calls CreateVolume of net.sim for pvc-uid-b, for which no claim has an intent',
    ])
  })

  it('no intent: accepts CreateVolume while a journal contains the intent', async () => {
    const fixture = createFixture()
    checkIntents(fixture.context)
    const putJournal = (entries: object) =>
      fixture.put([
        'lease',
        {
          metadata: {
            namespace: 'kube-system',
            name: 'stowage-intents-net-sim',
            annotations: { 'provisioning.stowage.dev/intents': JSON.stringify(entries) },
          },
        },
      ])
    const metadata = { namespace: 'team-a', name: 'a', uid: 'uid-a' }
    putJournal({ 'uid-a': { metadata, spec: {} } })
    await fixture.simulation.runFor(60_000)
    fixture.call('control-1', 'net.sim', 'CreateVolume', 'pvc-uid-a')
    putJournal({})
    expect(fixture.violations).toEqual([])
    await fixture.simulation.runFor(60_000)
    fixture.call('control-1', 'net.sim', 'CreateVolume', 'pvc-uid-a')
    expect(fixture.violations).toEqual([
      'no intent: control-1 calls CreateVolume of net.sim for pvc-uid-a, whose intent was removed 60 s ago',
    ])
  })

  it('wrong status, no intent: reports attributes that the driver does not have, and calls without an undo record', () => {
    const fixture = createFixture()
    checkAttributes(fixture.context, fixture.classes)
    fixture.addDriverVolume('net.sim', 'pv').mutableParameters = { iops: '500' }
    const modify = (iops: string) =>
      fixture.call('control-1', 'net.sim', 'ControllerModifyVolume', 'pv', { mutableParameters: { iops } })
    fixture.put([
      'attributesClass',
      { metadata: { name: 'gold' }, driverName: 'net.sim', parameters: { iops: '1000' } },
    ])
    putBound(fixture)
    modify('500')
    putBound(fixture, { metadata: { annotations: { [UNDO]: '{"iops":"500"}' } } })
    modify('1000')
    expect(fixture.violations).toEqual([])
    putBound(fixture)
    modify('1000')
    putBound(fixture, { status: { capacity: { storage: '1Gi' }, currentVolumeAttributesClassName: 'gold' } })
    putBound(fixture, { status: { capacity: { storage: '1Gi', throughput: '20Mi' } } })
    expect(fixture.violations).toEqual([
      'no intent: control-1 requests {"iops":"1000"} of net.sim^pv, but claim team-a/a does not report it',
      'no intent: iops of net.sim^pv changes from 500 to 1000, but claim team-a/a records no undo',
      'wrong status: claim team-a/a reports the class gold, but volume pv has undefined',
      'wrong status: claim team-a/a reports iops=1000, but net.sim^pv has 500',
      'wrong status: claim team-a/a lost its attributes class',
      'wrong status: claim team-a/a reports throughput=20, but net.sim^pv has undefined',
    ])
  })

  it('quota: reports an uncharged claim in its own namespace only', () => {
    const fixture = createFixture()
    checkQuotas(fixture.context)
    const hard = { persistentvolumeclaims: '5', 'limits.throughput': '100Mi', 'requests.cpu': '2', 'count/pods': '9' }
    const quota = (used: object) =>
      ['quota', { metadata: { namespace: 'team-a', name: 'q' }, spec: { hard }, status: { hard, used } }] as const
    const containers = [{ name: 'main', resources: { requests: { cpu: '300m' } } }]
    fixture.put(
      ['claim', aClaim('a', { spec: { resources: { requests: { throughput: '20Mi' } } } })],
      ['pod', aPod('p', [], { spec: { containers } })],
      quota({ persistentvolumeclaims: '1', 'limits.throughput': '20Mi', 'requests.cpu': '300m', 'count/pods': '1' }),
    )
    fixture.put(['claim', { ...aClaim('b'), metadata: { namespace: 'team-b', name: 'b' } }])
    expect(fixture.violations).toEqual([])
    fixture.put(['claim', aClaim('b')])
    expect(fixture.violations).toEqual([
      'quota: in team-a quota q reports persistentvolumeclaims=1, but the objects add up to 2',
    ])
  })

  it('overlap: reports two operations on one volume, unless the first caller no longer waits', () => {
    const fixture = createFixture()
    checkOverlaps(fixture.context)
    const modify = (process: string) => fixture.call(process, 'net.sim', 'ControllerModifyVolume', 'pv')
    modify('control-1')()
    const end = modify('control-1')
    fixture.call('control-1', 'net.sim', 'ControllerExpandVolume', 'other')
    fixture.call('control-1', 'net.sim', 'ControllerGetVolume', 'pv')
    end()
    modify('resizer-net.sim-1')
    fixture.call('attacher-net.sim-1', 'net.sim', 'ControllerPublishVolume', 'pv')()
    fixture.processes.get('resizer-net.sim-1')!.isFrozen = true
    modify('resizer-net.sim-2')
    fixture.processes.get('resizer-net.sim-1')!.alive = false
    fixture.processes.get('resizer-net.sim-2')!.alive = false
    modify('resizer-net.sim-3')
    expect(fixture.violations).toEqual([])
    modify('resizer-net.sim-3')
    expect(fixture.violations).toEqual([
      'overlap: ControllerModifyVolume net.sim^pv of resizer-net.sim-3 begins during ControllerModifyVolume net.sim^pv of resizer-net.sim-3',
    ])
  })

  function overlapsOfDeletionDuringCreate(secondProvisioner: boolean): readonly string[] {
    const fixture = createFixture()
    const { system } = fixture.context
    checkOverlaps({ ...fixture.context, system: { ...system, setup: { ...system.setup, secondProvisioner } } })
    fixture.call('provisioner-net.sim-1', 'net.sim', 'CreateVolume', 'pv')
    fixture.call('provisioner-net.sim-1', 'net.sim', 'DeleteVolume', 'pv')
    return fixture.violations
  }

  it("overlap: accepts a provisioner's DeleteVolume during its own CreateVolume if there is a second provisioner", () => {
    expect(overlapsOfDeletionDuringCreate(true)).toEqual([])
  })

  it("overlap: reports a provisioner's DeleteVolume during its own CreateVolume if there is no second provisioner", () => {
    expect(overlapsOfDeletionDuringCreate(false)).toHaveLength(1)
  })

  it('double attach, wrong mount: reports a second node, a mount without an attachment and a detach of a mounted volume', () => {
    const fixture = createFixture()
    checkMounts(fixture.context, () => false)
    const driverVolume = fixture.addDriverVolume('net.sim', 'pv')
    putBound(fixture)
    fixture.put(['node', aNode('n1')])
    const publish = (nodeId: string, mode = Mode.SINGLE_NODE_WRITER) =>
      fixture.call('control-1', 'net.sim', 'ControllerPublishVolume', 'pv', {
        nodeId,
        volumeCapability: { accessMode: { mode } },
      })
    const detach = () => fixture.call('control-1', 'net.sim', 'ControllerUnpublishVolume', 'pv', { nodeId: 'id-n1' })
    driverVolume.attachments['id-n1'] = {} as never
    publish('id-n1')
    publish('id-n2', Mode.MULTI_NODE_MULTI_WRITER)
    fixture.call('agent-n1', 'net.sim', 'NodeStageVolume', 'pv')
    detach()
    expect(fixture.violations).toEqual([])
    publish('id-n2')
    fixture.call('agent-n2', 'net.sim', 'NodeStageVolume', 'pv')
    fixture.mounts.get('n1')!.push({ path: '/node/staged', volume: 'net.sim^pv' })
    detach()
    expect(fixture.violations).toEqual([
      'double attach: control-1 publishes net.sim^pv to n2, but it is already published to n1',
      'wrong mount: agent-n2 mounts net.sim^pv on n2, where it is not attached',
      'wrong mount: control-1 detaches net.sim^pv from n1, where /node/staged is mounted',
    ])
    const taints = [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }]
    fixture.put(['node', aNode('n1', { taints })])
    detach()
    expect(fixture.violations).toHaveLength(4) // the node is tainted, but still Ready
    const status = { conditions: [{ type: 'Ready', status: 'Unknown' }] }
    fixture.put(['node', { ...aNode('n1', { taints }), status }])
    detach()
    expect(fixture.violations).toHaveLength(4)
  })

  it('wrong mount: reports a volume that two running machines could write to, even if its old node is out of service', () => {
    const fixture = createFixture()
    checkMounts(fixture.context, () => false)
    const driverVolume = fixture.addDriverVolume('net.sim', 'pv')
    putBound(fixture)
    const taints = [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }]
    const status = { conditions: [{ type: 'Ready', status: 'Unknown' }] }
    fixture.put(['node', { ...aNode('n1', { taints }), status }], ['node', aNode('n2')])
    driverVolume.attachments['id-n2'] = {} as never
    fixture.call('agent-n2', 'net.sim', 'NodeStageVolume', 'pv')
    expect(fixture.violations).toEqual([])
    fixture.mounts.get('n1')!.push({ path: '/node/staged', volume: 'net.sim^pv' })
    fixture.call('agent-n2', 'net.sim', 'NodeStageVolume', 'pv')
    expect(fixture.violations).toEqual(['wrong mount: agent-n2 mounts net.sim^pv on n2, but it is still mounted on n1'])
  })

  it('wrong mount: reports a detach from a deleted node until six minutes have passed', async () => {
    const fixture = createFixture()
    checkMounts(fixture.context, () => false)
    fixture.addDriverVolume('net.sim', 'pv')
    fixture.put(['node', aNode('n1')], ['volume', aVolume('pv')])
    fixture.mounts.get('n1')!.push({ path: '/node/staged', volume: 'net.sim^pv' })
    fixture.remove('node', 'n1')
    const detach = () => fixture.call('control-1', 'net.sim', 'ControllerUnpublishVolume', 'pv', { nodeId: 'id-n1' })()
    await fixture.simulation.runFor(5 * 60_000)
    detach()
    expect(fixture.violations).toEqual([
      'wrong mount: control-1 detaches net.sim^pv from n1, where /node/staged is mounted',
    ])
    await fixture.simulation.runFor(60_000)
    detach()
    expect(fixture.violations).toHaveLength(1)
  })

  it('two leaders: reports a lease taken before the duration since its renewal has passed', async () => {
    const fixture = createFixture()
    checkLeases(fixture.context)
    let revision = 0
    const writeLease = (holderIdentity: string) => {
      const lease = {
        metadata: { namespace: 'kube-system', name: 'x' },
        spec: { holderIdentity, leaseDurationSeconds: 60 },
      }
      const key = `${collectionPrefix(leaseKind)}kube-system/x`
      fixture.view.apply([{ key, value: Buffer.from(JSON.stringify(lease)), revision: ++revision }])
    }
    writeLease('a')
    await fixture.simulation.runFor(59_000)
    writeLease('a')
    await fixture.simulation.runFor(60_000)
    writeLease('b')
    writeLease('')
    writeLease('c')
    expect(fixture.violations).toEqual([])
    await fixture.simulation.runFor(59_500)
    writeLease('d')
    expect(fixture.violations).toEqual([
      'two leaders: d takes the lease kube-system/x 59.5 s after c renewed it for 60 s',
    ])
  })

  it('wrong mount: reports a ReadWriteOncePod volume mounted for two pods', () => {
    const fixture = createFixture()
    checkMounts(fixture.context, () => false)
    fixture.addDriverVolume('basic.sim', 'pv')
    fixture.put(
      ['volume', aVolume('pv', { phase: 'Bound', claim: 'a', driver: 'basic.sim' })],
      ['claim', aClaim('a', { phase: 'Bound', volumeName: 'pv', spec: { accessModes: ['ReadWriteOncePod'] } })],
      ['pod', aPod('p', ['a'])],
      ['pod', aPod('q', ['a'])],
    )
    const mount = (uid: string) => {
      fixture.mounts.get('n1')!.push({ path: `/node/pods/${uid}/volumes/x/mount`, volume: 'basic.sim^pv' })
      fixture.call('agent-n1', 'basic.sim', 'NodePublishVolume', 'pv')()
    }
    mount('uid-p')
    expect(fixture.violations).toEqual([])
    mount('uid-q')
    expect(fixture.violations).toEqual([
      'wrong mount: basic.sim^pv is ReadWriteOncePod, but is mounted for team-a/p and team-a/q',
    ])
  })

  it('wrong placement: reports an unreachable volume, a missing volume and a cordoned node', async () => {
    const fixture = createFixture()
    checkPlacements(fixture.context)
    const nodeSelector = {
      nodeSelectorTerms: [{ matchExpressions: [{ key: 'topology.sim/node', operator: 'In', values: ['n1'] }] }],
    }
    fixture.put(
      ['volume', aVolume('pv', { phase: 'Bound', claim: 'a', spec: { nodeAffinity: { required: nodeSelector } } })],
      ['claim', aClaim('a', { phase: 'Bound', volumeName: 'pv' })],
      ['claim', aClaim('b')],
      ['node', aNode('n1')],
      ['node', aNode('n2', { unschedulable: true })],
    )
    const place = (name: string, nodeName: string, claims: readonly string[]) => {
      fixture.put(['pod', aPod(name, claims)])
      fixture.put(['pod', aPod(name, claims, { spec: { nodeName } })])
    }
    place('right', 'n1', ['a'])
    place('early', 'n2', [])
    expect(fixture.violations).toEqual([])
    await fixture.simulation.runFor(200_000)
    place('wrong', 'n2', ['a', 'b'])
    expect(fixture.violations).toEqual([
      'wrong placement: pod team-a/wrong was bound to n2, which is cordoned',
      'wrong placement: pod team-a/wrong was bound to n2, which cannot reach volume pv of team-a/a',
      'wrong placement: pod team-a/wrong was bound to n2, but its claim team-a/b has no volume',
    ])
  })

  it('lost write: reports an observed object that is missing after a restart, and an acknowledged write that was never observed', async () => {
    const fixture = createFixture()
    const acknowledgedWrites = [
      { atMs: 0, kind: 'claim', key: 'team-a/a', uid: 'uid-a', resourceVersion: '1', isDeleted: false },
    ]
    const writes = checkLostWrites(fixture.context, acknowledgedWrites as never)
    fixture.put(['claim', aClaim('a')], ['claim', aClaim('b')])
    writes.check()
    const restartServer = async (revision: number, ...entries: { key: string; modRevision: number }[]) => {
      fixture.startServer({ list: async () => ({ entries, revision }) })
      await Promise.resolve()
      await Promise.resolve()
    }
    const [a, b] = ['a', 'b'].map((name, index) => ({
      key: `core/persistentvolumeclaims/team-a/${name}`,
      modRevision: index + 1,
    }))
    await restartServer(2, a!, b!)
    await restartServer(3, a!) // a deletion that was in progress
    expect(fixture.violations).toEqual([])
    await restartServer(2, a!)
    await restartServer(1, a!, b!)
    acknowledgedWrites.push({ ...acknowledgedWrites[0]!, resourceVersion: '9' })
    writes.check()
    expect(fixture.violations).toEqual([
      'lost write: core/persistentvolumeclaims/team-a/b is missing after the restart',
      'lost write: the server restarted at revision 1, but 2 was observed before',
      'lost write: claim team-a/a was acknowledged at 9, but only 1 was ever observed',
    ])
  })

  it('watch: reports events that were repeated, omitted or never committed', () => {
    const violations: string[] = []
    const log = createCommitLog('c/', (text) => void violations.push(text))
    const commit = (name: string, revision: number) =>
      log.recordWrites([{ key: `c/${name}`, value: Buffer.from(''), revision }])
    const at = (name: string, resourceVersion: number) =>
      ({ metadata: { name, resourceVersion: String(resourceVersion) } }) as never
    commit('a', 1)
    log.checkList([at('a', 1)], 1)
    commit('a', 2)
    commit('b', 3)
    log.checkEvent('modified', at('a', 2), 2)
    log.checkEvent('added', at('b', 3), 3)
    log.checkBookmark(5)
    expect(violations).toEqual([])
    log.checkEvent('added', at('b', 3), 3)
    commit('a', 6)
    commit('b', 7)
    log.checkEvent('modified', at('b', 7), 7)
    log.checkEvent('modified', at('b', 8), 8)
    log.checkList([at('b', 7)], 9)
    expect(violations).toEqual([
      'c/b was delivered at 3 after 5: twice, or out of order',
      'c/a of revision 6 was omitted before 7',
      'c/b was delivered as modified at 8, but was not committed that way',
      'a list of c/ at 9 omits a of 6',
    ])
    log.recordInterruption()
    commit('a', 12)
    log.checkEvent('modified', at('a', 11), 11) // committed, and the server crashed before any watcher received it
    expect(violations).toHaveLength(4)
  })
})

describe('checker of bindings', () => {
  function createBoundFixture() {
    const fixture = createFixture()
    checkBindings(fixture.view.claimsAndVolumes, (text) => fixture.context.report('double binding', text))
    putBound(fixture)
    return fixture
  }
  const volumeEntry = (name: string, claim?: string) => ['volume', aVolume(name, { claim })] as const

  it('accepts a claim that is bound to its own volume', () => {
    expect(createBoundFixture().violations).toEqual([])
  })

  it('reports a second claim bound to a volume', () => {
    const { put, violations } = createBoundFixture()
    put(['claim', aClaim('b', { phase: 'Bound', volumeName: 'pv' })])
    expect(violations).toEqual([
      'double binding: volume pv is bound to the claims team-a/a and team-a/b',
      'double binding: claim team-a/b became bound to volume pv, which belongs to team-a/a (uid-a)',
    ])
  })

  it('reports a volume that is taken from its bound claim or deleted before it', () => {
    const { put, remove, violations } = createBoundFixture()
    put(volumeEntry('pv', 'b'))
    put(volumeEntry('pv', 'a'))
    remove('volume', 'pv')
    expect(violations).toEqual([
      'double binding: volume pv was taken from the claim team-a/a',
      'double binding: volume pv was deleted while it belonged to the claim team-a/a',
    ])
  })

  it('reports a volume assigned or reserved for one claim and given to another, unless it was free in between', () => {
    const { put, violations } = createBoundFixture()
    put(['claim', aClaim('b')], ['claim', aClaim('c')])
    put(volumeEntry('other', 'b'))
    put(volumeEntry('other'))
    put(volumeEntry('other', 'c'))
    expect(violations).toEqual([])
    put(volumeEntry('other', 'b'))
    const reservedVolume = aVolume('named', { spec: { claimRef: { namespace: 'team-a', name: 'b' } } })
    put(['volume', reservedVolume])
    put(volumeEntry('named', 'b'))
    put(volumeEntry('named'))
    put(['volume', reservedVolume])
    put(volumeEntry('named', 'c'))
    expect(violations).toEqual([
      'double binding: volume other was assigned to the claim team-a/c, but was given to team-a/b (uid-b)',
      'double binding: volume named was reserved for team-a/b (no uid), but was given to team-a/c (uid-c)',
    ])
  })

  it('reports a claim bound to a volume that does not exist', () => {
    const { put, violations } = createBoundFixture()
    put(['claim', aClaim('b', { phase: 'Bound', volumeName: 'nothing' })])
    expect(violations).toEqual(['double binding: claim team-a/b became bound to volume nothing, which does not exist'])
  })
})

describe('checker of deletions', () => {
  it("reports a bound volume's deletion, unless the caller could not know of the binding", async () => {
    const fixture = createFixture()
    const { wrapClient } = checkDeletions(fixture.context)
    const client = wrapClient('control-1', { get: async () => ({}) } as never)
    fixture.put(['volume', aVolume('pv', { phase: 'Released' })])
    const readVolume = () => client.get(persistentVolumeKind, { name: 'pv' })
    const deleteVolume = () => fixture.call('control-1', 'net.sim', 'DeleteVolume', 'pv')()
    await fixture.simulation.runFor(1_000)
    await readVolume()
    fixture.put(['claim', aClaim('a', { phase: 'Bound', volumeName: 'pv' })])
    await fixture.simulation.runFor(29_000)
    deleteVolume()
    expect(fixture.violations).toEqual([])
    await fixture.simulation.runFor(2_000)
    deleteVolume() // the read is too old to count
    const violation = 'wrong deletion: control-1 deletes net.sim^pv, but volume pv is bound to the claim team-a/a'
    expect(fixture.violations).toEqual([violation])
    await readVolume()
    deleteVolume()
    expect(fixture.violations).toEqual([violation, violation])
  })
})

describe('checker of charges', () => {
  const aChargedClaim = (request: string, mark: string, status: object = {}) =>
    aClaim('a', {
      phase: 'Bound',
      volumeName: 'pv',
      storage: request,
      spec: { allocatedResources: { storage: mark } },
      status: { capacity: { storage: '1Gi' }, ...status },
    })

  it('charge: reports a request above the charge, and a charge that falls', () => {
    const fixture = createFixture()
    checkSizes(fixture.context)
    fixture.put(['claim', aChargedClaim('3Gi', '3Gi')])
    expect(fixture.violations).toEqual([])
    fixture.put(['claim', aChargedClaim('5Gi', '3Gi')])
    fixture.put(['claim', aChargedClaim('1Gi', '1Gi')])
    expect(fixture.violations).toEqual([
      `charge: claim team-a/a requests ${5 * GI}, but only ${3 * GI} is charged`,
      `charge: the charge of claim team-a/a fell from ${3 * GI} to ${GI}`,
    ])
  })

  it('charge: accepts a charge that falls to the actual size, if no expansion is in progress', () => {
    const fixture = createFixture()
    Object.assign(fixture.system.setup, { expansionQuota: 'actual' })
    checkSizes(fixture.context)
    fixture.put(['claim', aChargedClaim('1Gi', '5Gi')])
    fixture.put(['claim', aChargedClaim('1Gi', '1Gi')])
    expect(fixture.violations).toEqual([])
    const progress = { allocatedResourceStatuses: { storage: 'ControllerResizeInProgress' } }
    fixture.put(['claim', aChargedClaim('1Gi', '5Gi', progress)])
    fixture.put(['claim', aChargedClaim('1Gi', '1Gi', progress)])
    expect(fixture.violations).toEqual([`charge: the charge of claim team-a/a fell from ${5 * GI} to ${GI}`])
  })

  it('charge, size: reports at rest a charge without use and conditions of a completed expansion', () => {
    const fixture = createFixture()
    Object.assign(fixture.system.setup, { expansionQuota: 'actual' })
    fixture.addDriverVolume('net.sim', 'pv')
    const conditions = [{ type: 'ControllerResizeError', status: 'True', message: 'too large' }]
    fixture.put(
      ['volume', aVolume('pv', { phase: 'Bound', claim: 'a' })],
      ['claim', aChargedClaim('1Gi', '5Gi', { conditions })],
    )
    expect(fixture.problems()).toEqual([
      'size: claim team-a/a has the size it requests, but still has ControllerResizeError',
      `charge: claim team-a/a is charged ${5 * GI}, requests ${GI} and has ${GI}`,
    ])
  })
})

describe('checker of attributes', () => {
  const goldClass = { metadata: { name: 'gold' }, driverName: 'net.sim', parameters: { iops: '1000' } }
  const oddClass = { metadata: { name: 'odd' }, driverName: 'net.sim', parameters: { colour: 'red' } }
  const otherClass = { metadata: { name: 'other' }, driverName: 'other.sim', parameters: { iops: '9' } }
  const classStatus = (current: string | undefined, otherParts: object = {}) => ({
    status: { capacity: { storage: '1Gi' }, currentVolumeAttributesClassName: current },
    ...otherParts,
  })
  function createModifiedFixture() {
    const fixture = createFixture()
    const driverVolume = fixture.addDriverVolume('net.sim', 'pv')
    driverVolume.mutableParameters = { iops: '1000' }
    fixture.put(['attributesClass', goldClass], ['attributesClass', oddClass], ['attributesClass', otherClass])
    fixture.put(
      ['volume', aVolume('pv', { phase: 'Bound', claim: 'a', spec: { volumeAttributesClassName: 'gold' } })],
      ['claim', aClaim('a', { phase: 'Bound', volumeName: 'pv', ...classStatus('gold') })],
    )
    const putClaim = (claimParts: object) =>
      fixture.put(['claim', aClaim('a', { phase: 'Bound', volumeName: 'pv', ...claimParts })])
    return { fixture, driverVolume, putClaim }
  }

  it('attributes: reports a driver attribute that no status explains', () => {
    const { fixture, driverVolume } = createModifiedFixture()
    expect(fixture.problems()).toEqual([])
    driverVolume.mutableParameters = { iops: '1000', tier: 'left over' }
    expect(fixture.problems()).toEqual([
      'attributes: claim team-a/a should have tier=undefined according to its statuses, but net.sim^pv has left over',
    ])
  })

  it('attributes: reports conditions and an undo record that outlive their change', () => {
    const { fixture, putClaim } = createModifiedFixture()
    putClaim(classStatus('gold', { metadata: { annotations: { [UNDO]: '{"iops":"500"}' } } }))
    expect(fixture.problems()).toEqual(['attributes: claim team-a/a has what it requests, but still records an undo'])
    const conditions = [{ type: 'ModifyVolumeError', status: 'True' }]
    putClaim({ status: { capacity: { storage: '1Gi' }, currentVolumeAttributesClassName: 'gold', conditions } })
    expect(fixture.problems()).toEqual([
      'attributes: claim team-a/a has what it requests, but still has ModifyVolumeError',
    ])
  })

  it('attributes: requires Pending for a missing class and Infeasible for unknown parameters or another driver', () => {
    const { fixture, putClaim } = createModifiedFixture()
    fixture.recordEvent('uid-a', 'VolumeModifyFailed')
    putClaim(classStatus('gold', { spec: { volumeAttributesClassName: 'missing' } }))
    expect(fixture.problems()).toEqual(['attributes: claim team-a/a should be Pending for missing, but is undefined'])
    putClaim(classStatus('gold', { spec: { volumeAttributesClassName: 'odd' } }))
    expect(fixture.problems()).toEqual(['attributes: claim team-a/a should be Infeasible for odd, but is undefined'])
    putClaim(classStatus('gold', { spec: { volumeAttributesClassName: 'other' } }))
    expect(fixture.problems()).toEqual(['attributes: claim team-a/a should be Infeasible for other, but is undefined'])
  })

  it('wrong status: reports an event about a class that the claim never had', () => {
    const { fixture } = createModifiedFixture()
    checkAttributes(fixture.context, fixture.classes)
    fixture.recordEvent(
      'uid-a',
      'VolumeModifySuccessful',
      'external resizer modified volume a with vac silver successfully',
    )
    expect(fixture.violations).toEqual([
      'wrong status: an event reports that claim undefined has the class silver, which it never had',
    ])
  })
})

describe('cache follower', () => {
  it('cache: reports an object added twice, updated backwards, or deleted while not cached', () => {
    const violations: string[] = []
    const check = createOrderCheck('configmaps', (text) => void violations.push(text))
    const at = (name: string, resourceVersion: string, uid = 'u') =>
      ({ metadata: { namespace: 'n', name, uid, resourceVersion } }) as never
    check.added(at('a', '1'))
    check.updated(at('a', '2'))
    expect(violations).toEqual([])
    check.added(at('a', '3'))
    check.updated(at('a', '2'))
    check.updated(at('b', '1'))
    check.deleted(at('c', '1'))
    expect(violations).toEqual([
      'the cache of configmaps added n/a, which it held already',
      'the cache of configmaps updated n/a to 2 after 3',
      'the cache of configmaps updated n/b, which it did not hold',
      'the cache of configmaps deleted n/c, which it did not hold',
    ])
  })
})

describe('checkers of the state at rest', () => {
  it('accepts a bound and mounted claim of a running pod', () => {
    const fixture = createFixture()
    const driverVolume = fixture.addDriverVolume('net.sim', 'pv')
    driverVolume.attachments['id-n1'] = {} as never
    putBound(fixture)
    fixture.put(
      ['node', aNode('n1')],
      ['pod', aPod('p', ['a'], { spec: { nodeName: 'n1' }, status: { phase: 'Running' } })],
      [
        'attachment',
        {
          metadata: { name: 'va' },
          spec: { attacher: 'net.sim', nodeName: 'n1', source: { persistentVolumeName: 'pv' } },
          status: { attached: true },
        },
      ],
    )
    fixture.mounts.get('n1')!.push({ path: '/node/pods/uid-p/volumes/x/mount', volume: 'net.sim^pv' })
    expect(fixture.problems()).toEqual([])
  })

  it('leak, missing: reports driver volumes without a PersistentVolume and the reverse, except imports, user deletions and lost state', () => {
    const fixture = createFixture()
    fixture.addDriverVolume('net.sim', 'pv-1')
    fixture.addDriverVolume('net.sim', 'imported-1') // imported by a user, without a PersistentVolume so far
    fixture.put(['volume', aVolume('empty')])
    expect(fixture.problems()).toEqual([
      'leak: net.sim^pv-1 (pv-1) leaked: it has no PersistentVolume',
      'missing: volume empty refers to net.sim^empty, which does not exist',
    ])
    fixture.addDriverVolume('net.sim', 'empty')
    fixture.put(['volume', aVolume('pv-1', { policy: 'Retain' })])
    fixture.remove('volume', 'pv-1') // deleted by a user
    expect(fixture.problems()).toEqual([])
    fixture.system.drivers.get('net.sim')!.loseState()
    fixture.exemptions.update()
    expect(fixture.problems()).toEqual([])
  })

  it('missing: accepts a volume retained or released by a user after its deletion was requested', () => {
    const findMissingProblems = (change: object) => {
      const fixture = createFixture()
      fixture.put(['volume', aVolume('pv', { phase: 'Released', claim: 'a' })])
      fixture.call('control-1', 'net.sim', 'DeleteVolume', 'pv')()
      fixture.put(['volume', aVolume('pv', { phase: 'Released', claim: 'a', ...change })])
      return fixture.problems().filter((text) => text.startsWith('missing'))
    }
    const expectedProblems = ['missing: volume pv refers to net.sim^pv, which does not exist']
    expect(findMissingProblems({})).toEqual(expectedProblems)
    expect(findMissingProblems({ policy: 'Retain' })).toEqual([])
    expect(findMissingProblems({ policy: 'Retain', phase: 'Bound' })).toEqual(expectedProblems)
    expect(findMissingProblems({ phase: 'Available', claim: undefined })).toEqual([])
  })

  it('leak: reports storage whose PersistentVolume had the deletion finalizer or was deleted by a process', () => {
    const fixture = createFixture()
    fixture.addDriverVolume('net.sim', 'pv')
    const finalizers = ['external-provisioner.volume.kubernetes.io/finalizer']
    fixture.put(['volume', aVolume('pv', { metadata: { finalizers, deletionTimestamp: 'then' } })])
    fixture.remove('volume', 'pv')
    fixture.addDriverVolume('net.sim', 'other')
    fixture.put(['volume', aVolume('other', { policy: 'Retain' })])
    fixture.deletedByProcess.add('uid-other')
    fixture.remove('volume', 'other')
    expect(fixture.problems()).toEqual([
      'leak: net.sim^pv (pv) leaked: it has no PersistentVolume',
      'leak: net.sim^other (other) leaked: it has no PersistentVolume',
    ])
  })

  it('no reason, needless wait: reports claims that state no reason or could be bound', () => {
    const fixture = createFixture()
    fixture.put(['class', aClass('net-now', 'net.sim')], ['claim', aClaim('a', { storage: '99Gi' })])
    expect(fixture.problems()).toEqual(['no reason: claim team-a/a is Pending without an event that states the reason'])
    fixture.recordEvent('uid-a', 'ProvisioningFailed')
    expect(fixture.problems()).toEqual([])
    fixture.put(['claim', aClaim('a')])
    expect(fixture.problems()).toEqual([
      'needless wait: claim team-a/a could get a volume from net.sim: its last event is "Warning ProvisioningFailed: because"',
    ])
    fixture.addDriverVolume('net.sim', 'pv')
    fixture.put(['volume', aVolume('pv')], ['claim', aClaim('a', { className: 'static' })])
    expect(fixture.problems()).toEqual([
      'needless wait: claim team-a/a could bind to volume pv: its last event is "Warning ProvisioningFailed: because"',
    ])
  })

  it('needless wait: reports a claim without a class if there is a default class, unless its quota is full', () => {
    const fixture = createFixture()
    fixture.recordEvent('uid-a', 'ExceededQuota')
    const annotations = { 'storageclass.kubernetes.io/is-default-class': 'true' }
    const storageClass = aClass('net-now', 'net.sim')
    const { storageClassName: _, ...spec } = aClaim('a').spec
    const hard = { 'net-now.storageclass.storage.k8s.io/requests.storage': '2Gi' }
    const used = (storage: string) => ({ 'net-now.storageclass.storage.k8s.io/requests.storage': storage })
    const quota = (storage: string) =>
      [
        'quota',
        { metadata: { namespace: 'team-a', name: 'q' }, spec: { hard }, status: { hard, used: used(storage) } },
      ] as const
    fixture.put(
      ['class', { ...storageClass, metadata: { ...storageClass.metadata, annotations } }],
      ['claim', { ...aClaim('a'), spec }],
      quota('2Gi'),
    )
    expect(fixture.problems()).toEqual([])
    fixture.put(quota('1Gi'))
    expect(fixture.problems()).toEqual([
      'needless wait: claim team-a/a has no class, although there is a default class: its last event is "Warning ExceededQuota: because"',
    ])
  })

  it('size, no reason, needless wait: reports expansions that are wrong, unexplained or possible', () => {
    const fixture = createFixture()
    const driverVolume = fixture.addDriverVolume('net.sim', 'pv', 2)
    putBound(fixture)
    expect(fixture.problems()).toEqual([
      `size: claim team-a/a reports ${GI}, volume pv records ${GI}, but net.sim^pv has ${2 * GI}`,
    ])
    driverVolume.capacityBytes = GI
    putBound(fixture, { storage: '99Gi' })
    expect(fixture.problems()).toEqual([
      `no reason: claim team-a/a requests ${99 * GI}, has ${GI} (undefined), and reports no reason`,
    ])
    fixture.recordEvent('uid-a', 'VolumeResizeFailed')
    expect(fixture.problems()).toEqual([])
    putBound(fixture, { storage: '2Gi' })
    expect(fixture.problems()).toEqual([
      `needless wait: claim team-a/a could have ${2 * GI}, has ${GI} (undefined), but reports "Warning VolumeResizeFailed: because"`,
    ])
  })

  it('size: reports a volume larger than recorded, unless an unanswered expansion of a deleted claim explains it', () => {
    const fixture = createFixture()
    const expandFor = (claim: string) => {
      fixture.put(['volume', aVolume('pv', { phase: 'Bound', claim })])
      return fixture.call('control-1', 'net.sim', 'ControllerExpandVolume', 'pv')
    }
    fixture.addDriverVolume('net.sim', 'pv', 2)
    const sizeProblem = `size: claim team-a/a reports ${GI}, volume pv records ${GI}, but net.sim^pv has ${2 * GI}`
    expandFor('before')('ABORTED')
    putBound(fixture)
    expect(fixture.problems()).toEqual([])
    expandFor('a')('ABORTED') // the expansion of the claim itself must be completed
    expect(fixture.problems()).toEqual([sizeProblem])
    expandFor('before')('OK')
    putBound(fixture)
    expect(fixture.problems()).toEqual([sizeProblem])
  })

  it('size: reports a half-expanded volume, unless its claim reports it and waits for a pod', () => {
    const fixture = createFixture()
    fixture.addDriverVolume('net.sim', 'pv', 2)
    const annotations = { [PRE_RESIZE_CAPACITY]: '1Gi' }
    const volumeParts = {
      phase: 'Bound',
      claim: 'a',
      metadata: { annotations },
      spec: { capacity: { storage: '2Gi' } },
    }
    const sizeProblem = `size: claim team-a/a reports ${GI}, volume pv records ${2 * GI}, but net.sim^pv has ${2 * GI}`
    putBound(fixture)
    fixture.put(['volume', aVolume('pv', volumeParts)])
    expect(fixture.problems().sort()).toEqual([sizeProblem, 'size: volume pv is still annotated as expanding'])
    const conditions = [{ type: 'FileSystemResizePending', status: 'True' }]
    const status = { capacity: { storage: '1Gi' }, conditions }
    fixture.put(['claim', aClaim('a', { phase: 'Bound', volumeName: 'pv', status })])
    expect(fixture.problems()).toEqual([])
    fixture.put(['pod', aPod('p', ['a'], { spec: { nodeName: 'n1' }, status: { phase: 'Running' } })])
    expect(fixture.problems()).toContain(sizeProblem)
  })

  it('size: reports a volume that does not state the size its node waits for', () => {
    const fixture = createFixture()
    fixture.addDriverVolume('net.sim', 'pv', 2)
    const putExpanding = (storage: string) =>
      fixture.put(
        ['volume', aVolume('pv', { phase: 'Bound', claim: 'a', spec: { capacity: { storage } } })],
        [
          'claim',
          aClaim('a', {
            phase: 'Bound',
            volumeName: 'pv',
            storage: '2Gi',
            status: {
              capacity: { storage: '1Gi' },
              allocatedResources: { storage: '2Gi' },
              allocatedResourceStatuses: { storage: 'NodeResizePending' },
              conditions: [{ type: 'FileSystemResizePending', status: 'True' }],
            },
          }),
        ],
      )
    putExpanding('2Gi')
    expect(fixture.problems()).toEqual([])
    putExpanding('1Gi')
    expect(fixture.problems()).toEqual([
      `size: claim team-a/a waits for NodeExpandVolume, volume pv records ${GI}, but net.sim^pv has ${2 * GI}`,
    ])
  })

  it('needless wait: accepts a failed expansion of a volume that is ReadWriteOnce and ReadOnlyMany, unless it is also ReadWriteMany', () => {
    const fixture = createFixture()
    fixture.addDriverVolume('net.sim', 'pv')
    fixture.recordEvent('uid-a', 'VolumeResizeFailed')
    putBound(fixture, { storage: '2Gi' })
    const putAccessModes = (...accessModes: string[]) =>
      fixture.put(['volume', aVolume('pv', { phase: 'Bound', claim: 'a', spec: { accessModes } })])
    putAccessModes('ReadWriteOnce', 'ReadOnlyMany')
    expect(fixture.problems()).toEqual([])
    putAccessModes('ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany')
    expect(fixture.problems()).toHaveLength(1)
  })

  it('needless wait: reports a pending NodeExpandVolume, unless the driver reported that the volume is in use', () => {
    const fixture = createFixture()
    fixture.addDriverVolume('net.sim', 'pv', 2)
    fixture.recordEvent('uid-a', 'FileSystemResizeRequired')
    fixture.put(['pod', aPod('p', ['a'], { spec: { nodeName: 'n1' }, status: { phase: 'Running' } })])
    const problemsAfter = (message: string) => {
      const conditions = [{ type: 'NodeResizeError', status: 'True', message }]
      const expansion = {
        allocatedResources: { storage: '2Gi' },
        allocatedResourceStatuses: { storage: 'NodeResizeInProgress' },
      }
      putBound(fixture, { storage: '2Gi', status: { capacity: { storage: '1Gi' }, conditions, ...expansion } })
      return fixture.problems().filter((text) => text.startsWith('needless wait: claim team-a/a could have'))
    }
    expect(problemsAfter('rpc error: code = FailedPrecondition desc = in use')).toEqual([])
    expect(problemsAfter('rpc error: code = Internal desc = no')).toHaveLength(1)
  })

  it('needless wait: reports an offline expansion once no pod uses the volume', () => {
    const fixture = createFixture()
    fixture.addDriverVolume('net.sim', 'pv')
    fixture.recordEvent(
      'uid-a',
      'VolumeResizeFailed',
      'the driver only supports offline expansion and volume is currently in-use',
    )
    putBound(fixture, { storage: '2Gi' })
    const putPod = (phase: string) =>
      fixture.put(['pod', aPod('p', ['a'], { spec: { nodeName: 'n1' }, status: { phase } })])
    const isAccepted = () =>
      !fixture.problems().some((text) => text.startsWith('needless wait: claim team-a/a could have'))
    putPod('Running')
    expect(isAccepted()).toBe(true)
    putPod('Succeeded')
    expect(isAccepted()).toBe(false)
    putPod('Running')
    fixture.recordEvent('uid-a', 'VolumeResizeFailed', 'something else')
    expect(isAccepted()).toBe(false)
  })

  it('attributes: reports differences between driver, volume and claim, and changes that are possible', () => {
    const fixture = createFixture()
    fixture.addDriverVolume('net.sim', 'pv').mutableParameters = { iops: '500' }
    const goldClass = { metadata: { name: 'gold' }, driverName: 'net.sim', parameters: { iops: '1000' } }
    fixture.put(['attributesClass', goldClass])
    const capacity = { storage: '1Gi' }
    putBound(fixture, { status: { capacity, currentVolumeAttributesClassName: 'gold' } })
    expect(fixture.problems()).toEqual([
      'attributes: claim team-a/a reports iops=1000, but net.sim^pv has 500',
      'attributes: claim team-a/a should have iops=1000 according to its statuses, but net.sim^pv has 500',
      'attributes: claim team-a/a reports the class gold, but its volume has undefined',
    ])
    putBound(fixture, { spec: { volumeAttributesClassName: 'gold' } })
    expect(fixture.problems()).toEqual([
      'attributes: claim team-a/a should have iops=1000 according to its statuses, but net.sim^pv has 500',
      'no reason: claim team-a/a requests gold, has undefined, and reports no reason',
      'needless wait: claim team-a/a could have gold, has undefined, but reports "undefined"',
    ])
  })

  it('no reason: requires a reason for a driver without a resizer only if its controllers run in-process', () => {
    for (const driverControllers of ['in-process', 'sidecars'] as const) {
      const fixture = createFixture()
      Object.assign(fixture.system.setup, { driverControllers })
      fixture.addDriverVolume('basic.sim', 'pv')
      const spec = { volumeAttributesClassName: 'gold' }
      fixture.put(
        ['volume', aVolume('pv', { phase: 'Bound', claim: 'a', driver: 'basic.sim' })],
        ['claim', aClaim('a', { phase: 'Bound', volumeName: 'pv', className: 'basic', spec })],
      )
      const text = 'no reason: claim team-a/a requests gold, has undefined, and reports no reason'
      expect(fixture.problems()).toEqual(driverControllers === 'in-process' ? [text] : [])
    }
  })

  it('not deleted: reports a cloning finalizer on a deleted claim, not on an existing one', () => {
    const fixture = createFixture()
    const finalizers = ['provisioner.storage.kubernetes.io/cloning-protection']
    fixture.addDriverVolume('net.sim', 'pv')
    putBound(fixture, { metadata: { finalizers } })
    expect(fixture.problems()).toEqual([])
    putBound(fixture, { metadata: { finalizers, deletionTimestamp: 'then' } })
    expect(fixture.problems()).toEqual([`not deleted: claim team-a/a is stuck in deletion, held by ${finalizers}`])
  })

  it('not deleted: accepts a deleted claim that a pod on a node protects, even if the pod has failed', () => {
    const fixture = createFixture()
    const finalizers = ['kubernetes.io/pvc-protection']
    fixture.addDriverVolume('net.sim', 'pv')
    putBound(fixture, { metadata: { finalizers, deletionTimestamp: 'then' } })
    expect(fixture.problems()).toEqual([`not deleted: claim team-a/a is stuck in deletion, held by ${finalizers}`])
    fixture.put(['pod', aPod('p', ['a'], { spec: { nodeName: 'n1' }, status: { phase: 'Failed' } })])
    expect(fixture.problems()).toEqual([])
  })

  it('not deleted, finalizers: reports objects that are stuck in deletion', () => {
    const fixture = createFixture()
    fixture.addDriverVolume('net.sim', 'pv')
    const deletion = { deletionTimestamp: 'then' }
    const finalizers = ['kubernetes.io/pvc-protection', INTENT]
    fixture.put(
      ['volume', aVolume('pv', { phase: 'Released', claim: 'x', metadata: deletion })],
      ['claim', aClaim('a', { volumeName: 'pv', metadata: { ...deletion, finalizers } })],
      ['pod', { ...aPod('p', []), metadata: { namespace: 'team-a', name: 'p', ...deletion } }],
      ['attributesClass', { metadata: { name: 'gold', ...deletion }, driverName: 'net.sim' }],
      ['namespace', { metadata: { name: 'team-b', ...deletion } }],
    )
    expect(fixture.problems()).toEqual([
      'not deleted: volume pv is Released with the policy Delete: ',
      'not deleted: volume pv is stuck in deletion, held by no finalizer',
      'not deleted: claim team-a/a is stuck in deletion, held by kubernetes.io/pvc-protection',
      `finalizers: claim team-a/a has a volume, but still has the finalizer ${INTENT}`,
      'no reason: claim team-a/a is being deleted without an event that states the reason',
      'not deleted: pod team-a/p is stuck in deletion on undefined, held by no finalizer',
      'not deleted: namespace team-b is still being deleted, although it is empty',
      'not deleted: attributes class gold is still being deleted, although it is unused',
    ])
  })

  it('no reason, needless wait: reports pods that state no reason or could be scheduled', () => {
    const fixture = createFixture()
    fixture.put(['node', aNode('n1')], ['pod', aPod('p', [])])
    expect(fixture.problems()).toEqual(['no reason: pod team-a/p has no node and reports no reason'])
    const conditions = [{ type: 'PodScheduled', status: 'False', message: 'no room' }]
    fixture.put(['pod', aPod('p', [], { status: { conditions } })])
    expect(fixture.problems()).toEqual(['needless wait: pod team-a/p could be placed on n1, but reports "no room"'])
    fixture.put(['node', aNode('n1', { unschedulable: true })])
    expect(fixture.problems()).toEqual([])
    fixture.put(['pod', aPod('p', [], { spec: { nodeName: 'n1' } })])
    expect(fixture.problems()).toEqual(['no reason: pod team-a/p is on n1, does not run, and reports no reason'])
    fixture.recordEvent('uid-p', 'FailedMount')
    expect(fixture.problems()).toEqual([
      'needless wait: pod team-a/p could run on n1, but reports "Warning FailedMount: because"',
    ])
  })

  it('attachments: reports unneeded and missing attachments, publications and mounts', () => {
    const fixture = createFixture()
    putBound(fixture)
    fixture.addDriverVolume('net.sim', 'pv').attachments['id-n2'] = {} as never
    fixture.mounts.get('n2')!.push({ path: '/node/pods/uid-gone/volumes/x/mount', volume: 'net.sim^pv' })
    fixture.mounts.get('n3')!.push({ path: '/node/plugins/x/globalmount', volume: 'net.sim^pv' })
    fixture.put(
      ['node', aNode('n1')],
      ['pod', aPod('p', ['a'], { spec: { nodeName: 'n1' }, status: { phase: 'Running' } })],
    )
    expect(fixture.problems()).toEqual([
      'attachments: volume pv is needed on [n1], but attached to []',
      'attachments: net.sim^pv is published on [n2], but its attachments report []',
      'attachments: pod team-a/p runs on n1 (id-n1), where net.sim^pv is not mounted',
      'attachments: /node/pods/uid-gone/volumes/x/mount is mounted on n2 for a pod that does not run there',
      'attachments: net.sim^pv is staged on n3 at /node/plugins/x/globalmount, but no pod there uses it',
    ])
  })

  it('attachments: accepts an unanswered publish of a volume being deleted while a finalizer records it', () => {
    const fixture = createFixture()
    fixture.addDriverVolume('net.sim', 'pv').attachments['id-n2'] = {} as never
    const attachment = (finalizers: string[]) => ({
      metadata: { name: 'va', finalizers },
      spec: { attacher: 'net.sim', nodeName: 'n2', source: { persistentVolumeName: 'pv' } },
      status: { attached: false },
    })
    const publishedProblem = 'attachments: net.sim^pv is published on [n2], but its attachments report []'
    const volume = (metadata: object) => aVolume('pv', { phase: 'Bound', claim: 'a', metadata })
    const deletion = { deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['kubernetes.io/pv-protection'] }
    const attachmentWithFinalizer = attachment(['external-attacher/net-sim'])
    fixture.put(['claim', aClaim('a', { phase: 'Bound', volumeName: 'pv' })])
    fixture.put(['volume', volume({})], ['attachment', attachmentWithFinalizer])
    expect(fixture.problems()).toContain(publishedProblem)
    fixture.put(['volume', volume(deletion)], ['attachment', attachmentWithFinalizer])
    expect(fixture.problems()).not.toContain(publishedProblem)
    fixture.put(['attachment', attachment([])])
    expect(fixture.problems()).toContain(publishedProblem)
  })

  it('capacity, quota: reports wrong capacity objects and uncounted quotas', () => {
    const fixture = createFixture()
    const capacity = (node: string, gi: number, name = node) =>
      [
        'capacity',
        {
          metadata: { namespace: 'default', name },
          storageClassName: 'local-wait',
          nodeTopology: { matchLabels: { 'topology.sim/node': node } },
          capacity: `${gi}Gi`,
        },
      ] as const
    fixture.put(
      ['class', aClass('local-wait', 'local.sim', 'WaitForFirstConsumer')],
      ...['n1', 'n2'].map((name) => ['node', aNode(name)] as const),
      ...['n1', 'n2'].map(
        (name) => ['csiNode', { metadata: { name }, spec: { drivers: [{ name: 'local.sim' }] } }] as const,
      ),
      capacity('n1', 20),
      capacity('n1', 3, 'manual-0'), // written by a user
      capacity('n2', 7),
      capacity('n9', 1),
      ['quota', { metadata: { namespace: 'team-a', name: 'q' }, spec: { hard: { pods: '1' } } }],
    )
    expect(fixture.problems()).toEqual([
      `capacity: capacity objects of local-wait on n2 report ${7 * GI}, but ${20 * GI} is free`,
      'capacity: there is a capacity object of local-wait on n9, which has no driver or node',
      'quota: quota team-a/q reports no usage of pods: {"spec":{"hard":{"pods":"1"}}}',
    ])
  })
})

describe('checkers of the end of a run', () => {
  it('endless retry: reports a write that is rejected repeatedly at rest', async () => {
    const retries = followRetries()
    const refuse = (code: number) => () => Promise.reject(new ApiError(code, 'Refused', 'no'))
    const client = retries.wrapClient('control-1', { create: refuse(409), patch: refuse(403) } as never)
    const writeRepeatedly = async (times: number) => {
      for (let remaining = times; remaining > 0; remaining--) {
        await client.create(persistentVolumeKind, { metadata: { name: 'pv' } } as never).catch(() => {})
        await client.patch(persistentVolumeKind, { name: 'pv' }, {} as never).catch(() => {})
      }
    }
    await writeRepeatedly(9)
    retries.start()
    await writeRepeatedly(3)
    expect(retries.problems()).toEqual([])
    await writeRepeatedly(1)
    expect(retries.problems().map(({ rule, text }) => `${rule}: ${text}`)).toEqual([
      'endless retry: control-1: create persistentvolumes pv was rejected 4 times at rest: no',
    ])
  })

  it('metrics: reports uncounted and miscounted calls and negative gauges', async () => {
    const fixture = createFixture()
    const registry = new Registry()
    fixture.registries.push({ process: 'control-1', incarnation: 1, registry })
    const metrics = createCsiMetrics(registry)
    const countCall = (code: 'OK' | 'NOT_FOUND') =>
      metrics.observeCall({ driverName: 'net.sim', method: '/csi.v1.Controller/DeleteVolume', code, seconds: 1 })
    const problemTexts = async () => (await findMetricProblems(fixture.system)).map((problem) => problem.text)
    fixture.call('control-1', 'net.sim', 'DeleteVolume', 'pv')()
    fixture.call('control-1', 'net.sim', 'DeleteVolume', 'pv') // the caller never received the response
    countCall('OK')
    expect(await problemTexts()).toEqual([])
    countCall('NOT_FOUND')
    fixture.call('control-1', 'net.sim', 'DeleteVolume', 'pv')()
    const registers = [registry]
    new Counter({ name: 'stowage_quota_differences_total', help: 'x', registers }).inc()
    new Counter({ name: 'controller_modify_volume_total', help: 'x', registers }).inc()
    new Counter({ name: 'controller_persistentvolumeclaim_provision_total', help: 'x', registers }).inc()
    new Gauge({ name: 'workqueue_depth', help: 'x', registers }).set(-1)
    expect(await problemTexts()).toEqual([
      'control-1 (incarnation 1) counted DeleteVolume OK 1 times, but received this result 2 times',
      'control-1 (incarnation 1) counted DeleteVolume NotFound 1 times, but received this result 0 times',
      'control-1 (incarnation 1) reports controller_persistentvolumeclaim_provision_total 1, but CreateVolume succeeded 0 times',
      'control-1 (incarnation 1) reports controller_modify_volume_total 1 with 0 errors, but called ControllerModifyVolume 0 times',
      'control-1 (incarnation 1) found 1 quotas with wrong usage',
      'control-1 (incarnation 1) reports workqueue_depth {} -1, which is negative',
    ])
  })

  it('metrics: reports gauges that differ from the store', async () => {
    const fixture = createFixture()
    const registry = new Registry()
    const problemTexts = async () =>
      (await findGaugeProblems(fixture.system, fixture.view)).map((problem) => problem.text)
    expect(await problemTexts()).toEqual([])
    fixture.put(['volume', aVolume('pv', { phase: 'Bound' })])
    expect(await problemTexts()).toEqual(['no process counts the 1 volumes and 0 claims'])
    fixture.registries.push(
      { process: 'control-1', incarnation: 1, registry: new Registry() },
      { process: 'control-1', incarnation: 2, registry },
    )
    const volumes = fakeVolumeCache()
    createBindingMetrics(registry).collectFrom({ claims: { subscribe: () => () => {} }, volumes: volumes.cache })
    volumes.put(aVolume('pv', { phase: 'Available' }) as never)
    expect(await problemTexts()).toEqual([
      'control-1 reports pv_collector_bound_pv_count 0, but there are 1',
      'control-1 reports pv_collector_unbound_pv_count 1, but there are 0',
    ])
    volumes.put(aVolume('pv', { phase: 'Bound' }) as never)
    expect(await problemTexts()).toEqual([])
  })
})
