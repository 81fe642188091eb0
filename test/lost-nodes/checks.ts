// What must hold while nodes are lost and return: no volume is writable on two nodes at once, and no process of a removed pod
// writes after its successor. What must hold at rest: nothing is left over on the nodes, in the drivers or in the cluster.
import { readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { quarantineOf } from '../../src/api/kinds/node/fencing.ts'
import { systemClock } from '../../src/base/clock.ts'
import { openHost } from '../../src/host/index.ts'
import type { RunningServer } from '../helpers/server.ts'
import { LOCAL_DRIVER, type LostNodesCluster, NODES } from './cluster.ts'
import { SHARED_DRIVER } from './shared-driver.ts'

const host = await openHost({ clock: systemClock() })

const COLLECTION_PATHS = {
  nodes: '/api/v1/nodes',
  pods: '/api/v1/pods',
  claims: '/api/v1/persistentvolumeclaims',
  volumes: '/api/v1/persistentvolumes',
  attachments: '/apis/storage.k8s.io/v1/volumeattachments',
  capacities: '/apis/storage.k8s.io/v1/csistoragecapacities',
  csiNodes: '/apis/storage.k8s.io/v1/csinodes',
  leases: '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases',
} as const

export async function listObjects(server: RunningServer, name: keyof typeof COLLECTION_PATHS): Promise<any[]> {
  const { status, text, json } = await server.call('GET', COLLECTION_PATHS[name])
  if (status !== 200) throw new Error(`GET ${COLLECTION_PATHS[name]}: ${status} ${text}`)
  return json.items
}

/** Returns the nodes on which each volume of the shared driver is mounted for writing. */
export async function readMountedNodes({
  shared,
  dirOf,
}: Pick<LostNodesCluster, 'shared' | 'dirOf'>): Promise<Map<string, Set<string>>> {
  const nodesByVolume = new Map<string, Set<string>>()
  for (const { root, target, options } of await host.mounts.list()) {
    const node = NODES.find((name) => target.startsWith(`${dirOf(name)}/`))
    const volume = basename(root)
    if (!node || options.includes('ro') || !root.endsWith(`/${basename(shared.volumesDir)}/${volume}`)) continue
    nodesByVolume.set(volume, (nodesByVolume.get(volume) ?? new Set()).add(node))
  }
  return nodesByVolume
}

/**
 * Returns the volumes that two nodes can write to. A node whose processes do not run does not count, nor does a node in quarantine: it
 * has returned, and its agent is unmounting what it mounted before.
 */
export async function findTwiceWritable(cluster: LostNodesCluster): Promise<string[]> {
  // The nodes are read before the mounts: a node that is in service now must have unmounted what is no longer its own.
  const nodes = await listObjects(cluster.server, 'nodes')
  const inService = nodes.filter((node) => quarantineOf(node) === undefined).map(({ metadata }) => metadata.name)
  const mounted = await readMountedNodes(cluster)
  return [...mounted].flatMap(([volume, onNodes]) => {
    const writers = [...onNodes].filter((node) => cluster.running.has(node) && inService.includes(node))
    return writers.length > 1 ? [`${volume} is writable on ${writers.join(' and ')}`] : []
  })
}

/** Returns the volumes to which a pod wrote again after another pod had written. Each line of a volume's log is the uid of a pod. */
export async function findInterleavedWrites({ shared }: LostNodesCluster): Promise<string[]> {
  const problems: string[] = []
  for (const volume of await readdir(shared.volumesDir)) {
    const text = await readFile(join(shared.volumesDir, volume, 'log'), 'utf8').catch(() => '')
    const writers = text.split('\n').filter((line, index, lines) => line !== '' && line !== lines[index - 1])
    const repeated = writers.find((writer, index) => writers.indexOf(writer) !== index)
    if (repeated) problems.push(`pod ${repeated} wrote to ${volume} again after another pod`)
  }
  return problems
}

/** Compares nodes, drivers and cluster while no claim is being provisioned and all pods run. Returns the differences. */
export async function findLeftovers(cluster: LostNodesCluster): Promise<string[]> {
  const { server, shared, dirOf } = cluster
  const list = (name: keyof typeof COLLECTION_PATHS) => listObjects(server, name)
  const [pods, claims, volumes, attachments] = [
    await list('pods'),
    await list('claims'),
    await list('volumes'),
    await list('attachments'),
  ]
  const volumeOf = ({ metadata, spec }: any) => {
    const [{ persistentVolumeClaim }] = spec.volumes
    const claim = claims.find(
      (candidate) =>
        candidate.metadata.name === persistentVolumeClaim.claimName &&
        candidate.metadata.namespace === metadata.namespace,
    )
    return volumes.find((volume) => volume.metadata.name === claim?.spec.volumeName)
  }
  const compare = (what: string, actual: readonly string[], expected: readonly string[]) => [
    ...actual.filter((item) => !expected.includes(item)).map((item) => `${what}: ${item} is left over`),
    ...expected.filter((item) => !actual.includes(item)).map((item) => `${what}: ${item} is missing`),
  ]
  const problems: string[] = []
  const handlesOf = (driver: string) =>
    volumes.filter(({ spec }) => spec.csi.driver === driver).map(({ spec }) => spec.csi.volumeHandle)
  const used = pods.map((pod) => ({ pod, volume: volumeOf(pod) }))
  problems.push(...used.filter(({ volume }) => !volume).map(({ pod }) => `pod ${pod.metadata.name} has no volume`))
  const usedOf = (driver: string) => used.filter(({ volume }) => volume?.spec.csi.driver === driver)

  const sharedVolumes = shared.fake.state.volumes
  problems.push(...compare('volume of the shared driver', Object.keys(sharedVolumes), handlesOf(SHARED_DRIVER)))
  const placed = usedOf(SHARED_DRIVER).map(({ pod, volume }) => ({ node: pod.spec.nodeName, volume }))
  const driverAttachments = Object.values(sharedVolumes).flatMap((volume) =>
    Object.keys(volume.attachments).map((node) => `${volume.id} on ${node}`),
  )
  problems.push(
    ...compare(
      'attachment in the driver',
      driverAttachments,
      placed.map(({ node, volume }) => `${volume.spec.csi.volumeHandle} on ${node}`),
    ),
    ...compare(
      'VolumeAttachment',
      attachments.map(({ spec }) => `${spec.source.persistentVolumeName} on ${spec.nodeName}`),
      placed.map(({ node, volume }) => `${volume.metadata.name} on ${node}`),
    ),
  )
  const mountList = await host.mounts.list()
  const loops = await host.loops.list()
  const localHandles: string[] = []
  for (const node of NODES) {
    const podsOfNode = used.filter(({ pod }) => pod.spec.nodeName === node)
    const targets = mountList.map(({ target }) => target).filter((target) => target.startsWith(`${dirOf(node)}/`))
    const isVolumeMount = (target: string) => target.includes('/volumes/kubernetes.io~csi/')
    const publishedOn = targets.filter(isVolumeMount).map((target) => target.split('/').slice(-5)[0]!)
    const uids = podsOfNode.map(({ pod }) => pod.metadata.uid)
    problems.push(...compare(`mount of a pod on ${node}`, publishedOn, uids))
    const staged = targets.filter((target) => target.includes('/plugins/'))
    if (staged.length !== podsOfNode.length)
      problems.push(`${node} has ${staged.length} staged volumes and ${podsOfNode.length} pods: ${staged.join(', ')}`)
    const localPods = usedOf(LOCAL_DRIVER).filter(({ pod }) => pod.spec.nodeName === node)
    const loopsOfNode = loops.filter(({ file }) => file.startsWith(`${dirOf(node)}/`))
    if (loopsOfNode.length !== localPods.length)
      problems.push(`${node} has ${loopsOfNode.length} loop devices and ${localPods.length} pods with local volumes`)
    const files = await readdir(join(dirOf(node), 'pool', 'volumes'))
    localHandles.push(...files.map((file) => file.replace(/\.img$/, '')))
  }
  problems.push(
    ...compare('volume of the local drivers', localHandles, handlesOf(LOCAL_DRIVER)),
    ...compare('node', (await list('nodes')).map(nameOf), NODES),
    ...compare('CSINode', (await list('csiNodes')).map(nameOf), NODES),
    ...compare('lease', (await list('leases')).map(nameOf), NODES),
    ...compare('capacity', (await list('capacities')).map(nodeOfCapacity).toSorted(), NODES),
  )
  return problems
}

const nameOf = ({ metadata }: any): string => metadata.name

export const nodeOfCapacity = ({ nodeTopology }: any): string =>
  Object.values(nodeTopology?.matchLabels ?? {})[0] as string
