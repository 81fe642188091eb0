// The checkers of the whole, shown the crimes they are there for. A rule that never convicts proves nothing.
import { readFile } from 'node:fs/promises'
import { Counter, Gauge, Registry } from 'prom-client'
import { describe, expect, it } from 'vitest'
import { leaseKind } from '../../../api/kinds/lease/lease.ts'
import { persistentVolumeKind } from '../../../api/kinds/volume/volume.ts'
import { ApiError } from '../../../api/status-error.ts'
import { collectionPrefix } from '../../../apiserver/index.ts'
import { createBindingMetrics } from '../../../controllers/binding/index.ts'
import { VolumeCapability_AccessMode_Mode as Mode } from '../../../csi/gen/csi_pb.js'
import { createCsiMetrics } from '../../../csi/index.ts'
import { PRE_RESIZE_CAPACITY } from '../../../volumes/names.ts'
import { UNDO } from '../../checkers/modifying.ts'
import { GI } from '../universe.ts'
import { judgeAttributes } from './attributes.ts'
import { aClaim, aClass, aNode, aPod, aTrial, aVolume } from './checkers.fixture.ts'
import { judgeDeletions } from './deletions.ts'
import { judgeIntents } from './intents.ts'
import { judgeLeases } from './leases.ts'
import { judgeWrites } from './lost-writes.ts'
import { gaugeProblems, metricProblems } from './metrics.ts'
import { judgeMounts } from './mounts.ts'
import { createCommitLog } from './observer.ts'
import { judgeOverlaps } from './overlaps.ts'
import { judgePlacements } from './placements.ts'
import { judgeQuotas } from './quota.ts'
import { followRetries } from './retries.ts'
import { judgeSizes } from './sizes.ts'

const INTENT = 'provisioning.stowage.dev/net.sim'
const bound = (trial: ReturnType<typeof aTrial>, more: object = {}) =>
  trial.put(
    ['volume', aVolume('pv', { phase: 'Bound', claim: 'a' })],
    ['claim', aClaim('a', { phase: 'Bound', volumeName: 'pv', ...more })],
  )

it('SYS-14 every rule is explained in docs/explanation/simulation.md', async () => {
  const text = (path: string) => readFile(new URL(path, import.meta.url), 'utf8')
  const rules = (await text('court.ts')).matchAll(/^ {2}\| '([a-z ]+)'$/gm)
  const table = (await text('../../../../docs/explanation/simulation.md')).match(/^\| rule \| when [\s\S]*?\n\n/m)![0]
  const missing = [...rules].map(([, rule]) => `\`${rule}\``).filter((rule) => !table.includes(rule))
  expect(missing).toEqual([])
})

describe('what is judged at every commit and call', () => {
  it('SYS-14 deleted wrongly: a volume that is to be retained', async () => {
    const trial = aTrial()
    const { aroundClient } = judgeDeletions(trial.court)
    aroundClient('control-1', {} as never)
    trial.put(['volume', aVolume('pv', { policy: 'Retain' })], ['volume', aVolume('free')])
    await trial.world.runFor(1_000)
    trial.call('control-1', 'net.sim', 'DeleteVolume', 'free')
    trial.call('control-1', 'local.sim', 'DeleteVolume', 'pv')
    expect(trial.crimes).toEqual([])
    trial.call('control-1', 'net.sim', 'DeleteVolume', 'pv')
    expect(trial.crimes).toEqual(['deleted wrongly: net.sim^pv is destroyed, and volume pv has the policy Retain'])
  })

  it('SYS-14 shrunk and told wrongly: sizes fall, or are not there', () => {
    const trial = aTrial()
    judgeSizes(trial.court)
    const held = trial.held('net.sim', 'pv', 2)
    bound(trial)
    trial.call('control-1', 'net.sim', 'ControllerExpandVolume', 'pv', {
      capacityRange: { requiredBytes: 2n ** 31n },
    })()
    expect(trial.crimes).toEqual([
      `asked without intent: control-1 asks for ${2n ** 31n} bytes of net.sim^pv, and claim team-a/a says ${GI}`,
    ])
    trial.crimes.length = 0
    bound(trial, { status: { capacity: { storage: '3Gi' } } })
    bound(trial, { status: { capacity: { storage: '2Gi' } } })
    held.capacityBytes = GI
    trial.call('control-1', 'net.sim', 'ControllerGetVolume', 'pv')()
    trial.put(['volume', aVolume('pv', { claim: 'a', spec: { capacity: { storage: '500Mi' } } })])
    expect(trial.crimes.map((crime) => crime.replace(/\d{6,}/g, 'N'))).toEqual([
      'told wrongly: claim team-a/a is said to have N, net.sim^pv has N',
      'shrunk: the capacity of claim team-a/a fell from N to N',
      'shrunk: net.sim^pv had N bytes and has N',
      'shrunk: the capacity of volume pv fell from N to N',
    ])
  })

  it('SYS-14 shrunk: less is asked for than a volume has, unless its driver denied it for good', () => {
    const trial = aTrial()
    judgeSizes(trial.court)
    trial.held('net.sim', 'pv', 7)
    trial.put(['claim', aClaim('a', { volumeName: 'pv', storage: '7Gi' })], ['volume', aVolume('pv', { claim: 'a' })])
    const ask = (gi: number, outcome: string) =>
      trial.call('control-1', 'net.sim', 'ControllerExpandVolume', 'pv', {
        capacityRange: { requiredBytes: BigInt(gi * GI) },
      })(outcome)
    ask(7, 'DEADLINE_EXCEEDED')
    ask(3, 'OK')
    expect(trial.crimes).toEqual([`shrunk: control-1 asks for ${3 * GI} bytes of net.sim^pv, which has ${7 * GI}`])
    trial.crimes.length = 0
    ask(7, 'OUT_OF_RANGE')
    ask(3, 'OK')
    expect(trial.crimes).toEqual([])
  })

  it('SYS-14 told wrongly: the file system has not followed its device', () => {
    const trial = aTrial()
    judgeSizes(trial.court)
    trial.held('net.sim', 'pv', 2).onNodes['id-n1'] = { staged: { s: {} as never }, published: {}, fileSystemBytes: GI }
    bound(trial)
    expect(trial.crimes).toEqual([])
    bound(trial, { status: { capacity: { storage: '2Gi' } } })
    expect(trial.crimes).toEqual([
      `told wrongly: claim team-a/a is said to have ${2 * GI}, the file system of net.sim^pv has ${GI}`,
    ])
  })

  it('SYS-14 asked without intent: a volume that no claim speaks of, or none any more', async () => {
    const trial = aTrial()
    judgeIntents(trial.court)
    trial.put(['claim', aClaim('a', { metadata: { finalizers: [INTENT] } })])
    trial.call('control-1', 'net.sim', 'CreateVolume', 'pvc-uid-a')
    trial.put(['claim', aClaim('a')])
    trial.call('control-2', 'net.sim', 'CreateVolume', 'pvc-uid-a') // it looked before
    expect(trial.crimes).toEqual([])
    await trial.world.runFor(60_000)
    trial.call('control-1', 'net.sim', 'CreateVolume', 'pvc-uid-a')
    trial.call('control-1', 'net.sim', 'CreateVolume', 'pvc-uid-b')
    expect(trial.crimes).toEqual([
      'asked without intent: control-1 asks net.sim to make pvc-uid-a, which was let go of 60 s ago',
      'asked without intent: control-1 asks net.sim to make pvc-uid-b, and no claim has ever said so',
    ])
  })

  it('SYS-14 told wrongly, asked without intent: attributes', () => {
    const trial = aTrial()
    judgeAttributes(trial.court, trial.classes)
    trial.held('net.sim', 'pv').mutableParameters = { iops: '500' }
    const ask = (iops: string) =>
      trial.call('control-1', 'net.sim', 'ControllerModifyVolume', 'pv', { mutableParameters: { iops } })
    trial.put(['attributesClass', { metadata: { name: 'gold' }, driverName: 'net.sim', parameters: { iops: '1000' } }])
    bound(trial)
    ask('500')
    bound(trial, { metadata: { annotations: { [UNDO]: '{"iops":"500"}' } } })
    ask('1000')
    expect(trial.crimes).toEqual([])
    bound(trial)
    ask('1000')
    bound(trial, { status: { capacity: { storage: '1Gi' }, currentVolumeAttributesClassName: 'gold' } })
    bound(trial, { status: { capacity: { storage: '1Gi', throughput: '20Mi' } } })
    expect(trial.crimes).toEqual([
      'asked without intent: control-1 asks net.sim^pv for {"iops":"1000"}, and claim team-a/a does not say so',
      'asked without intent: iops of net.sim^pv is about to be 1000 in place of 500, and claim team-a/a has no way back on record',
      'told wrongly: claim team-a/a is said to have iops=1000, net.sim^pv has 500',
      'told wrongly: claim team-a/a has lost its class',
      'told wrongly: claim team-a/a is said to have throughput=20, net.sim^pv has undefined',
    ])
  })

  it('SYS-14 quota: a claim that is not charged, in the namespace it is in', () => {
    const trial = aTrial()
    judgeQuotas(trial.court)
    const hard = { persistentvolumeclaims: '5', 'limits.throughput': '100Mi', 'requests.cpu': '2', 'count/pods': '9' }
    const quota = (used: object) =>
      ['quota', { metadata: { namespace: 'team-a', name: 'q' }, spec: { hard }, status: { hard, used } }] as const
    const containers = [{ name: 'main', resources: { requests: { cpu: '300m' } } }]
    trial.put(
      ['claim', aClaim('a', { spec: { resources: { requests: { throughput: '20Mi' } } } })],
      ['pod', aPod('p', [], { spec: { containers } })],
      quota({ persistentvolumeclaims: '1', 'limits.throughput': '20Mi', 'requests.cpu': '300m', 'count/pods': '1' }),
    )
    trial.put(['claim', { ...aClaim('b'), metadata: { namespace: 'team-b', name: 'b' } }])
    expect(trial.crimes).toEqual([])
    trial.put(['claim', aClaim('b')])
    expect(trial.crimes).toEqual(['quota: in team-a quota q says persistentvolumeclaims=1, the objects add up to 2'])
  })

  it('SYS-14 overlap: two at once about one volume, unless nobody waits for the first any more', () => {
    const trial = aTrial()
    judgeOverlaps(trial.court)
    const modify = (process: string) => trial.call(process, 'net.sim', 'ControllerModifyVolume', 'pv')
    modify('control-1')()
    const end = modify('control-1')
    trial.call('control-1', 'net.sim', 'ControllerExpandVolume', 'other')
    trial.call('control-1', 'net.sim', 'ControllerGetVolume', 'pv')
    end()
    modify('resizer-net.sim-1')
    trial.call('attacher-net.sim-1', 'net.sim', 'ControllerPublishVolume', 'pv')()
    trial.processes.get('resizer-net.sim-1')!.isFrozen = true
    modify('resizer-net.sim-2')
    trial.processes.get('resizer-net.sim-1')!.alive = false
    trial.processes.get('resizer-net.sim-2')!.alive = false
    modify('resizer-net.sim-3')
    expect(trial.crimes).toEqual([])
    modify('resizer-net.sim-3')
    expect(trial.crimes).toEqual([
      'overlap: ControllerModifyVolume net.sim^pv of resizer-net.sim-3 begins while ControllerModifyVolume net.sim^pv of resizer-net.sim-3 is under way',
    ])
  })

  it('SYS-14 published twice, mounted wrongly: nodes', () => {
    const trial = aTrial()
    judgeMounts(trial.court)
    const held = trial.held('net.sim', 'pv')
    bound(trial)
    trial.put(['node', aNode('n1')])
    const publish = (nodeId: string, mode = Mode.SINGLE_NODE_WRITER) =>
      trial.call('control-1', 'net.sim', 'ControllerPublishVolume', 'pv', {
        nodeId,
        volumeCapability: { accessMode: { mode } },
      })
    const detach = () => trial.call('control-1', 'net.sim', 'ControllerUnpublishVolume', 'pv', { nodeId: 'id-n1' })
    held.attachments['id-n1'] = {} as never
    publish('id-n1')
    publish('id-n2', Mode.MULTI_NODE_MULTI_WRITER)
    trial.call('agent-n1', 'net.sim', 'NodeStageVolume', 'pv')
    detach()
    expect(trial.crimes).toEqual([])
    publish('id-n2')
    trial.call('agent-n2', 'net.sim', 'NodeStageVolume', 'pv')
    trial.mounts.get('n1')!.push({ path: '/node/staged', volume: 'net.sim^pv' })
    detach()
    expect(trial.crimes).toEqual([
      'published twice: control-1 asks for net.sim^pv on n2, and it is on n1',
      'mounted wrongly: agent-n2 mounts net.sim^pv on n2, where it is not attached',
      'mounted wrongly: control-1 detaches net.sim^pv from n1, where /node/staged is mounted',
    ])
    trial.put(['node', aNode('n1', { taints: [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }] })])
    detach()
    expect(trial.crimes).toHaveLength(3)
  })

  it('SYS-14 mounted wrongly: from a node whose object is gone, until it has been silent for six minutes', async () => {
    const trial = aTrial()
    judgeMounts(trial.court)
    trial.held('net.sim', 'pv')
    trial.put(['node', aNode('n1')], ['volume', aVolume('pv')])
    trial.mounts.get('n1')!.push({ path: '/node/staged', volume: 'net.sim^pv' })
    trial.gone('node', 'n1')
    const detach = () => trial.call('control-1', 'net.sim', 'ControllerUnpublishVolume', 'pv', { nodeId: 'id-n1' })()
    await trial.world.runFor(5 * 60_000)
    detach()
    expect(trial.crimes).toEqual([
      'mounted wrongly: control-1 detaches net.sim^pv from n1, where /node/staged is mounted',
    ])
    await trial.world.runFor(60_000)
    detach()
    expect(trial.crimes).toHaveLength(1)
  })

  it('SYS-14 two leaders: a lease that is taken before its holder has been silent for as long as it lasts', async () => {
    const trial = aTrial()
    judgeLeases(trial.court)
    let revision = 0
    const writes = (holderIdentity: string) => {
      const lease = {
        metadata: { namespace: 'kube-system', name: 'x' },
        spec: { holderIdentity, leaseDurationSeconds: 60 },
      }
      const key = `${collectionPrefix(leaseKind)}kube-system/x`
      trial.view.take([{ key, value: Buffer.from(JSON.stringify(lease)), revision: ++revision }])
    }
    writes('a')
    await trial.world.runFor(59_000)
    writes('a')
    await trial.world.runFor(60_000)
    writes('b')
    writes('')
    writes('c')
    expect(trial.crimes).toEqual([])
    await trial.world.runFor(59_500)
    writes('d')
    expect(trial.crimes).toEqual(['two leaders: d takes the lease kube-system/x 59.5 s after c renewed it for 60 s'])
  })

  it('SYS-14 mounted wrongly: a volume of a single pod for two of them', () => {
    const trial = aTrial()
    judgeMounts(trial.court)
    trial.held('basic.sim', 'pv')
    trial.put(
      ['volume', aVolume('pv', { phase: 'Bound', claim: 'a', driver: 'basic.sim' })],
      ['claim', aClaim('a', { phase: 'Bound', volumeName: 'pv', spec: { accessModes: ['ReadWriteOncePod'] } })],
      ['pod', aPod('p', ['a'])],
      ['pod', aPod('q', ['a'])],
    )
    const mount = (uid: string) => {
      trial.mounts.get('n1')!.push({ path: `/node/pods/${uid}/volumes/x/mount`, volume: 'basic.sim^pv' })
      trial.call('agent-n1', 'basic.sim', 'NodePublishVolume', 'pv')()
    }
    mount('uid-p')
    expect(trial.crimes).toEqual([])
    mount('uid-q')
    expect(trial.crimes).toEqual([
      'mounted wrongly: basic.sim^pv may be used by one pod only, and is mounted for team-a/p and team-a/q',
    ])
  })

  it('SYS-14 placed wrongly: where a volume is not reached, or the node takes no pods', async () => {
    const trial = aTrial()
    judgePlacements(trial.court)
    const required = {
      nodeSelectorTerms: [{ matchExpressions: [{ key: 'topology.sim/node', operator: 'In', values: ['n1'] }] }],
    }
    trial.put(
      ['volume', aVolume('pv', { phase: 'Bound', claim: 'a', spec: { nodeAffinity: { required } } })],
      ['claim', aClaim('a', { phase: 'Bound', volumeName: 'pv' })],
      ['claim', aClaim('b')],
      ['node', aNode('n1')],
      ['node', aNode('n2', { unschedulable: true })],
    )
    const place = (name: string, nodeName: string, claims: readonly string[]) => {
      trial.put(['pod', aPod(name, claims)])
      trial.put(['pod', aPod(name, claims, { spec: { nodeName } })])
    }
    place('right', 'n1', ['a'])
    place('early', 'n2', [])
    expect(trial.crimes).toEqual([])
    await trial.world.runFor(200_000)
    place('wrong', 'n2', ['a', 'b'])
    expect(trial.crimes).toEqual([
      'placed wrongly: pod team-a/wrong was given n2, which is cordoned',
      'placed wrongly: pod team-a/wrong was given n2, from where volume pv of team-a/a is not reached',
      'placed wrongly: pod team-a/wrong was given n2, and its claim team-a/b has no volume',
    ])
  })

  it('SYS-14 lost write: a server that comes back without what was seen, or never had what was acknowledged', async () => {
    const trial = aTrial()
    const acknowledged = [{ atMs: 0, kind: 'claim', key: 'team-a/a', uid: 'uid-a', resourceVersion: '1', gone: false }]
    const writes = judgeWrites(trial.court, acknowledged as never)
    trial.put(['claim', aClaim('a')], ['claim', aClaim('b')])
    writes.look()
    const starts = async (revision: number, ...entries: { key: string; modRevision: number }[]) => {
      trial.serverStarts({ list: async () => ({ entries, revision }) })
      await Promise.resolve()
      await Promise.resolve()
    }
    const [a, b] = ['a', 'b'].map((name, index) => ({
      key: `core/persistentvolumeclaims/team-a/${name}`,
      modRevision: index + 1,
    }))
    await starts(2, a!, b!)
    await starts(3, a!) // a deletion that was under way
    expect(trial.crimes).toEqual([])
    await starts(2, a!)
    await starts(1, a!, b!)
    acknowledged.push({ ...acknowledged[0]!, resourceVersion: '9' })
    writes.look()
    expect(trial.crimes).toEqual([
      'lost write: core/persistentvolumeclaims/team-a/b is gone since the server started again',
      'lost write: the server is back at revision 1, and 2 was seen',
      'lost write: claim team-a/a was acknowledged at 9, and only 1 was ever seen',
    ])
  })

  it('SYS-14 watch: twice, left out, made up', () => {
    const crimes: string[] = []
    const log = createCommitLog('c/', (crime) => void crimes.push(crime))
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
    expect(crimes).toEqual([])
    log.shown('added', at('b', 3), 3)
    commit('a', 6)
    commit('b', 7)
    log.shown('modified', at('b', 7), 7)
    log.shown('modified', at('b', 8), 8)
    log.listed([at('b', 7)], 9)
    expect(crimes).toEqual([
      'c/b is shown at 3 after 5: twice, or out of order',
      'c/a of revision 6 was left out before 7',
      'c/b is shown as modified at 8, and no such thing was committed',
      'a list of c/ at 9 leaves out a of 6',
    ])
    log.interrupted()
    commit('a', 12)
    log.shown('modified', at('a', 11), 11) // committed, and the server died before anybody saw it
    expect(crimes).toHaveLength(4)
  })
})

describe('what is judged once it is quiet', () => {
  it('SYS-14 finds nothing wrong with a claim that is bound, mounted and runs', () => {
    const trial = aTrial()
    const held = trial.held('net.sim', 'pv')
    held.attachments['id-n1'] = {} as never
    bound(trial)
    trial.put(
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
    trial.mounts.get('n1')!.push({ path: '/node/pods/uid-p/volumes/x/mount', volume: 'net.sim^pv' })
    expect(trial.problems()).toEqual([])
  })

  it('SYS-14 leak, missing: storage without a volume, volumes without storage, unless people or the storage did it', () => {
    const trial = aTrial()
    trial.held('net.sim', 'pv-1')
    trial.held('net.sim', 'hand-1') // brought in by hand, and nobody has made a volume for it yet
    trial.put(['volume', aVolume('empty')])
    expect(trial.problems()).toEqual([
      'leak: net.sim^pv-1 (pv-1) leaked: no volume stands for it',
      'missing: volume empty stands for net.sim^empty, which is gone',
    ])
    trial.held('net.sim', 'empty')
    trial.put(['volume', aVolume('pv-1', { policy: 'Retain' })])
    trial.gone('volume', 'pv-1') // by hand
    expect(trial.problems()).toEqual([])
    trial.stage.drivers.get('net.sim')!.loseState()
    trial.past.look()
    expect(trial.problems()).toEqual([])
  })

  it('SYS-14 missing: unless people kept it, or gave it away, after its deletion had been asked for', () => {
    const missing = (now: object) => {
      const trial = aTrial()
      trial.put(['volume', aVolume('pv', { phase: 'Released', claim: 'a' })])
      trial.call('control-1', 'net.sim', 'DeleteVolume', 'pv')()
      trial.put(['volume', aVolume('pv', { phase: 'Released', claim: 'a', ...now })])
      return trial.problems().filter((text) => text.startsWith('missing'))
    }
    const crime = ['missing: volume pv stands for net.sim^pv, which is gone']
    expect(missing({})).toEqual(crime)
    expect(missing({ policy: 'Retain' })).toEqual([])
    expect(missing({ policy: 'Retain', phase: 'Bound' })).toEqual(crime)
    expect(missing({ phase: 'Available', claim: undefined })).toEqual([])
  })

  it('SYS-14 leak: a volume that was to be deleted with its storage, or that a process and no person deleted', () => {
    const trial = aTrial()
    trial.held('net.sim', 'pv')
    const finalizers = ['external-provisioner.volume.kubernetes.io/finalizer']
    trial.put(['volume', aVolume('pv', { metadata: { finalizers, deletionTimestamp: 'then' } })])
    trial.gone('volume', 'pv')
    trial.held('net.sim', 'other')
    trial.put(['volume', aVolume('other', { policy: 'Retain' })])
    trial.deletedByProcess.add('uid-other')
    trial.gone('volume', 'other')
    expect(trial.problems()).toEqual([
      'leak: net.sim^pv (pv) leaked: no volume stands for it',
      'leak: net.sim^other (other) leaked: no volume stands for it',
    ])
  })

  it('SYS-14 says not why, could go on: claims', () => {
    const trial = aTrial()
    trial.put(['class', aClass('net-now', 'net.sim')], ['claim', aClaim('a', { storage: '99Gi' })])
    expect(trial.problems()).toEqual(['says not why: claim team-a/a is Pending, and does not say why'])
    trial.tells('uid-a', 'ProvisioningFailed')
    expect(trial.problems()).toEqual([])
    trial.put(['claim', aClaim('a')])
    expect(trial.problems()).toEqual([
      'could go on: claim team-a/a could be made a volume by net.sim: it says "Warning ProvisioningFailed: because"',
    ])
    trial.held('net.sim', 'pv')
    trial.put(['volume', aVolume('pv')], ['claim', aClaim('a', { className: 'shelf' })])
    expect(trial.problems()).toEqual([
      'could go on: claim team-a/a could have volume pv: it says "Warning ProvisioningFailed: because"',
    ])
  })

  it('SYS-14 could go on: no class where there is a default one, unless a quota of that class is full', () => {
    const trial = aTrial()
    trial.tells('uid-a', 'ExceededQuota')
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
    trial.put(
      ['class', { ...standard, metadata: { ...standard.metadata, annotations } }],
      ['claim', { ...aClaim('a'), spec }],
      quota('2Gi'),
    )
    expect(trial.problems()).toEqual([])
    trial.put(quota('1Gi'))
    expect(trial.problems()).toEqual([
      'could go on: claim team-a/a has no class, though there is a default one: it says "Warning ExceededQuota: because"',
    ])
  })

  it('SYS-14 size, says not why, could go on: growth', () => {
    const trial = aTrial()
    const held = trial.held('net.sim', 'pv', 2)
    bound(trial)
    expect(trial.problems()).toEqual([
      `size: claim team-a/a is said to have ${GI}, volume pv ${GI}, and net.sim^pv has ${2 * GI}`,
    ])
    held.capacityBytes = GI
    bound(trial, { storage: '99Gi' })
    expect(trial.problems()).toEqual([
      `says not why: claim team-a/a asks for ${99 * GI}, has ${GI} (undefined), and does not say why`,
    ])
    trial.tells('uid-a', 'VolumeResizeFailed')
    expect(trial.problems()).toEqual([])
    bound(trial, { storage: '2Gi' })
    expect(trial.problems()).toEqual([
      `could go on: claim team-a/a could have ${2 * GI}, has ${GI} (undefined), and says "Warning VolumeResizeFailed: because"`,
    ])
  })

  it('SYS-14 size: larger than said, unless it grew unheard for a claim that is gone', () => {
    const trial = aTrial()
    const growFor = (claim: string) => {
      trial.put(['volume', aVolume('pv', { phase: 'Bound', claim })])
      return trial.call('control-1', 'net.sim', 'ControllerExpandVolume', 'pv')
    }
    trial.held('net.sim', 'pv', 2)
    const differs = `size: claim team-a/a is said to have ${GI}, volume pv ${GI}, and net.sim^pv has ${2 * GI}`
    growFor('before')('ABORTED')
    bound(trial)
    expect(trial.problems()).toEqual([])
    growFor('a')('ABORTED') // its own it must not give up
    expect(trial.problems()).toEqual([differs])
    growFor('before')('OK')
    bound(trial)
    expect(trial.problems()).toEqual([differs])
  })

  it('SYS-14 size: half grown, unless the claim says so and waits for a pod', () => {
    const trial = aTrial()
    trial.held('net.sim', 'pv', 2)
    const annotations = { [PRE_RESIZE_CAPACITY]: '1Gi' }
    const halfGrown = { phase: 'Bound', claim: 'a', metadata: { annotations }, spec: { capacity: { storage: '2Gi' } } }
    const differs = `size: claim team-a/a is said to have ${GI}, volume pv ${2 * GI}, and net.sim^pv has ${2 * GI}`
    bound(trial)
    trial.put(['volume', aVolume('pv', halfGrown)])
    expect(trial.problems().sort()).toEqual([differs, 'size: volume pv is still marked as growing'])
    const conditions = [{ type: 'FileSystemResizePending', status: 'True' }]
    const status = { capacity: { storage: '1Gi' }, conditions }
    trial.put(['claim', aClaim('a', { phase: 'Bound', volumeName: 'pv', status })])
    expect(trial.problems()).toEqual([])
    trial.put(['pod', aPod('p', ['a'], { spec: { nodeName: 'n1' }, status: { phase: 'Running' } })])
    expect(trial.problems()).toContain(differs)
  })

  it('SYS-14 size: what waits for its node is what the volume says', () => {
    const trial = aTrial()
    trial.held('net.sim', 'pv', 2)
    const growing = (storage: string) =>
      trial.put(
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
    expect(trial.problems()).toEqual([])
    growing('1Gi')
    expect(trial.problems()).toEqual([
      `size: claim team-a/a waits for its node, volume pv has ${GI}, and net.sim^pv ${2 * GI}`,
    ])
  })

  it('SYS-14 could go on: growth, unless no driver can be told how the volume is used', () => {
    const trial = aTrial()
    trial.held('net.sim', 'pv')
    trial.tells('uid-a', 'VolumeResizeFailed')
    bound(trial, { storage: '2Gi' })
    const offers = (...accessModes: string[]) =>
      trial.put(['volume', aVolume('pv', { phase: 'Bound', claim: 'a', spec: { accessModes } })])
    offers('ReadWriteOnce', 'ReadOnlyMany')
    expect(trial.problems()).toEqual([])
    offers('ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany')
    expect(trial.problems()).toHaveLength(1)
  })

  it('SYS-14 could go on: the node’s part, unless the node was told that the volume is in use', () => {
    const trial = aTrial()
    trial.held('net.sim', 'pv', 2)
    trial.tells('uid-a', 'FileSystemResizeRequired')
    trial.put(['pod', aPod('p', ['a'], { spec: { nodeName: 'n1' }, status: { phase: 'Running' } })])
    const said = (message: string) => {
      const conditions = [{ type: 'NodeResizeError', status: 'True', message }]
      const growth = {
        allocatedResources: { storage: '2Gi' },
        allocatedResourceStatuses: { storage: 'NodeResizeInProgress' },
      }
      bound(trial, { storage: '2Gi', status: { capacity: { storage: '1Gi' }, conditions, ...growth } })
      return trial.problems().filter((text) => text.startsWith('could go on: claim team-a/a could have'))
    }
    expect(said('rpc error: code = FailedPrecondition desc = in use')).toEqual([])
    expect(said('rpc error: code = Internal desc = no')).toHaveLength(1)
  })

  it('SYS-14 could go on: what waits for the last pod, once there is none', () => {
    const trial = aTrial()
    trial.held('net.sim', 'pv')
    trial.tells(
      'uid-a',
      'VolumeResizeFailed',
      'the driver only supports offline expansion and volume is currently in-use',
    )
    bound(trial, { storage: '2Gi' })
    const pod = (phase: string) => trial.put(['pod', aPod('p', ['a'], { spec: { nodeName: 'n1' }, status: { phase } })])
    const isHeld = () => !trial.problems().some((text) => text.startsWith('could go on: claim team-a/a could have'))
    pod('Running')
    expect(isHeld()).toBe(true)
    pod('Succeeded')
    expect(isHeld()).toBe(false)
    pod('Running')
    trial.tells('uid-a', 'VolumeResizeFailed', 'something else')
    expect(isHeld()).toBe(false)
  })

  it('SYS-14 attributes: the driver, the volume and the claim agree, and what can be had is had', () => {
    const trial = aTrial()
    trial.held('net.sim', 'pv').mutableParameters = { iops: '500' }
    const gold = { metadata: { name: 'gold' }, driverName: 'net.sim', parameters: { iops: '1000' } }
    trial.put(['attributesClass', gold])
    const capacity = { storage: '1Gi' }
    bound(trial, { status: { capacity, currentVolumeAttributesClassName: 'gold' } })
    expect(trial.problems()).toEqual([
      'attributes: claim team-a/a is said to have iops=1000, and net.sim^pv has 500',
      'attributes: claim team-a/a has the class gold, and its volume says undefined',
    ])
    bound(trial, { spec: { volumeAttributesClassName: 'gold' } })
    expect(trial.problems()).toEqual([
      'says not why: claim team-a/a wants gold and has undefined, and does not say why',
      'could go on: claim team-a/a could have gold, has undefined, and says "undefined"',
    ])
  })

  it('SYS-14 says not why: of a driver that can change nothing, only where somebody is there to say so', () => {
    for (const home of ['together', 'apart'] as const) {
      const trial = aTrial()
      Object.assign(trial.stage.setup, { home })
      trial.held('basic.sim', 'pv')
      const spec = { volumeAttributesClassName: 'gold' }
      trial.put(
        ['volume', aVolume('pv', { phase: 'Bound', claim: 'a', driver: 'basic.sim' })],
        ['claim', aClaim('a', { phase: 'Bound', volumeName: 'pv', className: 'basic', spec })],
      )
      const text = 'says not why: claim team-a/a wants gold and has undefined, and does not say why'
      expect(trial.problems()).toEqual(home === 'together' ? [text] : [])
    }
  })

  it('SYS-14 not gone: what was copied is let go of once it goes, and not before', () => {
    const trial = aTrial()
    const finalizers = ['provisioner.storage.kubernetes.io/cloning-protection']
    trial.held('net.sim', 'pv')
    bound(trial, { metadata: { finalizers } })
    expect(trial.problems()).toEqual([])
    bound(trial, { metadata: { finalizers, deletionTimestamp: 'then' } })
    expect(trial.problems()).toEqual([`not gone: claim team-a/a is stuck in its deletion, held by ${finalizers}`])
  })

  it('SYS-14 not gone, finalizers: what is stuck', () => {
    const trial = aTrial()
    trial.held('net.sim', 'pv')
    const going = { deletionTimestamp: 'then' }
    const finalizers = ['kubernetes.io/pvc-protection', INTENT]
    trial.put(
      ['volume', aVolume('pv', { phase: 'Released', claim: 'x', metadata: going })],
      ['claim', aClaim('a', { volumeName: 'pv', metadata: { ...going, finalizers } })],
      ['pod', { ...aPod('p', []), metadata: { namespace: 'team-a', name: 'p', ...going } }],
      ['attributesClass', { metadata: { name: 'gold', ...going }, driverName: 'net.sim' }],
      ['namespace', { metadata: { name: 'team-b', ...going } }],
    )
    expect(trial.problems()).toEqual([
      'not gone: volume pv is Released with the policy Delete: ',
      'not gone: volume pv is stuck in its deletion, held by nobody',
      'not gone: claim team-a/a is stuck in its deletion, held by kubernetes.io/pvc-protection',
      `finalizers: claim team-a/a has a volume, and keeps ${INTENT}`,
      'says not why: claim team-a/a is going, and does not say why it is not gone',
      'not gone: pod team-a/p is stuck in its deletion on undefined, held by nobody',
      'not gone: namespace team-b is going, and nothing is left in it',
      'not gone: attributes class gold is going, and nobody uses it',
    ])
  })

  it('SYS-14 says not why, could go on: pods', () => {
    const trial = aTrial()
    trial.put(['node', aNode('n1')], ['pod', aPod('p', [])])
    expect(trial.problems()).toEqual(['says not why: pod team-a/p has no node, and does not say why'])
    const conditions = [{ type: 'PodScheduled', status: 'False', message: 'no room' }]
    trial.put(['pod', aPod('p', [], { status: { conditions } })])
    expect(trial.problems()).toEqual(['could go on: pod team-a/p could be placed on n1, and says "no room"'])
    trial.put(['node', aNode('n1', { unschedulable: true })])
    expect(trial.problems()).toEqual([])
    trial.put(['pod', aPod('p', [], { spec: { nodeName: 'n1' } })])
    expect(trial.problems()).toEqual(['says not why: pod team-a/p is on n1, does not run, and does not say why'])
    trial.tells('uid-p', 'FailedMount')
    expect(trial.problems()).toEqual([
      'could go on: pod team-a/p could run on n1, and says "Warning FailedMount: because"',
    ])
  })

  it('SYS-14 attached: attachments, publications and mounts that nobody needs, and those that are missing', () => {
    const trial = aTrial()
    bound(trial)
    trial.held('net.sim', 'pv').attachments['id-n2'] = {} as never
    trial.mounts.get('n2')!.push({ path: '/node/pods/uid-gone/volumes/x/mount', volume: 'net.sim^pv' })
    trial.mounts.get('n3')!.push({ path: '/node/plugins/x/globalmount', volume: 'net.sim^pv' })
    trial.put(
      ['node', aNode('n1')],
      ['pod', aPod('p', ['a'], { spec: { nodeName: 'n1' }, status: { phase: 'Running' } })],
    )
    expect(trial.problems()).toEqual([
      'attached: volume pv is needed on [n1], and attached to []',
      'attached: net.sim^pv is published on [n2], attachments say []',
      'attached: pod team-a/p runs on n1 (id-n1), where net.sim^pv is not mounted',
      'attached: /node/pods/uid-gone/volumes/x/mount is mounted on n2 for a pod that is not there',
      'attached: net.sim^pv is staged on n3 at /node/plugins/x/globalmount, and no pod there uses it',
    ])
  })

  it('SYS-14 attached: publishing that nobody heard the end of, unless the volume is going and is held in mind', () => {
    const trial = aTrial()
    trial.held('net.sim', 'pv').attachments['id-n2'] = {} as never
    const attachment = (finalizers: string[]) => ({
      metadata: { name: 'va', finalizers },
      spec: { attacher: 'net.sim', nodeName: 'n2', source: { persistentVolumeName: 'pv' } },
      status: { attached: false },
    })
    const published = 'attached: net.sim^pv is published on [n2], attachments say []'
    const volume = (metadata: object) => aVolume('pv', { phase: 'Bound', claim: 'a', metadata })
    const going = { deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['kubernetes.io/pv-protection'] }
    const held = attachment(['external-attacher/net-sim'])
    trial.put(['claim', aClaim('a', { phase: 'Bound', volumeName: 'pv' })])
    trial.put(['volume', volume({})], ['attachment', held])
    expect(trial.problems()).toContain(published)
    trial.put(['volume', volume(going)], ['attachment', held])
    expect(trial.problems()).not.toContain(published)
    trial.put(['attachment', attachment([])])
    expect(trial.problems()).toContain(published)
  })

  it('SYS-14 capacity, quota: reports that are not true, and quotas that were never counted', () => {
    const trial = aTrial()
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
    trial.put(
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
    expect(trial.problems()).toEqual([
      `capacity: the reports of local-wait on n2 say ${7 * GI}, and ${20 * GI} is free`,
      'capacity: there is a report of local-wait on n9, where nobody is',
      'quota: quota team-a/q does not say what is used of pods: {"spec":{"hard":{"pods":"1"}}}',
    ])
  })
})

describe('what is judged at the very end', () => {
  it('SYS-14 tries for ever: the same write, refused again and again though all is quiet', async () => {
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
    retries.listen()
    await tries(3)
    expect(retries.problems()).toEqual([])
    await tries(1)
    expect(retries.problems().map(({ rule, text }) => `${rule}: ${text}`)).toEqual([
      'tries for ever: control-1: create persistentvolumes pv was refused 4 times though all is quiet: no',
    ])
  })

  it('SYS-14 metrics: calls that were not counted, or counted and not made, and gauges below zero', async () => {
    const trial = aTrial()
    const registry = new Registry()
    trial.registries.push({ process: 'control-1', life: 1, registry })
    const metrics = createCsiMetrics(registry)
    const count = (code: 'OK' | 'NOT_FOUND') =>
      metrics.called({ driverName: 'net.sim', method: '/csi.v1.Controller/DeleteVolume', code, seconds: 1 })
    const text = async () => (await metricProblems(trial.stage)).map((problem) => problem.text)
    trial.call('control-1', 'net.sim', 'DeleteVolume', 'pv')()
    trial.call('control-1', 'net.sim', 'DeleteVolume', 'pv') // nobody heard the end of it
    count('OK')
    expect(await text()).toEqual([])
    count('NOT_FOUND')
    trial.call('control-1', 'net.sim', 'DeleteVolume', 'pv')()
    const registers = [registry]
    new Counter({ name: 'stowage_quota_differences_total', help: 'x', registers }).inc()
    new Counter({ name: 'controller_modify_volume_total', help: 'x', registers }).inc()
    new Counter({ name: 'controller_persistentvolumeclaim_provision_total', help: 'x', registers }).inc()
    new Gauge({ name: 'workqueue_depth', help: 'x', registers }).set(-1)
    expect(await text()).toEqual([
      'control-1 in its life 1 counted 1 times DeleteVolume OK, and heard it 2 times',
      'control-1 in its life 1 counted 1 times DeleteVolume NotFound, and heard it 0 times',
      'control-1 in its life 1 says controller_persistentvolumeclaim_provision_total 1, and heard CreateVolume succeed 0 times',
      'control-1 in its life 1 says controller_modify_volume_total 1 with 0 errors, and called ControllerModifyVolume 0 times',
      'control-1 in its life 1 found 1 quotas that do not say what is used',
      'control-1 in its life 1 says workqueue_depth {} -1, which is less than nothing',
    ])
  })

  it('SYS-14 metrics: whoever counts claims and volumes in the end counts those that are there', async () => {
    const trial = aTrial()
    const registry = new Registry()
    const text = async () => (await gaugeProblems(trial.stage, trial.view)).map((problem) => problem.text)
    expect(await text()).toEqual([])
    trial.put(['volume', aVolume('pv', { phase: 'Bound' })])
    expect(await text()).toEqual(['nobody counts the 1 volumes and 0 claims that there are'])
    trial.registries.push(
      { process: 'control-1', life: 1, registry: new Registry() },
      { process: 'control-1', life: 2, registry },
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
