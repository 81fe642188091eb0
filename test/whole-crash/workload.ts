// The workload: concurrent users and administrators who repeatedly act on existing objects, without coordination. Two may
// edit one object at once, and many requests are rejected, impossible, or reverted a moment later.
import { open, readFile, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { PROVISIONED_BY } from '../../src/volumes/names.ts'
import { agentDirOf, type Cluster, DRIVER, NODES } from './cluster.ts'
import type { Faults } from './faults.ts'
import type { Journal } from './journal.ts'
import type { RealStorage } from './storage.ts'
import type { WatchRecorder } from './watch-recorder.ts'
import { COLLECTIONS } from './watch-recorder.ts'

export interface Workload {
  /** Creates the classes, namespaces and quotas. */
  setUp(): Promise<void>
  /** Runs one user until the signal fires. */
  act(signal: AbortSignal): Promise<void>
  /** After the faults: makes nodes schedulable again and recreates the class that volumes were created with. */
  settle(): Promise<void>
  /** Volume objects deleted by a user, by uid. */
  readonly deletedByHand: ReadonlySet<string>
  recordDeletion(volumeUid: string): void
  /** Names of volumes that an administrator created by calling the driver. */
  readonly imported: ReadonlySet<string>
  /** Problems with the data of running pods; counts intact data. */
  checkData(): Promise<string[]>
  readonly dataFound: number
}

export interface WorkloadDeps {
  readonly cluster: Cluster
  readonly recorder: WatchRecorder
  readonly journal: Journal
  readonly storage: RealStorage
  readonly faults: Faults
  readonly random: () => number
  /** How long a lost node is down. */
  readonly lostMs: number
}

export const NAMESPACES = ['shop', 'lab']
/** More than any pool. */
export const IMPOSSIBLE_SIZE = '500Gi'
/** Objects not being deleted; beyond this the workload deletes instead of creating. */
const CLAIMS_MAX = 26
const PODS_MAX = 14
const STATIC_MAX = 6
const PAUSE_MS = 250

const THIN = { provisioning: 'thin', overcommit: '20' }
const grows = { provisioner: DRIVER, allowVolumeExpansion: true, parameters: THIN }
const CLASSES: Readonly<Record<string, object>> = {
  wait: { ...grows, volumeBindingMode: 'WaitForFirstConsumer' },
  'wait-keep': { ...grows, volumeBindingMode: 'WaitForFirstConsumer', reclaimPolicy: 'Retain' },
  now: { ...grows, volumeBindingMode: 'Immediate' },
  'now-keep': { ...grows, volumeBindingMode: 'Immediate', reclaimPolicy: 'Retain' },
  static: { provisioner: 'kubernetes.io/no-provisioner', volumeBindingMode: 'Immediate' },
  fleeting: { ...grows, volumeBindingMode: 'Immediate' },
}
/** `odd`: parameters that the driver rejects. `fleeting` is deleted and recreated unchanged. */
export const ATTRIBUTES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  silver: { iops: '500' },
  gold: { iops: '1000', throughput: '100' },
  odd: { tier: 'gold' },
  fleeting: { throughput: '50' },
}
const QUOTAS: Readonly<Record<string, object>> = {
  shop: { 'requests.storage': '6000Gi', persistentvolumeclaims: '40', 'limits.iops': '50000' },
  lab: { 'requests.storage': '30Gi', persistentvolumeclaims: '20' },
}

export function createWorkload({
  cluster,
  recorder,
  journal,
  storage,
  faults,
  random,
  lostMs,
}: WorkloadDeps): Workload {
  const { now } = recorder
  const deletedByHand = new Set<string>()
  const imported = new Set<string>()
  /** Synced content, by volume handle. */
  const marks = new Map<string, string>()
  let number = 0
  let dataFound = 0
  let isNodeLost = false

  const pick = <T>(all: readonly T[]): T | undefined => all[Math.floor(random() * all.length)]
  const chance = (chance: number) => random() < chance
  const undeleted = (objects: ReadonlyMap<string, any>): any[] =>
    [...objects.values()].filter(({ metadata }) => !metadata.deletionTimestamp)
  const bound = () => undeleted(now.claims).filter(({ status }) => status?.phase === 'Bound')
  const inNamespace = (namespace: string, kind: string) => `/api/v1/namespaces/${namespace}/${kind}`
  const pathOf = (kind: string, { metadata: { namespace, name } }: any) => `${inNamespace(namespace, kind)}/${name}`
  const editClaim = (what: string, claim: any, spec: object) =>
    journal.request(what, 'PATCH', pathOf('persistentvolumeclaims', claim), { spec })
  const mebi = (count: number) => `${Math.round(count)}Mi`

  async function createClaim(): Promise<void> {
    if (undeleted(now.claims).length >= CLAIMS_MAX) return deleteClaim()
    const storageClassName = chance(0.04) ? 'nowhere' : pick(Object.keys(CLASSES))!
    const isStatic = storageClassName === 'static'
    const isBlock = !isStatic && chance(0.35)
    const attributes = !isStatic && chance(0.3) ? { volumeAttributesClassName: pick(Object.keys(ATTRIBUTES)) } : {}
    const io = !isStatic && chance(0.15) ? { iops: String(100 * (1 + Math.floor(random() * 5))) } : {}
    const storageSize = isBlock ? mebi(8 + random() * 24) : mebi(300 + random() * 60)
    const namespace = pick(NAMESPACES)!
    await journal.request('create claim', 'POST', inNamespace(namespace, 'persistentvolumeclaims'), {
      metadata: { name: `c${number++}` },
      spec: {
        accessModes: ['ReadWriteOnce'],
        storageClassName,
        volumeMode: isBlock ? 'Block' : 'Filesystem',
        resources: { requests: { storage: storageSize, ...io } },
        ...attributes,
      },
    })
  }

  async function growClaim(): Promise<void> {
    const claim = pick(bound())
    if (!claim) return
    const hasMi = bytesOf(claim.status.capacity.storage) / 1024 ** 2
    const wanted = chance(0.15) ? IMPOSSIBLE_SIZE : mebi(hasMi + 100 + random() * 50)
    await editClaim('expand claim', claim, { resources: { requests: { storage: wanted } } })
  }

  async function lowerClaim(): Promise<void> {
    const growing = bound().filter(
      ({ spec, status }) => bytesOf(spec.resources.requests.storage) > bytesOf(status.capacity.storage),
    )
    const claim = pick(growing)
    if (!claim) return
    await editClaim('lower claim', claim, { resources: { requests: { storage: claim.status.capacity.storage } } })
  }

  async function setAttributes(): Promise<void> {
    const claim = pick(bound().filter(({ spec }) => spec.storageClassName !== 'static'))
    if (!claim) return
    const name = chance(0.05) ? 'nowhere' : pick(Object.keys(ATTRIBUTES))
    await editClaim('choose attributes', claim, { volumeAttributesClassName: name })
  }

  async function rollBack(): Promise<void> {
    const claim = pick(bound().filter(({ status }) => status.modifyVolumeStatus))
    if (!claim) return
    const name = claim.status.currentVolumeAttributesClassName ?? null
    await editClaim('roll attributes back', claim, { volumeAttributesClassName: name })
  }

  async function setIo(): Promise<void> {
    const claim = pick(bound().filter(({ spec }) => spec.storageClassName !== 'static'))
    if (!claim) return
    const iops = chance(0.3) ? null : String(100 * (1 + Math.floor(random() * 9)))
    const throughput = chance(0.6) ? {} : { throughput: `${10 * (1 + Math.floor(random() * 9))}Mi` }
    await editClaim('change io', claim, { resources: { requests: { iops, ...throughput } } })
  }

  async function labelClaim(): Promise<void> {
    const claim = pick(undeleted(now.claims))
    if (!claim) return
    const body = { metadata: { labels: { turn: String(number++) } } }
    await journal.request('label claim', 'PATCH', pathOf('persistentvolumeclaims', claim), body)
  }

  async function deleteClaim(): Promise<void> {
    const claim = pick(undeleted(now.claims))
    if (claim) await journal.request('delete claim', 'DELETE', pathOf('persistentvolumeclaims', claim))
  }

  async function createPod(): Promise<void> {
    if (undeleted(now.pods).length >= PODS_MAX) return deletePod()
    const namespace = pick(NAMESPACES)!
    const mine = undeleted(now.claims).filter((claim) => claim.metadata.namespace === namespace)
    const chosen = [...new Set(chance(0.2) ? [pick(mine), pick(mine)] : [pick(mine)])].filter(Boolean)
    const isEphemeral = chance(0.15) || chosen.length === 0
    const template = { accessModes: ['ReadWriteOnce'], storageClassName: 'wait', resources: { requests: EPHEMERAL } }
    const volumes = isEphemeral
      ? [{ name: 'v0', ephemeral: { volumeClaimTemplate: { spec: template } } }]
      : chosen.map(({ metadata: { name } }, index) => ({
          name: `v${index}`,
          persistentVolumeClaim: { claimName: name },
        }))
    const isBlock = (index: number) => !isEphemeral && chosen[index].spec.volumeMode === 'Block'
    const at = (wantsBlock: boolean) =>
      volumes.map(({ name }, index) => ({ name, index })).filter(({ index }) => isBlock(index) === wantsBlock)
    await journal.request('create pod', 'POST', inNamespace(namespace, 'pods'), {
      metadata: { name: `p${number++}` },
      spec: {
        terminationGracePeriodSeconds: 1,
        containers: [
          {
            name: 'main',
            image: 'none',
            volumeMounts: at(false).map(({ name }) => ({ name, mountPath: `/${name}` })),
            volumeDevices: at(true).map(({ name }) => ({ name, devicePath: `/dev/${name}` })),
          },
        ],
        volumes,
      },
    })
  }

  async function deletePod(): Promise<void> {
    const pod = pick(undeleted(now.pods))
    if (!pod) return
    const isForced = chance(0.15)
    const body = isForced ? { gracePeriodSeconds: 0 } : {}
    await journal.request(isForced ? 'force-delete pod' : 'delete pod', 'DELETE', pathOf('pods', pod), body)
  }

  /** Creates storage by calling the driver, then a PersistentVolume for it. */
  async function createVolume(): Promise<void> {
    const statics = undeleted(now.volumes).filter(({ spec }) => spec.storageClassName === 'static')
    if (statics.length >= STATIC_MAX) return deleteVolume()
    const name = `static-${number++}`
    const node = pick(NODES)!
    const bytes = 320 * 1024 ** 2
    imported.add(name)
    const request = {
      name,
      capacityRange: { requiredBytes: BigInt(bytes) },
      volumeCapabilities: [{ accessType: { case: 'mount' as const, value: {} }, accessMode: { mode: 1 } }],
      parameters: THIN,
    }
    const made = await storage
      .driver(node)
      .controller.createVolume(request)
      .catch(() => undefined)
    if (!made?.volume) return
    await journal.request('create volume', 'POST', COLLECTIONS.volumes, {
      metadata: { name, annotations: { [PROVISIONED_BY]: DRIVER } },
      spec: {
        capacity: { storage: '320Mi' },
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'static',
        persistentVolumeReclaimPolicy: chance(0.5) ? 'Retain' : 'Delete',
        csi: { driver: DRIVER, volumeHandle: made.volume.volumeId },
        nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [on(node)] }] } },
      },
    })
  }

  async function deleteVolume(): Promise<void> {
    const idle = undeleted(now.volumes).filter(({ status }) => ['Released', 'Available'].includes(status?.phase))
    const volume = pick(chance(0.1) ? undeleted(now.volumes) : idle)
    if (!volume) return
    deletedByHand.add(volume.metadata.uid)
    await journal.request('delete volume', 'DELETE', `${COLLECTIONS.volumes}/${volume.metadata.name}`)
  }

  const editVolume = (what: string, { metadata: { name } }: any, spec: object) =>
    journal.request(what, 'PATCH', `${COLLECTIONS.volumes}/${name}`, { spec })

  async function changePolicy(): Promise<void> {
    const volume = pick(undeleted(now.volumes))
    if (!volume) return
    const isKept = volume.spec.persistentVolumeReclaimPolicy === 'Retain'
    await editVolume('change policy', volume, { persistentVolumeReclaimPolicy: isKept ? 'Delete' : 'Retain' })
  }

  async function reuseVolume(): Promise<void> {
    const released = undeleted(now.volumes).filter(
      ({ spec, status }) => status?.phase === 'Released' && spec.persistentVolumeReclaimPolicy === 'Retain',
    )
    const volume = pick(released)
    if (volume) await editVolume('free volume', volume, { claimRef: null })
  }

  const toggle = async (what: string, path: string, name: string, isThere: boolean, body: object) => {
    if (isThere) await journal.request(`delete ${what}`, 'DELETE', `${path}/${name}`)
    else await journal.request(`create ${what}`, 'POST', path, { metadata: { name }, ...body })
  }
  const toggleClass = () =>
    toggle('class', COLLECTIONS.classes, 'fleeting', now.classes.has('fleeting'), CLASSES.fleeting!)
  const toggleAttributes = () => {
    const body = { driverName: DRIVER, parameters: ATTRIBUTES.fleeting }
    return toggle('attributes', COLLECTIONS.attributes, 'fleeting', now.attributes.has('fleeting'), body)
  }

  async function editQuota(): Promise<void> {
    const namespace = pick(NAMESPACES)!
    const path = inNamespace(namespace, 'resourcequotas')
    if (chance(0.3)) {
      const hard = { persistentvolumeclaims: String(5 + Math.floor(random() * 20)) }
      return toggle('quota', path, 'second', now.quotas.has(`${namespace}/second`), { spec: { hard } })
    }
    const hard = chance(0.4) ? { persistentvolumeclaims: String(4 + Math.floor(random() * 12)) } : QUOTAS[namespace]
    await journal.request('change quota', 'PATCH', `${path}/main`, { spec: { hard } })
  }

  async function cordon(): Promise<void> {
    const node = now.nodes.get(pick(NODES)!)
    if (!node) return
    const unschedulable = node.spec?.unschedulable !== true
    await journal.request('cordon', 'PATCH', `${COLLECTIONS.nodes}/${node.metadata.name}`, { spec: { unschedulable } })
  }

  async function loseNode(): Promise<void> {
    if (isNodeLost) return
    isNodeLost = true
    const node = pick(NODES)!
    const path = `${COLLECTIONS.nodes}/${node}`
    const lost = faults.loseNode(node, lostMs * (0.5 + random() / 2))
    if (chance(0.5)) {
      await journal.request('declare node lost', 'PATCH', path, { spec: { taints: [OUT_OF_SERVICE] } })
      await lost
      let isBack: unknown
      do isBack = await journal.request('node is back', 'PATCH', path, { spec: { taints: null } })
      while (!isBack) // until the taint is removed, no pod is scheduled there
    }
    await lost
    isNodeLost = false
  }

  async function writeConfig(): Promise<void> {
    const namespace = pick(NAMESPACES)!
    const path = inNamespace(namespace, 'configmaps')
    const known = pick(undeleted(now.configMaps).filter(({ metadata }) => /^m\d/.test(metadata.name)))
    const data = { value: String(number++) }
    if (!known || chance(0.3))
      await journal.request('create config', 'POST', path, { metadata: { name: `m${number++}` }, data })
    else if (chance(0.7)) await journal.request('change config', 'PATCH', pathOf('configmaps', known), { data })
    else await journal.request('delete config', 'DELETE', pathOf('configmaps', known))
  }

  async function useData(): Promise<void> {
    const pod = pick(undeleted(now.pods).filter(({ status }) => status?.phase === 'Running'))
    const problems = pod ? await useDataOf(pod, true) : []
    dataProblems.push(...problems)
  }
  const dataProblems: string[] = []

  /** Verifies earlier content; writes some if the volume is empty. */
  async function useDataOf(pod: any, mayWrite: boolean): Promise<string[]> {
    const problems: string[] = []
    for (const { handle, path } of filesystemsOf(pod)) {
      // Held open, it cannot be unmounted under us; of another device than its parent, it is the volume.
      const directory = await open(path).catch(() => undefined)
      if (!directory) continue
      try {
        const [here, above] = [await directory.stat(), await stat(join(path, '..')).catch(() => undefined)]
        if (!above || here.dev === above.dev) continue
        const file = join(`/proc/self/fd/${directory.fd}`, 'mark')
        const found = await readFile(file, 'utf8').catch(() => undefined)
        const mark = marks.get(handle)
        if (mark !== undefined && found !== mark) problems.push(`${handle} has "${found}" where "${mark}" was written`)
        if (mark !== undefined && found === mark) dataFound++
        if (mark !== undefined || !mayWrite) continue
        const written = await open(file, 'w')
        await written.writeFile(handle)
        await written.sync()
        await written.close()
        marks.set(handle, handle)
      } finally {
        await directory.close()
      }
    }
    return problems
  }

  /** Where the pod's volumes are mounted, if they are. */
  function filesystemsOf({ metadata, spec }: any): { handle: string; path: string; claim: any }[] {
    return (spec.volumes ?? []).flatMap(({ name, persistentVolumeClaim }: any) => {
      const claimName = persistentVolumeClaim?.claimName ?? `${metadata.name}-${name}`
      const claim = now.claims.get(`${metadata.namespace}/${claimName}`)
      const volume = now.volumes.get(claim?.spec.volumeName ?? '')
      if (!volume || claim.spec.volumeMode === 'Block' || !spec.nodeName) return []
      const root = join(agentDirOf(cluster.dir, spec.nodeName), 'pods', metadata.uid, 'volumes', 'kubernetes.io~csi')
      return [{ handle: volume.spec.csi.volumeHandle, path: join(root, volume.metadata.name, 'mount'), claim }]
    })
  }

  const ACTIONS: readonly (readonly [number, () => Promise<void>])[] = [
    [12, createClaim],
    [9, growClaim],
    [5, lowerClaim],
    [6, setAttributes],
    [4, rollBack],
    [4, setIo],
    [3, labelClaim],
    [3, deleteClaim],
    [11, createPod],
    [5, deletePod],
    [8, useData],
    [4, createVolume],
    [3, deleteVolume],
    [2, changePolicy],
    [2, reuseVolume],
    [1, toggleClass],
    [2, toggleAttributes],
    [3, editQuota],
    [1, cordon],
    [0.3, loseNode],
    [12, writeConfig],
  ]
  const allWeights = ACTIONS.reduce((sum, [weight]) => sum + weight, 0)

  function nextAction(): () => Promise<void> {
    let left = random() * allWeights
    for (const [weight, act] of ACTIONS) {
      left -= weight
      if (left < 0) return act
    }
    return createClaim
  }

  return {
    deletedByHand,
    recordDeletion: (volumeUid) => void deletedByHand.add(volumeUid),
    imported,
    get dataFound() {
      return dataFound
    },
    async setUp() {
      const must = async (path: string, body: object) => {
        if (!(await journal.request('set up', 'POST', path, body)))
          throw new Error(`setup failed: ${path} was rejected`)
      }
      await must('/apis/storage.k8s.io/v1/csidrivers', {
        metadata: { name: DRIVER },
        spec: { attachRequired: false, storageCapacity: true, podInfoOnMount: true },
      })
      for (const [name, spec] of Object.entries(CLASSES))
        await must(COLLECTIONS.classes, { metadata: { name }, ...spec })
      for (const [name, parameters] of Object.entries(ATTRIBUTES))
        await must(COLLECTIONS.attributes, { metadata: { name }, driverName: DRIVER, parameters })
      for (const name of NAMESPACES) {
        await must('/api/v1/namespaces', { metadata: { name } })
        await must(inNamespace(name, 'resourcequotas'), { metadata: { name: 'main' }, spec: { hard: QUOTAS[name] } })
      }
    },
    async act(signal) {
      while (!signal.aborted) {
        await nextAction()()
        await new Promise((resolve) => setTimeout(resolve, random() * PAUSE_MS))
      }
    },
    async settle() {
      for (const node of NODES) {
        const body = { spec: { unschedulable: null, taints: null } }
        const isDone = await journal.request('settle', 'PATCH', `${COLLECTIONS.nodes}/${node}`, body)
        if (!isDone) throw new Error(`node ${node} cannot be made schedulable again`)
      }
      // A claim with an open provisioning intent needs its class to find out whether a volume was created.
      const body = { metadata: { name: 'fleeting' }, ...CLASSES.fleeting }
      await journal.request('settle', 'POST', COLLECTIONS.classes, body) // rejected if it exists
    },
    async checkData() {
      const problems = [...dataProblems]
      for (const pod of undeleted(now.pods).filter(({ status }) => status?.phase === 'Running')) {
        problems.push(...(await useDataOf(pod, false)))
        for (const { path, claim } of filesystemsOf(pod)) {
          const { blocks, bsize } = await statfs(path)
          // A file system uses some of its device itself; every expansion here is larger than that.
          if (blocks * bsize < bytesOf(claim.status.capacity.storage) - 90 * 1024 ** 2)
            problems.push(
              `${claim.metadata.name} reports ${claim.status.capacity.storage}, a pod sees ${blocks * bsize}`,
            )
        }
      }
      return problems
    },
  }
}

const EPHEMERAL = { storage: '300Mi' }
const OUT_OF_SERVICE = { key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoExecute' }
const on = (node: string) => ({ key: `${DRIVER}/node`, operator: 'In', values: [node] })

const FACTORS: Readonly<Record<string, number>> = { '': 1, k: 1_000, Ki: 1024, Mi: 1024 ** 2, Gi: 1024 ** 3 }

/** Integers only. */
export function bytesOf(text: string | undefined): number {
  const [, digits = '0', suffix = ''] = /^(\d+)(k|Ki|Mi|Gi|)$/.exec(text ?? '0') ?? []
  return Number(digits) * FACTORS[suffix]!
}
