// The checkers of the whole, shown the violations they are there for. A rule that never convicts proves nothing.
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
import { PRE_RESIZE_CAPACITY } from '../../volumes/names.ts'
import { GI } from '../plan/catalog.ts'
import { checkAttributes, UNDO } from './attributes.ts'
import { aClaim, aClass, aNode, aPod, aVolume, createFixture } from './checkers.fixture.ts'
import { checkDeletions } from './deletions.ts'
import { checkIntents } from './intents.ts'
import { checkLeases } from './leases.ts'
import { checkWrites } from './lost-writes.ts'
import { gaugeProblems, metricProblems } from './metrics.ts'
import { checkMounts } from './mounts.ts'
import { checkOverlaps } from './overlaps.ts'
import { checkPlacements } from './placements.ts'
import { checkQuotas } from './quotas.ts'
import { followRetries } from './retries.ts'
import { checkSizes } from './sizes.ts'
import { createCommitLog } from './watch-observer.ts'

const INTENT = 'provisioning.stowage.dev/net.sim'
const bound = (fixture: ReturnType<typeof createFixture>, more: object = {}) =>
  fixture.put(
    ['volume', aVolume('pv', { phase: 'Bound', claim: 'a' })],
    ['claim', aClaim('a', { phase: 'Bound', volumeName: 'pv', ...more })],
  )

it('SYS-14 every rule is explained in docs/explanation/simulation.md', async () => {
  const text = (path: string) => readFile(new URL(path, import.meta.url), 'utf8')
  const rules = (await text('context.ts')).matchAll(/^ {2}\| '([a-z ]+)'$/gm)
  const table = (await text('../../../docs/explanation/simulation.md')).match(/^\| rule \| when [\s\S]*?\n\n/m)![0]
  const missing = [...rules].map(([, rule]) => `\`${rule}\``).filter((rule) => !table.includes(rule))
  expect(missing).toEqual([])
})

describe('what is judged at every commit and call', () => {
  it('SYS-14 wrong deletion: a volume that is to be retained', async () => {
    const fixture = createFixture()
    const { aroundClient } = checkDeletions(fixture.context)
    aroundClient('control-1', {} as never)
    fixture.put(['volume', aVolume('pv', { policy: 'Retain' })], ['volume', aVolume('free')])
    await fixture.world.runFor(1_000)
    fixture.call('control-1', 'net.sim', 'DeleteVolume', 'free')
    fixture.call('control-1', 'local.sim', 'DeleteVolume', 'pv')
    expect(fixture.violations).toEqual([])
    fixture.call('control-1', 'net.sim', 'DeleteVolume', 'pv')
    expect(fixture.violations).toEqual(['wrong deletion: net.sim^pv is destroyed, and volume pv has the policy Retain'])
  })

  it('SYS-14 shrunk and wrong status: sizes fall, or are not there', () => {
    const fixture = createFixture()
    checkSizes(fixture.context)
    const held = fixture.held('net.sim', 'pv', 2)
    bound(fixture)
    fixture.call('control-1', 'net.sim', 'ControllerExpandVolume', 'pv', {
      capacityRange: { requiredBytes: 2n ** 31n },
    })()
    expect(fixture.violations).toEqual([
      `no intent: control-1 asks for ${2n ** 31n} bytes of net.sim^pv, and claim team-a/a says ${GI}`,
    ])
    fixture.violations.length = 0
    bound(fixture, { status: { capacity: { storage: '3Gi' } } })
    bound(fixture, { status: { capacity: { storage: '2Gi' } } })
    held.capacityBytes = GI
    fixture.call('control-1', 'net.sim', 'ControllerGetVolume', 'pv')()
    fixture.put(['volume', aVolume('pv', { claim: 'a', spec: { capacity: { storage: '500Mi' } } })])
    expect(fixture.violations.map((text) => text.replace(/\d{6,}/g, 'N'))).toEqual([
      'wrong status: claim team-a/a is said to have N, net.sim^pv has N',
      'shrunk: the capacity of claim team-a/a fell from N to N',
      'shrunk: net.sim^pv had N bytes and has N',
      'shrunk: the capacity of volume pv fell from N to N',
    ])
  })

  it('SYS-14 shrunk: less is asked for than a volume has, unless its driver denied it for good', () => {
    const fixture = createFixture()
    checkSizes(fixture.context)
    fixture.held('net.sim', 'pv', 7)
    fixture.put(['claim', aClaim('a', { volumeName: 'pv', storage: '7Gi' })], ['volume', aVolume('pv', { claim: 'a' })])
    const ask = (gi: number, outcome: string) =>
      fixture.call('control-1', 'net.sim', 'ControllerExpandVolume', 'pv', {
        capacityRange: { requiredBytes: BigInt(gi * GI) },
      })(outcome)
    ask(7, 'DEADLINE_EXCEEDED')
    ask(3, 'OK')
    expect(fixture.violations).toEqual([
      `shrunk: control-1 asks for ${3 * GI} bytes of net.sim^pv, which has ${7 * GI}`,
    ])
    fixture.violations.length = 0
    ask(7, 'OUT_OF_RANGE')
    ask(3, 'OK')
    expect(fixture.violations).toEqual([])
  })

  it('SYS-14 wrong status: the file system has not followed its device', () => {
    const fixture = createFixture()
    checkSizes(fixture.context)
    fixture.held('net.sim', 'pv', 2).onNodes['id-n1'] = {
      staged: { s: {} as never },
      published: {},
      fileSystemBytes: GI,
    }
    bound(fixture)
    expect(fixture.violations).toEqual([])
    bound(fixture, { status: { capacity: { storage: '2Gi' } } })
    expect(fixture.violations).toEqual([
      `wrong status: claim team-a/a is said to have ${2 * GI}, the file system of net.sim^pv has ${GI}`,
    ])
  })

  it('SYS-14 no intent: a volume that no claim speaks of, or none any more', async () => {
    const fixture = createFixture()
    checkIntents(fixture.context)
    fixture.put(['claim', aClaim('a', { metadata: { finalizers: [INTENT] } })])
    fixture.call('control-1', 'net.sim', 'CreateVolume', 'pvc-uid-a')
    fixture.put(['claim', aClaim('a')])
    fixture.call('control-2', 'net.sim', 'CreateVolume', 'pvc-uid-a') // it looked before
    expect(fixture.violations).toEqual([])
    await fixture.world.runFor(60_000)
    fixture.call('control-1', 'net.sim', 'CreateVolume', 'pvc-uid-a')
    fixture.call('control-1', 'net.sim', 'CreateVolume', 'pvc-uid-b')
    expect(fixture.violations).toEqual([
      'no intent: control-1 asks net.sim to make pvc-uid-a, which was let go of 60 s ago',
      'no intent: control-1 asks net.sim to make pvc-uid-b, and no claim has ever said so',
    ])
  })

  it('SYS-14 wrong status, no intent: attributes', () => {
    const fixture = createFixture()
    checkAttributes(fixture.context, fixture.classes)
    fixture.held('net.sim', 'pv').mutableParameters = { iops: '500' }
    const ask = (iops: string) =>
      fixture.call('control-1', 'net.sim', 'ControllerModifyVolume', 'pv', { mutableParameters: { iops } })
    fixture.put([
      'attributesClass',
      { metadata: { name: 'gold' }, driverName: 'net.sim', parameters: { iops: '1000' } },
    ])
    bound(fixture)
    ask('500')
    bound(fixture, { metadata: { annotations: { [UNDO]: '{"iops":"500"}' } } })
    ask('1000')
    expect(fixture.violations).toEqual([])
    bound(fixture)
    ask('1000')
    bound(fixture, { status: { capacity: { storage: '1Gi' }, currentVolumeAttributesClassName: 'gold' } })
    bound(fixture, { status: { capacity: { storage: '1Gi', throughput: '20Mi' } } })
    expect(fixture.violations).toEqual([
      'no intent: control-1 asks net.sim^pv for {"iops":"1000"}, and claim team-a/a does not say so',
      'no intent: iops of net.sim^pv is about to be 1000 in place of 500, and claim team-a/a has no way back on record',
      'wrong status: claim team-a/a is said to have iops=1000, net.sim^pv has 500',
      'wrong status: claim team-a/a has lost its class',
      'wrong status: claim team-a/a is said to have throughput=20, net.sim^pv has undefined',
    ])
  })

  it('SYS-14 quota: a claim that is not charged, in the namespace it is in', () => {
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
      'quota: in team-a quota q says persistentvolumeclaims=1, the objects add up to 2',
    ])
  })

  it('SYS-14 overlap: two at once about one volume, unless nobody waits for the first any more', () => {
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
      'overlap: ControllerModifyVolume net.sim^pv of resizer-net.sim-3 begins while ControllerModifyVolume net.sim^pv of resizer-net.sim-3 is under way',
    ])
  })

  it('SYS-14 double attach, wrong mount: nodes', () => {
    const fixture = createFixture()
    checkMounts(fixture.context)
    const held = fixture.held('net.sim', 'pv')
    bound(fixture)
    fixture.put(['node', aNode('n1')])
    const publish = (nodeId: string, mode = Mode.SINGLE_NODE_WRITER) =>
      fixture.call('control-1', 'net.sim', 'ControllerPublishVolume', 'pv', {
        nodeId,
        volumeCapability: { accessMode: { mode } },
      })
    const detach = () => fixture.call('control-1', 'net.sim', 'ControllerUnpublishVolume', 'pv', { nodeId: 'id-n1' })
    held.attachments['id-n1'] = {} as never
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
      'double attach: control-1 asks for net.sim^pv on n2, and it is on n1',
      'wrong mount: agent-n2 mounts net.sim^pv on n2, where it is not attached',
      'wrong mount: control-1 detaches net.sim^pv from n1, where /node/staged is mounted',
    ])
    fixture.put(['node', aNode('n1', { taints: [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }] })])
    detach()
    expect(fixture.violations).toHaveLength(3)
  })

  it('SYS-14 wrong mount: from a node whose object is gone, until it has been silent for six minutes', async () => {
    const fixture = createFixture()
    checkMounts(fixture.context)
    fixture.held('net.sim', 'pv')
    fixture.put(['node', aNode('n1')], ['volume', aVolume('pv')])
    fixture.mounts.get('n1')!.push({ path: '/node/staged', volume: 'net.sim^pv' })
    fixture.gone('node', 'n1')
    const detach = () => fixture.call('control-1', 'net.sim', 'ControllerUnpublishVolume', 'pv', { nodeId: 'id-n1' })()
    await fixture.world.runFor(5 * 60_000)
    detach()
    expect(fixture.violations).toEqual([
      'wrong mount: control-1 detaches net.sim^pv from n1, where /node/staged is mounted',
    ])
    await fixture.world.runFor(60_000)
    detach()
    expect(fixture.violations).toHaveLength(1)
  })

  it('SYS-14 two leaders: a lease that is taken before its holder has been silent for as long as it lasts', async () => {
    const fixture = createFixture()
    checkLeases(fixture.context)
    let revision = 0
    const writes = (holderIdentity: string) => {
      const lease = {
        metadata: { namespace: 'kube-system', name: 'x' },
        spec: { holderIdentity, leaseDurationSeconds: 60 },
      }
      const key = `${collectionPrefix(leaseKind)}kube-system/x`
      fixture.view.take([{ key, value: Buffer.from(JSON.stringify(lease)), revision: ++revision }])
    }
    writes('a')
    await fixture.world.runFor(59_000)
    writes('a')
    await fixture.world.runFor(60_000)
    writes('b')
    writes('')
    writes('c')
    expect(fixture.violations).toEqual([])
    await fixture.world.runFor(59_500)
    writes('d')
    expect(fixture.violations).toEqual([
      'two leaders: d takes the lease kube-system/x 59.5 s after c renewed it for 60 s',
    ])
  })

  it('SYS-14 wrong mount: a volume of a single pod for two of them', () => {
    const fixture = createFixture()
    checkMounts(fixture.context)
    fixture.held('basic.sim', 'pv')
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
      'wrong mount: basic.sim^pv may be used by one pod only, and is mounted for team-a/p and team-a/q',
    ])
  })

  it('SYS-14 wrong placement: where a volume is not reached, or the node takes no pods', async () => {
    const fixture = createFixture()
    checkPlacements(fixture.context)
    const required = {
      nodeSelectorTerms: [{ matchExpressions: [{ key: 'topology.sim/node', operator: 'In', values: ['n1'] }] }],
    }
    fixture.put(
      ['volume', aVolume('pv', { phase: 'Bound', claim: 'a', spec: { nodeAffinity: { required } } })],
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
    await fixture.world.runFor(200_000)
    place('wrong', 'n2', ['a', 'b'])
    expect(fixture.violations).toEqual([
      'wrong placement: pod team-a/wrong was given n2, which is cordoned',
      'wrong placement: pod team-a/wrong was given n2, from where volume pv of team-a/a is not reached',
      'wrong placement: pod team-a/wrong was given n2, and its claim team-a/b has no volume',
    ])
  })

  it('SYS-14 lost write: a server that comes back without what was seen, or never had what was acknowledged', async () => {
    const fixture = createFixture()
    const acknowledged = [{ atMs: 0, kind: 'claim', key: 'team-a/a', uid: 'uid-a', resourceVersion: '1', gone: false }]
    const writes = checkWrites(fixture.context, acknowledged as never)
    fixture.put(['claim', aClaim('a')], ['claim', aClaim('b')])
    writes.check()
    const starts = async (revision: number, ...entries: { key: string; modRevision: number }[]) => {
      fixture.serverStarts({ list: async () => ({ entries, revision }) })
      await Promise.resolve()
      await Promise.resolve()
    }
    const [a, b] = ['a', 'b'].map((name, index) => ({
      key: `core/persistentvolumeclaims/team-a/${name}`,
      modRevision: index + 1,
    }))
    await starts(2, a!, b!)
    await starts(3, a!) // a deletion that was under way
    expect(fixture.violations).toEqual([])
    await starts(2, a!)
    await starts(1, a!, b!)
    acknowledged.push({ ...acknowledged[0]!, resourceVersion: '9' })
    writes.check()
    expect(fixture.violations).toEqual([
      'lost write: core/persistentvolumeclaims/team-a/b is gone since the server started again',
      'lost write: the server is back at revision 1, and 2 was seen',
      'lost write: claim team-a/a was acknowledged at 9, and only 1 was ever seen',
    ])
  })

  it('SYS-14 watch: twice, left out, made up', () => {
    const violations: string[] = []
    const log = createCommitLog('c/', (text) => void violations.push(text))
    const commit = (name: string, revision: number) =>
      log.committed([{ key: `c/${name}`, value: Buffer.from(''), revision }])
    const at = (name: string, resourceVersion: number) =>
      ({ metadata: { name, resourceVersion: String(resourceVersion) } }) as never
    commit('a', 1)
    log.listed([at('a', 1)], 1)
    commit('a', 2)
    commit('b', 3)
    log.shown('modified', at('a', 2), 2)
    log.shown('added', at('b', 3), 3)
    log.reached(5)
    expect(violations).toEqual([])
    log.shown('added', at('b', 3), 3)
    commit('a', 6)
    commit('b', 7)
    log.shown('modified', at('b', 7), 7)
    log.shown('modified', at('b', 8), 8)
    log.listed([at('b', 7)], 9)
    expect(violations).toEqual([
      'c/b is shown at 3 after 5: twice, or out of order',
      'c/a of revision 6 was left out before 7',
      'c/b is shown as modified at 8, and no such thing was committed',
      'a list of c/ at 9 leaves out a of 6',
    ])
    log.interrupted()
    commit('a', 12)
    log.shown('modified', at('a', 11), 11) // committed, and the server died before anybody saw it
    expect(violations).toHaveLength(4)
  })
})

describe('what is judged once it is rest', () => {
  it('SYS-14 finds nothing wrong with a claim that is bound, mounted and runs', () => {
    const fixture = createFixture()
    const held = fixture.held('net.sim', 'pv')
    held.attachments['id-n1'] = {} as never
    bound(fixture)
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

  it('SYS-14 leak, missing: storage without a volume, volumes without storage, unless users or the storage did it', () => {
    const fixture = createFixture()
    fixture.held('net.sim', 'pv-1')
    fixture.held('net.sim', 'imported-1') // brought in by hand, and nobody has made a volume for it yet
    fixture.put(['volume', aVolume('empty')])
    expect(fixture.problems()).toEqual([
      'leak: net.sim^pv-1 (pv-1) leaked: no volume stands for it',
      'missing: volume empty stands for net.sim^empty, which is gone',
    ])
    fixture.held('net.sim', 'empty')
    fixture.put(['volume', aVolume('pv-1', { policy: 'Retain' })])
    fixture.gone('volume', 'pv-1') // by hand
    expect(fixture.problems()).toEqual([])
    fixture.system.drivers.get('net.sim')!.loseState()
    fixture.exemptions.update()
    expect(fixture.problems()).toEqual([])
  })

  it('SYS-14 missing: unless users kept it, or gave it away, after its deletion had been asked for', () => {
    const missing = (now: object) => {
      const fixture = createFixture()
      fixture.put(['volume', aVolume('pv', { phase: 'Released', claim: 'a' })])
      fixture.call('control-1', 'net.sim', 'DeleteVolume', 'pv')()
      fixture.put(['volume', aVolume('pv', { phase: 'Released', claim: 'a', ...now })])
      return fixture.problems().filter((text) => text.startsWith('missing'))
    }
    const text = ['missing: volume pv stands for net.sim^pv, which is gone']
    expect(missing({})).toEqual(text)
    expect(missing({ policy: 'Retain' })).toEqual([])
    expect(missing({ policy: 'Retain', phase: 'Bound' })).toEqual(text)
    expect(missing({ phase: 'Available', claim: undefined })).toEqual([])
  })

  it('SYS-14 leak: a volume that was to be deleted with its storage, or that a process and no person deleted', () => {
    const fixture = createFixture()
    fixture.held('net.sim', 'pv')
    const finalizers = ['external-provisioner.volume.kubernetes.io/finalizer']
    fixture.put(['volume', aVolume('pv', { metadata: { finalizers, deletionTimestamp: 'then' } })])
    fixture.gone('volume', 'pv')
    fixture.held('net.sim', 'other')
    fixture.put(['volume', aVolume('other', { policy: 'Retain' })])
    fixture.deletedByProcess.add('uid-other')
    fixture.gone('volume', 'other')
    expect(fixture.problems()).toEqual([
      'leak: net.sim^pv (pv) leaked: no volume stands for it',
      'leak: net.sim^other (other) leaked: no volume stands for it',
    ])
  })

  it('SYS-14 no reason, needless wait: claims', () => {
    const fixture = createFixture()
    fixture.put(['class', aClass('net-now', 'net.sim')], ['claim', aClaim('a', { storage: '99Gi' })])
    expect(fixture.problems()).toEqual(['no reason: claim team-a/a is Pending, and does not say why'])
    fixture.tells('uid-a', 'ProvisioningFailed')
    expect(fixture.problems()).toEqual([])
    fixture.put(['claim', aClaim('a')])
    expect(fixture.problems()).toEqual([
      'needless wait: claim team-a/a could be made a volume by net.sim: it says "Warning ProvisioningFailed: because"',
    ])
    fixture.held('net.sim', 'pv')
    fixture.put(['volume', aVolume('pv')], ['claim', aClaim('a', { className: 'static' })])
    expect(fixture.problems()).toEqual([
      'needless wait: claim team-a/a could have volume pv: it says "Warning ProvisioningFailed: because"',
    ])
  })

  it('SYS-14 needless wait: no class where there is a default one, unless a quota of that class is full', () => {
    const fixture = createFixture()
    fixture.tells('uid-a', 'ExceededQuota')
    const annotations = { 'storageclass.kubernetes.io/is-default-class': 'true' }
    const standard = aClass('net-now', 'net.sim')
    const { storageClassName: _, ...spec } = aClaim('a').spec
    const hard = { 'net-now.storageclass.storage.k8s.io/requests.storage': '2Gi' }
    const used = (storage: string) => ({ 'net-now.storageclass.storage.k8s.io/requests.storage': storage })
    const quota = (storage: string) =>
      [
        'quota',
        { metadata: { namespace: 'team-a', name: 'q' }, spec: { hard }, status: { hard, used: used(storage) } },
      ] as const
    fixture.put(
      ['class', { ...standard, metadata: { ...standard.metadata, annotations } }],
      ['claim', { ...aClaim('a'), spec }],
      quota('2Gi'),
    )
    expect(fixture.problems()).toEqual([])
    fixture.put(quota('1Gi'))
    expect(fixture.problems()).toEqual([
      'needless wait: claim team-a/a has no class, though there is a default one: it says "Warning ExceededQuota: because"',
    ])
  })

  it('SYS-14 size, no reason, needless wait: growth', () => {
    const fixture = createFixture()
    const held = fixture.held('net.sim', 'pv', 2)
    bound(fixture)
    expect(fixture.problems()).toEqual([
      `size: claim team-a/a is said to have ${GI}, volume pv ${GI}, and net.sim^pv has ${2 * GI}`,
    ])
    held.capacityBytes = GI
    bound(fixture, { storage: '99Gi' })
    expect(fixture.problems()).toEqual([
      `no reason: claim team-a/a asks for ${99 * GI}, has ${GI} (undefined), and does not say why`,
    ])
    fixture.tells('uid-a', 'VolumeResizeFailed')
    expect(fixture.problems()).toEqual([])
    bound(fixture, { storage: '2Gi' })
    expect(fixture.problems()).toEqual([
      `needless wait: claim team-a/a could have ${2 * GI}, has ${GI} (undefined), and says "Warning VolumeResizeFailed: because"`,
    ])
  })

  it('SYS-14 size: larger than said, unless it grew unheard for a claim that is gone', () => {
    const fixture = createFixture()
    const growFor = (claim: string) => {
      fixture.put(['volume', aVolume('pv', { phase: 'Bound', claim })])
      return fixture.call('control-1', 'net.sim', 'ControllerExpandVolume', 'pv')
    }
    fixture.held('net.sim', 'pv', 2)
    const differs = `size: claim team-a/a is said to have ${GI}, volume pv ${GI}, and net.sim^pv has ${2 * GI}`
    growFor('before')('ABORTED')
    bound(fixture)
    expect(fixture.problems()).toEqual([])
    growFor('a')('ABORTED') // its own it must not give up
    expect(fixture.problems()).toEqual([differs])
    growFor('before')('OK')
    bound(fixture)
    expect(fixture.problems()).toEqual([differs])
  })

  it('SYS-14 size: half grown, unless the claim says so and waits for a pod', () => {
    const fixture = createFixture()
    fixture.held('net.sim', 'pv', 2)
    const annotations = { [PRE_RESIZE_CAPACITY]: '1Gi' }
    const halfGrown = { phase: 'Bound', claim: 'a', metadata: { annotations }, spec: { capacity: { storage: '2Gi' } } }
    const differs = `size: claim team-a/a is said to have ${GI}, volume pv ${2 * GI}, and net.sim^pv has ${2 * GI}`
    bound(fixture)
    fixture.put(['volume', aVolume('pv', halfGrown)])
    expect(fixture.problems().sort()).toEqual([differs, 'size: volume pv is still marked as growing'])
    const conditions = [{ type: 'FileSystemResizePending', status: 'True' }]
    const status = { capacity: { storage: '1Gi' }, conditions }
    fixture.put(['claim', aClaim('a', { phase: 'Bound', volumeName: 'pv', status })])
    expect(fixture.problems()).toEqual([])
    fixture.put(['pod', aPod('p', ['a'], { spec: { nodeName: 'n1' }, status: { phase: 'Running' } })])
    expect(fixture.problems()).toContain(differs)
  })

  it('SYS-14 size: what waits for its node is what the volume says', () => {
    const fixture = createFixture()
    fixture.held('net.sim', 'pv', 2)
    const growing = (storage: string) =>
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
    growing('2Gi')
    expect(fixture.problems()).toEqual([])
    growing('1Gi')
    expect(fixture.problems()).toEqual([
      `size: claim team-a/a waits for its node, volume pv has ${GI}, and net.sim^pv ${2 * GI}`,
    ])
  })

  it('SYS-14 needless wait: growth, unless no driver can be told how the volume is used', () => {
    const fixture = createFixture()
    fixture.held('net.sim', 'pv')
    fixture.tells('uid-a', 'VolumeResizeFailed')
    bound(fixture, { storage: '2Gi' })
    const offers = (...accessModes: string[]) =>
      fixture.put(['volume', aVolume('pv', { phase: 'Bound', claim: 'a', spec: { accessModes } })])
    offers('ReadWriteOnce', 'ReadOnlyMany')
    expect(fixture.problems()).toEqual([])
    offers('ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany')
    expect(fixture.problems()).toHaveLength(1)
  })

  it('SYS-14 needless wait: the node’s part, unless the node was told that the volume is in use', () => {
    const fixture = createFixture()
    fixture.held('net.sim', 'pv', 2)
    fixture.tells('uid-a', 'FileSystemResizeRequired')
    fixture.put(['pod', aPod('p', ['a'], { spec: { nodeName: 'n1' }, status: { phase: 'Running' } })])
    const said = (message: string) => {
      const conditions = [{ type: 'NodeResizeError', status: 'True', message }]
      const growth = {
        allocatedResources: { storage: '2Gi' },
        allocatedResourceStatuses: { storage: 'NodeResizeInProgress' },
      }
      bound(fixture, { storage: '2Gi', status: { capacity: { storage: '1Gi' }, conditions, ...growth } })
      return fixture.problems().filter((text) => text.startsWith('needless wait: claim team-a/a could have'))
    }
    expect(said('rpc error: code = FailedPrecondition desc = in use')).toEqual([])
    expect(said('rpc error: code = Internal desc = no')).toHaveLength(1)
  })

  it('SYS-14 needless wait: what waits for the last pod, once there is none', () => {
    const fixture = createFixture()
    fixture.held('net.sim', 'pv')
    fixture.tells(
      'uid-a',
      'VolumeResizeFailed',
      'the driver only supports offline expansion and volume is currently in-use',
    )
    bound(fixture, { storage: '2Gi' })
    const pod = (phase: string) =>
      fixture.put(['pod', aPod('p', ['a'], { spec: { nodeName: 'n1' }, status: { phase } })])
    const isHeld = () => !fixture.problems().some((text) => text.startsWith('needless wait: claim team-a/a could have'))
    pod('Running')
    expect(isHeld()).toBe(true)
    pod('Succeeded')
    expect(isHeld()).toBe(false)
    pod('Running')
    fixture.tells('uid-a', 'VolumeResizeFailed', 'something else')
    expect(isHeld()).toBe(false)
  })

  it('SYS-14 attributes: the driver, the volume and the claim agree, and what can be had is had', () => {
    const fixture = createFixture()
    fixture.held('net.sim', 'pv').mutableParameters = { iops: '500' }
    const gold = { metadata: { name: 'gold' }, driverName: 'net.sim', parameters: { iops: '1000' } }
    fixture.put(['attributesClass', gold])
    const capacity = { storage: '1Gi' }
    bound(fixture, { status: { capacity, currentVolumeAttributesClassName: 'gold' } })
    expect(fixture.problems()).toEqual([
      'attributes: claim team-a/a is said to have iops=1000, and net.sim^pv has 500',
      'attributes: claim team-a/a has the class gold, and its volume says undefined',
    ])
    bound(fixture, { spec: { volumeAttributesClassName: 'gold' } })
    expect(fixture.problems()).toEqual([
      'no reason: claim team-a/a wants gold and has undefined, and does not say why',
      'needless wait: claim team-a/a could have gold, has undefined, and says "undefined"',
    ])
  })

  it('SYS-14 no reason: of a driver that can change nothing, only where somebody is there to say so', () => {
    for (const driverControllers of ['in-process', 'sidecars'] as const) {
      const fixture = createFixture()
      Object.assign(fixture.system.setup, { driverControllers })
      fixture.held('basic.sim', 'pv')
      const spec = { volumeAttributesClassName: 'gold' }
      fixture.put(
        ['volume', aVolume('pv', { phase: 'Bound', claim: 'a', driver: 'basic.sim' })],
        ['claim', aClaim('a', { phase: 'Bound', volumeName: 'pv', className: 'basic', spec })],
      )
      const text = 'no reason: claim team-a/a wants gold and has undefined, and does not say why'
      expect(fixture.problems()).toEqual(driverControllers === 'in-process' ? [text] : [])
    }
  })

  it('SYS-14 not gone: what was copied is let go of once it goes, and not before', () => {
    const fixture = createFixture()
    const finalizers = ['provisioner.storage.kubernetes.io/cloning-protection']
    fixture.held('net.sim', 'pv')
    bound(fixture, { metadata: { finalizers } })
    expect(fixture.problems()).toEqual([])
    bound(fixture, { metadata: { finalizers, deletionTimestamp: 'then' } })
    expect(fixture.problems()).toEqual([`not gone: claim team-a/a is stuck in its deletion, held by ${finalizers}`])
  })

  it('SYS-14 not gone, finalizers: what is stuck', () => {
    const fixture = createFixture()
    fixture.held('net.sim', 'pv')
    const going = { deletionTimestamp: 'then' }
    const finalizers = ['kubernetes.io/pvc-protection', INTENT]
    fixture.put(
      ['volume', aVolume('pv', { phase: 'Released', claim: 'x', metadata: going })],
      ['claim', aClaim('a', { volumeName: 'pv', metadata: { ...going, finalizers } })],
      ['pod', { ...aPod('p', []), metadata: { namespace: 'team-a', name: 'p', ...going } }],
      ['attributesClass', { metadata: { name: 'gold', ...going }, driverName: 'net.sim' }],
      ['namespace', { metadata: { name: 'team-b', ...going } }],
    )
    expect(fixture.problems()).toEqual([
      'not deleted: volume pv is Released with the policy Delete: ',
      'not deleted: volume pv is stuck in its deletion, held by nobody',
      'not deleted: claim team-a/a is stuck in its deletion, held by kubernetes.io/pvc-protection',
      `finalizers: claim team-a/a has a volume, and keeps ${INTENT}`,
      'no reason: claim team-a/a is going, and does not say why it is not gone',
      'not deleted: pod team-a/p is stuck in its deletion on undefined, held by nobody',
      'not deleted: namespace team-b is going, and nothing is left in it',
      'not deleted: attributes class gold is going, and nobody uses it',
    ])
  })

  it('SYS-14 no reason, needless wait: pods', () => {
    const fixture = createFixture()
    fixture.put(['node', aNode('n1')], ['pod', aPod('p', [])])
    expect(fixture.problems()).toEqual(['no reason: pod team-a/p has no node, and does not say why'])
    const conditions = [{ type: 'PodScheduled', status: 'False', message: 'no room' }]
    fixture.put(['pod', aPod('p', [], { status: { conditions } })])
    expect(fixture.problems()).toEqual(['needless wait: pod team-a/p could be placed on n1, and says "no room"'])
    fixture.put(['node', aNode('n1', { unschedulable: true })])
    expect(fixture.problems()).toEqual([])
    fixture.put(['pod', aPod('p', [], { spec: { nodeName: 'n1' } })])
    expect(fixture.problems()).toEqual(['no reason: pod team-a/p is on n1, does not run, and does not say why'])
    fixture.tells('uid-p', 'FailedMount')
    expect(fixture.problems()).toEqual([
      'needless wait: pod team-a/p could run on n1, and says "Warning FailedMount: because"',
    ])
  })

  it('SYS-14 attached: attachments, publications and mounts that nobody needs, and those that are missing', () => {
    const fixture = createFixture()
    bound(fixture)
    fixture.held('net.sim', 'pv').attachments['id-n2'] = {} as never
    fixture.mounts.get('n2')!.push({ path: '/node/pods/uid-gone/volumes/x/mount', volume: 'net.sim^pv' })
    fixture.mounts.get('n3')!.push({ path: '/node/plugins/x/globalmount', volume: 'net.sim^pv' })
    fixture.put(
      ['node', aNode('n1')],
      ['pod', aPod('p', ['a'], { spec: { nodeName: 'n1' }, status: { phase: 'Running' } })],
    )
    expect(fixture.problems()).toEqual([
      'attachments: volume pv is needed on [n1], and attached to []',
      'attachments: net.sim^pv is published on [n2], attachments say []',
      'attachments: pod team-a/p runs on n1 (id-n1), where net.sim^pv is not mounted',
      'attachments: /node/pods/uid-gone/volumes/x/mount is mounted on n2 for a pod that is not there',
      'attachments: net.sim^pv is staged on n3 at /node/plugins/x/globalmount, and no pod there uses it',
    ])
  })

  it('SYS-14 attached: publishing that nobody heard the end of, unless the volume is going and is held in mind', () => {
    const fixture = createFixture()
    fixture.held('net.sim', 'pv').attachments['id-n2'] = {} as never
    const attachment = (finalizers: string[]) => ({
      metadata: { name: 'va', finalizers },
      spec: { attacher: 'net.sim', nodeName: 'n2', source: { persistentVolumeName: 'pv' } },
      status: { attached: false },
    })
    const published = 'attachments: net.sim^pv is published on [n2], attachments say []'
    const volume = (metadata: object) => aVolume('pv', { phase: 'Bound', claim: 'a', metadata })
    const going = { deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['kubernetes.io/pv-protection'] }
    const held = attachment(['external-attacher/net-sim'])
    fixture.put(['claim', aClaim('a', { phase: 'Bound', volumeName: 'pv' })])
    fixture.put(['volume', volume({})], ['attachment', held])
    expect(fixture.problems()).toContain(published)
    fixture.put(['volume', volume(going)], ['attachment', held])
    expect(fixture.problems()).not.toContain(published)
    fixture.put(['attachment', attachment([])])
    expect(fixture.problems()).toContain(published)
  })

  it('SYS-14 capacity, quota: reports that are not true, and quotas that were never counted', () => {
    const fixture = createFixture()
    const capacity = (node: string, gi: number) =>
      [
        'capacity',
        {
          metadata: { namespace: 'default', name: node },
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
      capacity('n2', 7),
      capacity('n9', 1),
      ['quota', { metadata: { namespace: 'team-a', name: 'q' }, spec: { hard: { pods: '1' } } }],
    )
    expect(fixture.problems()).toEqual([
      `capacity: the reports of local-wait on n2 say ${7 * GI}, and ${20 * GI} is free`,
      'capacity: there is a report of local-wait on n9, where nobody is',
      'quota: quota team-a/q does not say what is used of pods: {"spec":{"hard":{"pods":"1"}}}',
    ])
  })
})

describe('what is judged at the very end', () => {
  it('SYS-14 endless retry: the same write, refused again and again though all is rest', async () => {
    const retries = followRetries()
    const refuse = (code: number) => () => Promise.reject(new ApiError(code, 'Refused', 'no'))
    const client = retries.aroundClient('control-1', { create: refuse(409), patch: refuse(403) } as never)
    const tries = async (times: number) => {
      for (let left = times; left > 0; left--) {
        await client.create(persistentVolumeKind, { metadata: { name: 'pv' } } as never).catch(() => {})
        await client.patch(persistentVolumeKind, { name: 'pv' }, {} as never).catch(() => {})
      }
    }
    await tries(9)
    retries.start()
    await tries(3)
    expect(retries.problems()).toEqual([])
    await tries(1)
    expect(retries.problems().map(({ rule, text }) => `${rule}: ${text}`)).toEqual([
      'endless retry: control-1: create persistentvolumes pv was refused 4 times though all is rest: no',
    ])
  })

  it('SYS-14 metrics: calls that were not counted, or counted and not made, and gauges below zero', async () => {
    const fixture = createFixture()
    const registry = new Registry()
    fixture.registries.push({ process: 'control-1', incarnation: 1, registry })
    const metrics = createCsiMetrics(registry)
    const count = (code: 'OK' | 'NOT_FOUND') =>
      metrics.called({ driverName: 'net.sim', method: '/csi.v1.Controller/DeleteVolume', code, seconds: 1 })
    const text = async () => (await metricProblems(fixture.system)).map((problem) => problem.text)
    fixture.call('control-1', 'net.sim', 'DeleteVolume', 'pv')()
    fixture.call('control-1', 'net.sim', 'DeleteVolume', 'pv') // nobody heard the end of it
    count('OK')
    expect(await text()).toEqual([])
    count('NOT_FOUND')
    fixture.call('control-1', 'net.sim', 'DeleteVolume', 'pv')()
    const registers = [registry]
    new Counter({ name: 'stowage_quota_differences_total', help: 'x', registers }).inc()
    new Counter({ name: 'controller_modify_volume_total', help: 'x', registers }).inc()
    new Counter({ name: 'controller_persistentvolumeclaim_provision_total', help: 'x', registers }).inc()
    new Gauge({ name: 'workqueue_depth', help: 'x', registers }).set(-1)
    expect(await text()).toEqual([
      'control-1 in its incarnation 1 counted 1 times DeleteVolume OK, and heard it 2 times',
      'control-1 in its incarnation 1 counted 1 times DeleteVolume NotFound, and heard it 0 times',
      'control-1 in its incarnation 1 says controller_persistentvolumeclaim_provision_total 1, and heard CreateVolume succeed 0 times',
      'control-1 in its incarnation 1 says controller_modify_volume_total 1 with 0 errors, and called ControllerModifyVolume 0 times',
      'control-1 in its incarnation 1 found 1 quotas that do not say what is used',
      'control-1 in its incarnation 1 says workqueue_depth {} -1, which is less than nothing',
    ])
  })

  it('SYS-14 metrics: whoever counts claims and volumes in the end counts those that are there', async () => {
    const fixture = createFixture()
    const registry = new Registry()
    const text = async () => (await gaugeProblems(fixture.system, fixture.view)).map((problem) => problem.text)
    expect(await text()).toEqual([])
    fixture.put(['volume', aVolume('pv', { phase: 'Bound' })])
    expect(await text()).toEqual(['nobody counts the 1 volumes and 0 claims that there are'])
    fixture.registries.push(
      { process: 'control-1', incarnation: 1, registry: new Registry() },
      { process: 'control-1', incarnation: 2, registry },
    )
    const volumes = [{ metadata: { name: 'pv' }, spec: {}, status: { phase: 'Available' } }]
    createBindingMetrics(registry).count({ claims: { list: () => [] }, volumes: { list: () => volumes as never } })
    expect(await text()).toEqual([
      'control-1 says pv_collector_bound_pv_count 0, and there are 1',
      'control-1 says pv_collector_unbound_pv_count 1, and there are 0',
    ])
    volumes[0]!.status.phase = 'Bound'
    expect(await text()).toEqual([])
  })
})
