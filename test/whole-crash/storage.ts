// Reads the volumes of the drivers from ListVolumes, from the files of the pools and from the loop devices of the host.
// While the system runs, repeatedly checks that no volume and no file becomes smaller.
import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { systemClock } from '../../src/base/clock.ts'
import { silentLog } from '../../src/base/log.ts'
import { type CsiConnection, connectDriver } from '../../src/csi/index.ts'
import { openHost } from '../../src/host/index.ts'
import { agentDirOf, type Cluster, poolOf, socketOf } from './cluster.ts'

export interface DriverVolume {
  readonly id: string
  readonly name: string
  readonly node: string
  readonly state: string
  readonly capacityBytes: number
  readonly fileBytes: number
  readonly limits: { readonly iops?: number; readonly throughputBytes?: number }
}

export interface RealStorage {
  /** Returns the connection to the driver on this node. */
  driver(node: string): CsiConnection
  /** Returns the volumes by id, according to the records and files in the pools. */
  volumes(): Promise<Map<string, DriverVolume>>
  /** Returns the uids of pods with a directory on a node. */
  podDirs(): Promise<string[]>
  /** Returns the ids of volumes with a loop device. */
  attachedVolumeIds(): Promise<string[]>
  /** Returns the contradictions between ListVolumes, records and files of the pools. */
  contradictions(): Promise<string[]>
  /** Checks all sizes repeatedly until `stop` is called. */
  watchSizes(): Promise<void>
  readonly violations: readonly string[]
  readonly checks: number
  stop(): void
}

const CHECK_INTERVAL_MS = 200
const IMAGE = '.img'

export function openStorage(cluster: Cluster): RealStorage {
  const clock = systemClock()
  const connections = new Map(
    cluster.nodes.map((node) => [node, connectDriver({ address: socketOf(cluster.dir, node), clock, log: silentLog })]),
  )
  const host = openHost({ clock })
  const largestSizes = new Map<string, { capacityBytes: number; fileBytes: number }>()
  const violations: string[] = []
  const stopController = new AbortController()
  let checks = 0

  async function readVolumes(): Promise<Map<string, DriverVolume>> {
    const volumes = new Map<string, DriverVolume>()
    for (const node of cluster.nodes) {
      const records = join(poolOf(cluster.dir, node), '.stowage', 'volumes')
      for (const file of await readdir(records).catch(() => [])) {
        if (!file.endsWith('.json')) continue // a record that is being written
        const text = await readFile(join(records, file), 'utf8').catch(() => undefined)
        if (!text) continue // deleted since the directory was read
        const { id, name, state, capacityBytes, limits } = JSON.parse(text)
        const image = join(poolOf(cluster.dir, node), 'volumes', `${id}${IMAGE}`)
        const fileBytes = (await stat(image).catch(() => undefined))?.size ?? 0
        volumes.set(id, { id, name, node, state, capacityBytes, fileBytes, limits })
      }
    }
    return volumes
  }

  async function checkSizes(): Promise<void> {
    for (const { id, state, capacityBytes, fileBytes } of (await readVolumes()).values()) {
      if (state !== 'ready' && state !== 'growing') continue
      const largestSize = largestSizes.get(id) ?? { capacityBytes: 0, fileBytes: 0 }
      if (capacityBytes < largestSize.capacityBytes) violations.push(`${id} shrank to ${capacityBytes}`)
      // A size of zero means that the file was deleted after its record was read.
      if (fileBytes > 0 && fileBytes < largestSize.fileBytes)
        violations.push(`the file of ${id} shrank to ${fileBytes}`)
      largestSizes.set(id, {
        capacityBytes: Math.max(capacityBytes, largestSize.capacityBytes),
        fileBytes: Math.max(fileBytes, largestSize.fileBytes),
      })
    }
    checks++
  }

  return {
    driver: (node) => connections.get(node)!,
    volumes: readVolumes,
    violations,
    get checks() {
      return checks
    },
    async podDirs() {
      const dirs = cluster.nodes.map((node) => readdir(join(agentDirOf(cluster.dir, node), 'pods')).catch(() => []))
      return (await Promise.all(dirs)).flat()
    },
    async attachedVolumeIds() {
      const pools = cluster.nodes.map((node) => join(poolOf(cluster.dir, node), 'volumes'))
      const files = (await (await host).loops.list()).map(({ file }) => file)
      return files.filter((file) => pools.includes(dirname(file))).map((file) => basename(file, IMAGE))
    },
    async contradictions() {
      const recordedVolumes = await readVolumes()
      const problems = [...recordedVolumes.values()].flatMap(({ id, state, capacityBytes, fileBytes }) => [
        ...(state === 'ready' ? [] : [`${id} is still ${state}`]),
        ...(fileBytes >= capacityBytes
          ? []
          : [`${id} has the capacity ${capacityBytes}, but its file has ${fileBytes}`]),
      ])
      for (const node of cluster.nodes) {
        const { entries } = await connections.get(node)!.controller.listVolumes({})
        const listedVolumes = entries.map(({ volume }) => volume!)
        const nodeVolumes = [...recordedVolumes.values()].filter((volume) => volume.node === node)
        const files = await readdir(join(poolOf(cluster.dir, node), 'volumes'))
        const setAsideFiles = await readdir(join(poolOf(cluster.dir, node), '.stowage', 'set-aside')).catch(() => [])
        for (const { volumeId, capacityBytes } of listedVolumes) {
          if (Number(capacityBytes) !== recordedVolumes.get(volumeId)?.capacityBytes)
            problems.push(`${node} lists ${volumeId} with ${capacityBytes}, but its record has another size`)
        }
        for (const { id } of nodeVolumes)
          if (!listedVolumes.some(({ volumeId }) => volumeId === id)) problems.push(`${node} does not list ${id}`)
        for (const file of files)
          if (!recordedVolumes.has(file.slice(0, -IMAGE.length)))
            problems.push(`${node} stores the file ${file}, which belongs to no volume`)
        for (const file of setAsideFiles) problems.push(`${node} has set aside ${file}`)
      }
      return problems
    },
    async watchSizes() {
      while (!stopController.signal.aborted) {
        await checkSizes()
        await pause(CHECK_INTERVAL_MS)
      }
    },
    stop() {
      stopController.abort()
      for (const connection of connections.values()) connection.close()
    },
  }
}
