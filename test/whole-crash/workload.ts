// The workload of the crash test: concurrent users and administrators who create, change and delete objects without
// coordination. Two users may edit one object at once; many requests are rejected, impossible, or soon reverted.
import { open, readFile, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { PROVISIONED_BY } from '../../src/volumes/names.ts'
import { agentDirOf, type Cluster, DRIVER } from './cluster.ts'
import type { Faults } from './faults.ts'
import type { Journal } from './journal.ts'
import type { RealStorage } from './storage.ts'
import type { WatchRecorder } from './watch-recorder.ts'
import { COLLECTIONS } from './watch-recorder.ts'

export interface Workload {
  /** Creates the CSIDriver, classes, namespaces and quotas. */
  setUp(): Promise<void>
  /** Runs one user until the signal is aborted. */
  act(signal: AbortSignal): Promise<void>
  /** Called after the faults: makes all nodes schedulable and recreates the deleted class. */
  settle(): Promise<void>
  /** Uids of PersistentVolumes that a user deleted. */
  readonly userDeletedUids: ReadonlySet<string>
  recordDeletion(volumeUid: string): void
  /** Names of volumes that an administrator created by calling the driver. */
  readonly importedNames: ReadonlySet<string>
  /** Returns the problems with the data of running pods. */
  checkData(): Promise<string[]>
  /** Number of successful comparisons of data. */
  readonly verifiedData: number
}

export interface WorkloadDeps {
  readonly cluster: Cluster
  readonly recorder: WatchRecorder
  readonly journal: Journal
  readonly storage: RealStorage
  readonly faults: Faults
  readonly random: () => number
  /** Longest time that a failed node is down. */
  readonly nodeDowntimeMs: number
}

export const NAMESPACES = ['shop', 'lab']
/** A size larger than any pool. */
export const IMPOSSIBLE_SIZE = '500Gi'
/** At this number of objects that are not being deleted, the workload deletes an object instead of creating one. */
const CLAIMS_MAX = 26
const PODS_MAX = 14
const STATIC_VOLUMES_MAX = 6
const PAUSE_MS_MAX = 250

const THIN = { provisioning: 'thin', overcommit: '20' }
const expandable = { provisioner: DRIVER, allowVolumeExpansion: true, parameters: THIN }
const CLASSES: Readonly<Record<string, object>> = {
  wait: { ...expandable, volumeBindingMode: 'WaitForFirstConsumer' },
  'wait-keep': { ...expandable, volumeBindingMode: 'WaitForFirstConsumer', reclaimPolicy: 'Retain' },
  now: { ...expandable, volumeBindingMode: 'Immediate' },
  'now-keep': { ...expandable, volumeBindingMode: 'Immediate', reclaimPolicy: 'Retain' },
  static: { provisioner: 'kubernetes.io/no-provisioner', volumeBindingMode: 'Immediate' },
  fleeting: { ...expandable, volumeBindingMode: 'Immediate' },
}
/** The driver rejects the parameters of `odd`. `fleeting` is deleted and recreated without changes. */
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
  nodeDowntimeMs,
}: WorkloadDeps): Workload {
  const { current } = recorder
  const userDeletedUids = new Set<string>()
  const importedNames = new Set<string>()
  /** Content that was written and synced, by volume handle. */
  const marks = new Map<string, string>()
  let sequence = 0
  let verifiedCount = 0
  let isNodeLost = false

  const pick = <T>(items: readonly T[]): T | undefined => items[Math.floor(random() * items.length)]
  const isChosen = (probability: number) => random() < probability
  const omitTerminating = (objects: ReadonlyMap<string, any>): any[] =>
    [...objects.values()].filter(({ metadata }) => !metadata.deletionTimestamp)
  const boundClaims = () => omitTerminating(current.claims).filter(({ status }) => status?.phase === 'Bound')
  const inNamespace = (namespace: string, kind: string) => `/api/v1/namespaces/${namespace}/${kind}`
  const pathOf = (kind: string, { metadata: { namespace, name } }: any) => `${inNamespace(namespace, kind)}/${name}`
  const editClaim = (action: string, claim: any, spec: object) =>
    journal.request(action, 'PATCH', pathOf('persistentvolumeclaims', claim), { spec })
  const mebi = (count: number) => `${Math.round(count)}Mi`

  async function createClaim(): Promise<void> {
    if (omitTerminating(current.claims).length >= CLAIMS_MAX) return deleteClaim()
    const storageClassName = isChosen(0.04) ? 'nowhere' : pick(Object.keys(CLASSES))!
    const isStatic = storageClassName === 'static'
    const isBlock = !isStatic && isChosen(0.35)
    const attributes = !isStatic && isChosen(0.3) ? { volumeAttributesClassName: pick(Object.keys(ATTRIBUTES)) } : {}
    const io = !isStatic && isChosen(0.15) ? { iops: String(100 * (1 + Math.floor(random() * 5))) } : {}
    const storageSize = isBlock ? mebi(8 + random() * 24) : mebi(300 + random() * 60)
    const namespace = pick(NAMESPACES)!
    await journal.request('create claim', 'POST', inNamespace(namespace, 'persistentvolumeclaims'), {
      metadata: { name: `c${sequence++}` },
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
    const claim = pick(boundClaims())
    if (!claim) return
    const currentMi = bytesOf(claim.status.capacity.storage) / 1024 ** 2
    const requestedSize = isChosen(0.15) ? IMPOSSIBLE_SIZE : mebi(currentMi + 100 + random() * 50)
    await editClaim('expand claim', claim, { resources: { requests: { storage: requestedSize } } })
  }

  async function lowerClaim(): Promise<void> {
    const growingClaims = boundClaims().filter(
      ({ spec, status }) => bytesOf(spec.resources.requests.storage) > bytesOf(status.capacity.storage),
    )
    const claim = pick(growingClaims)
    if (!claim) return
    await editClaim('lower claim', claim, { resources: { requests: { storage: claim.status.capacity.storage } } })
  }

  async function setAttributes(): Promise<void> {
    const claim = pick(boundClaims().filter(({ spec }) => spec.storageClassName !== 'static'))
    if (!claim) return
    const name = isChosen(0.05) ? 'nowhere' : pick(Object.keys(ATTRIBUTES))
    await editClaim('choose attributes', claim, { volumeAttributesClassName: name })
  }

  async function rollBack(): Promise<void> {
    const claim = pick(boundClaims().filter(({ status }) => status.modifyVolumeStatus))
    if (!claim) return
    const name = claim.status.currentVolumeAttributesClassName ?? null
    await editClaim('roll attributes back', claim, { volumeAttributesClassName: name })
  }

  async function setIo(): Promise<void> {
    const claim = pick(boundClaims().filter(({ spec }) => spec.storageClassName !== 'static'))
    if (!claim) return
    const iops = isChosen(0.3) ? null : String(100 * (1 + Math.floor(random() * 9)))
    const throughput = isChosen(0.6) ? {} : { throughput: `${10 * (1 + Math.floor(random() * 9))}Mi` }
    await editClaim('change io', claim, { resources: { requests: { iops, ...throughput } } })
  }

  async function labelClaim(): Promise<void> {
    const claim = pick(omitTerminating(current.claims))
    if (!claim) return
    const body = { metadata: { labels: { turn: String(sequence++) } } }
    await journal.request('label claim', 'PATCH', pathOf('persistentvolumeclaims', claim), body)
  }

  async function deleteClaim(): Promise<void> {
    const claim = pick(omitTerminating(current.claims))
    if (claim) await journal.request('delete claim', 'DELETE', pathOf('persistentvolumeclaims', claim))
  }

  async function createPod(): Promise<void> {
    if (omitTerminating(current.pods).length >= PODS_MAX) return deletePod()
    const namespace = pick(NAMESPACES)!
    const namespaceClaims = omitTerminating(current.claims).filter((claim) => claim.metadata.namespace === namespace)
    const selectedClaims = [
      ...new Set(isChosen(0.2) ? [pick(namespaceClaims), pick(namespaceClaims)] : [pick(namespaceClaims)]),
    ].filter(Boolean)
    const isEphemeral = isChosen(0.15) || selectedClaims.length === 0
    const template = { accessModes: ['ReadWriteOnce'], storageClassName: 'wait', resources: { requests: EPHEMERAL } }
    const volumes = isEphemeral
      ? [{ name: 'v0', ephemeral: { volumeClaimTemplate: { spec: template } } }]
      : selectedClaims.map(({ metadata: { name } }, index) => ({
          name: `v${index}`,
          persistentVolumeClaim: { claimName: name },
        }))
    const isBlock = (index: number) => !isEphemeral && selectedClaims[index].spec.volumeMode === 'Block'
    const volumesOfMode = (wantsBlock: boolean) =>
      volumes.map(({ name }, index) => ({ name, index })).filter(({ index }) => isBlock(index) === wantsBlock)
    await journal.request('create pod', 'POST', inNamespace(namespace, 'pods'), {
      metadata: { name: `p${sequence++}` },
      spec: {
        terminationGracePeriodSeconds: 1,
        containers: [
          {
            name: 'main',
            image: 'none',
            volumeMounts: volumesOfMode(false).map(({ name }) => ({ name, mountPath: `/${name}` })),
            volumeDevices: volumesOfMode(true).map(({ name }) => ({ name, devicePath: `/dev/${name}` })),
          },
        ],
        volumes,
      },
    })
  }

  async function deletePod(): Promise<void> {
    const pod = pick(omitTerminating(current.pods))
    if (!pod) return
    const isForced = isChosen(0.15)
    const body = isForced ? { gracePeriodSeconds: 0 } : {}
    await journal.request(isForced ? 'force-delete pod' : 'delete pod', 'DELETE', pathOf('pods', pod), body)
  }

  /** Creates storage by calling the driver, then a PersistentVolume for it. */
  async function createVolume(): Promise<void> {
    const staticVolumes = omitTerminating(current.volumes).filter(({ spec }) => spec.storageClassName === 'static')
    if (staticVolumes.length >= STATIC_VOLUMES_MAX) return deleteVolume()
    const name = `static-${sequence++}`
    const node = pick(cluster.nodes)!
    const bytes = 320 * 1024 ** 2
    importedNames.add(name)
    const request = {
      name,
      capacityRange: { requiredBytes: BigInt(bytes) },
      volumeCapabilities: [{ accessType: { case: 'mount' as const, value: {} }, accessMode: { mode: 1 } }],
      parameters: THIN,
    }
    const response = await storage
      .driver(node)
      .controller.createVolume(request)
      .catch(() => undefined)
    if (!response?.volume) return
    await journal.request('create volume', 'POST', COLLECTIONS.volumes, {
      metadata: { name, annotations: { [PROVISIONED_BY]: DRIVER } },
      spec: {
        capacity: { storage: '320Mi' },
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'static',
        persistentVolumeReclaimPolicy: isChosen(0.5) ? 'Retain' : 'Delete',
        csi: { driver: DRIVER, volumeHandle: response.volume.volumeId },
        nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [nodeRequirement(node)] }] } },
      },
    })
  }

  async function deleteVolume(): Promise<void> {
    const idleVolumes = omitTerminating(current.volumes).filter(({ status }) =>
      ['Released', 'Available'].includes(status?.phase),
    )
    const volume = pick(isChosen(0.1) ? omitTerminating(current.volumes) : idleVolumes)
    if (!volume) return
    userDeletedUids.add(volume.metadata.uid)
    await journal.request('delete volume', 'DELETE', `${COLLECTIONS.volumes}/${volume.metadata.name}`)
  }

  const editVolume = (action: string, { metadata: { name } }: any, spec: object) =>
    journal.request(action, 'PATCH', `${COLLECTIONS.volumes}/${name}`, { spec })

  async function changePolicy(): Promise<void> {
    const volume = pick(omitTerminating(current.volumes))
    if (!volume) return
    const isRetained = volume.spec.persistentVolumeReclaimPolicy === 'Retain'
    await editVolume('change policy', volume, { persistentVolumeReclaimPolicy: isRetained ? 'Delete' : 'Retain' })
  }

  async function reuseVolume(): Promise<void> {
    const releasedVolumes = omitTerminating(current.volumes).filter(
      ({ spec, status }) => status?.phase === 'Released' && spec.persistentVolumeReclaimPolicy === 'Retain',
    )
    const volume = pick(releasedVolumes)
    if (volume) await editVolume('free volume', volume, { claimRef: null })
  }

  const toggle = async (kind: string, path: string, name: string, isPresent: boolean, body: object) => {
    if (isPresent) await journal.request(`delete ${kind}`, 'DELETE', `${path}/${name}`)
    else await journal.request(`create ${kind}`, 'POST', path, { metadata: { name }, ...body })
  }
  const toggleClass = () =>
    toggle('class', COLLECTIONS.classes, 'fleeting', current.classes.has('fleeting'), CLASSES.fleeting!)
  const toggleAttributes = () => {
    const body = { driverName: DRIVER, parameters: ATTRIBUTES.fleeting }
    return toggle('attributes', COLLECTIONS.attributes, 'fleeting', current.attributes.has('fleeting'), body)
  }

  async function editQuota(): Promise<void> {
    const namespace = pick(NAMESPACES)!
    const path = inNamespace(namespace, 'resourcequotas')
    if (isChosen(0.3)) {
      const hard = { persistentvolumeclaims: String(5 + Math.floor(random() * 20)) }
      return toggle('quota', path, 'second', current.quotas.has(`${namespace}/second`), { spec: { hard } })
    }
    const hard = isChosen(0.4) ? { persistentvolumeclaims: String(4 + Math.floor(random() * 12)) } : QUOTAS[namespace]
    await journal.request('change quota', 'PATCH', `${path}/main`, { spec: { hard } })
  }

  async function cordon(): Promise<void> {
    const node = current.nodes.get(pick(cluster.nodes)!)
    if (!node) return
    const unschedulable = node.spec?.unschedulable !== true
    await journal.request('cordon', 'PATCH', `${COLLECTIONS.nodes}/${node.metadata.name}`, { spec: { unschedulable } })
  }

  async function failRandomNode(): Promise<void> {
    if (isNodeLost) return
    isNodeLost = true
    const node = pick(cluster.nodes)!
    const path = `${COLLECTIONS.nodes}/${node}`
    const nodeFailure = faults.failNode(node, nodeDowntimeMs * (0.5 + random() / 2))
    if (isChosen(0.5)) {
      await journal.request('taint failed node', 'PATCH', path, { spec: { taints: [OUT_OF_SERVICE] } })
      await nodeFailure
      let isUntainted: unknown
      do isUntainted = await journal.request('remove taint', 'PATCH', path, { spec: { taints: null } })
      while (!isUntainted) // no pod is scheduled to the node until the taint is removed
    }
    await nodeFailure
    isNodeLost = false
  }

  async function writeConfig(): Promise<void> {
    const namespace = pick(NAMESPACES)!
    const path = inNamespace(namespace, 'configmaps')
    const existingConfig = pick(
      omitTerminating(current.configMaps).filter(({ metadata }) => /^m\d/.test(metadata.name)),
    )
    const data = { value: String(sequence++) }
    if (!existingConfig || isChosen(0.3))
      await journal.request('create config', 'POST', path, { metadata: { name: `m${sequence++}` }, data })
    else if (isChosen(0.7))
      await journal.request('change config', 'PATCH', pathOf('configmaps', existingConfig), { data })
    else await journal.request('delete config', 'DELETE', pathOf('configmaps', existingConfig))
  }

  async function useRandomData(): Promise<void> {
    const pod = pick(omitTerminating(current.pods).filter(({ status }) => status?.phase === 'Running'))
    const problems = pod ? await useDataOf(pod, true) : []
    dataProblems.push(...problems)
  }
  const dataProblems: string[] = []

  /** Verifies the content of the pod's volumes, and writes to a volume without content if allowed. */
  async function useDataOf(pod: any, mayWrite: boolean): Promise<string[]> {
    const problems: string[] = []
    for (const { handle, path } of filesystemsOf(pod)) {
      // The open directory prevents an unmount. It is the volume if its device differs from the device of its parent.
      const directory = await open(path).catch(() => undefined)
      if (!directory) continue
      try {
        const [mountStat, parentStat] = [await directory.stat(), await stat(join(path, '..')).catch(() => undefined)]
        if (!parentStat || mountStat.dev === parentStat.dev) continue
        const file = join(`/proc/self/fd/${directory.fd}`, 'mark')
        const content = await readFile(file, 'utf8').catch(() => undefined)
        const mark = marks.get(handle)
        if (mark !== undefined && content !== mark)
          problems.push(`${handle} contains "${content}" instead of "${mark}"`)
        if (mark !== undefined && content === mark) verifiedCount++
        if (mark !== undefined || !mayWrite) continue
        const target = await open(file, 'w')
        await target.writeFile(handle)
        await target.sync()
        await target.close()
        marks.set(handle, handle)
      } finally {
        await directory.close()
      }
    }
    return problems
  }

  /** Returns the mount paths of the pod's file system volumes. */
  function filesystemsOf({ metadata, spec }: any): { handle: string; path: string; claim: any }[] {
    return (spec.volumes ?? []).flatMap(({ name, persistentVolumeClaim }: any) => {
      const claimName = persistentVolumeClaim?.claimName ?? `${metadata.name}-${name}`
      const claim = current.claims.get(`${metadata.namespace}/${claimName}`)
      const volume = current.volumes.get(claim?.spec.volumeName ?? '')
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
    [8, useRandomData],
    [4, createVolume],
    [3, deleteVolume],
    [2, changePolicy],
    [2, reuseVolume],
    [1, toggleClass],
    [2, toggleAttributes],
    [3, editQuota],
    [1, cordon],
    [0.3, failRandomNode],
    [12, writeConfig],
  ]
  const totalWeight = ACTIONS.reduce((sum, [weight]) => sum + weight, 0)

  function nextAction(): () => Promise<void> {
    let remainingWeight = random() * totalWeight
    for (const [weight, act] of ACTIONS) {
      remainingWeight -= weight
      if (remainingWeight < 0) return act
    }
    return createClaim
  }

  return {
    userDeletedUids,
    recordDeletion: (volumeUid) => void userDeletedUids.add(volumeUid),
    importedNames,
    get verifiedData() {
      return verifiedCount
    },
    async setUp() {
      const createOrThrow = async (path: string, body: object) => {
        if (!(await journal.request('set up', 'POST', path, body)))
          throw new Error(`setup failed: ${path} was rejected`)
      }
      await createOrThrow('/apis/storage.k8s.io/v1/csidrivers', {
        metadata: { name: DRIVER },
        spec: { attachRequired: false, storageCapacity: true, podInfoOnMount: true },
      })
      for (const [name, spec] of Object.entries(CLASSES))
        await createOrThrow(COLLECTIONS.classes, { metadata: { name }, ...spec })
      for (const [name, parameters] of Object.entries(ATTRIBUTES))
        await createOrThrow(COLLECTIONS.attributes, { metadata: { name }, driverName: DRIVER, parameters })
      for (const name of NAMESPACES) {
        await createOrThrow('/api/v1/namespaces', { metadata: { name } })
        await createOrThrow(inNamespace(name, 'resourcequotas'), {
          metadata: { name: 'main' },
          spec: { hard: QUOTAS[name] },
        })
      }
    },
    async act(signal) {
      while (!signal.aborted) {
        await nextAction()()
        await new Promise((resolve) => setTimeout(resolve, random() * PAUSE_MS_MAX))
      }
    },
    async settle() {
      for (const node of cluster.nodes) {
        const body = { spec: { unschedulable: null, taints: null } }
        const isDone = await journal.request('settle', 'PATCH', `${COLLECTIONS.nodes}/${node}`, body)
        if (!isDone) throw new Error(`node ${node} cannot be made schedulable again`)
      }
      // A claim with an open provisioning intent needs its class to find out whether a volume was created.
      const body = { metadata: { name: 'fleeting' }, ...CLASSES.fleeting }
      await journal.request('settle', 'POST', COLLECTIONS.classes, body) // rejected if the class exists
    },
    async checkData() {
      const problems = [...dataProblems]
      for (const pod of omitTerminating(current.pods).filter(({ status }) => status?.phase === 'Running')) {
        problems.push(...(await useDataOf(pod, false)))
        for (const { path, claim } of filesystemsOf(pod)) {
          const { blocks, bsize } = await statfs(path)
          // A file system uses part of its device for metadata; every expansion here is larger than that part.
          if (blocks * bsize < bytesOf(claim.status.capacity.storage) - 90 * 1024 ** 2)
            problems.push(
              `${claim.metadata.name} reports ${claim.status.capacity.storage}, but its file system has ${blocks * bsize}`,
            )
        }
      }
      return problems
    },
  }
}

const EPHEMERAL = { storage: '300Mi' }
const OUT_OF_SERVICE = { key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoExecute' }
const nodeRequirement = (node: string) => ({ key: `${DRIVER}/node`, operator: 'In', values: [node] })

const FACTORS: Readonly<Record<string, number>> = { '': 1, k: 1_000, Ki: 1024, Mi: 1024 ** 2, Gi: 1024 ** 3 }

/** Parses a quantity of bytes. Supports integers only. */
export function bytesOf(text: string | undefined): number {
  const [, digits = '0', suffix = ''] = /^(\d+)(k|Ki|Mi|Gi|)$/.exec(text ?? '0') ?? []
  return Number(digits) * FACTORS[suffix]!
}
