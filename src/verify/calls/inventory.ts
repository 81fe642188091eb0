// Tracks everything that calls create in the driver: volumes, attachments, staged and published paths. A response counts even if
// a fault hides it from the controllers. removeLeftovers removes from the driver what a check has left.
import type { DescMethod, Message } from '@bufbuild/protobuf'
import type { CreateVolumeRequest, CreateVolumeResponse } from '../../csi/gen/csi_pb.js'
import { type CsiDriver, CsiError } from '../../csi/index.ts'

export interface Inventory {
  readonly volumes: ReadonlyMap<string, VolumeEntry>
  /** CreateVolume calls with an unknown outcome, by name. */
  readonly unknownCreations: ReadonlyMap<string, CreateVolumeRequest>
  readonly attachments: ReadonlyMap<string, AttachmentEntry>
  readonly staged: ReadonlyMap<string, PathEntry>
  readonly published: ReadonlyMap<string, PathEntry>
  begin(method: DescMethod, request: Message): void
  succeed(method: DescMethod, request: Message, response: Message): void
  fail(method: DescMethod, request: Message, error: unknown): void
  /** Drops an entry that cannot be removed from the driver, so that it is reported only once. */
  forget(kind: 'volumes' | 'unknownCreations' | 'attachments' | 'staged' | 'published', key: string): void
  /** Returns one text per entry. */
  describe(): string[]
}

interface VolumeEntry {
  readonly volumeId: string
  /** The name in the CreateVolume request. */
  readonly name: string
}

interface AttachmentEntry {
  readonly volumeId: string
  readonly nodeId: string
}

interface PathEntry {
  readonly volumeId: string
  readonly path: string
}

interface Entry {
  readonly map: Map<string, object>
  readonly key: string
  readonly value: object
}

/** Codes after which the call may have had an effect. */
const UNCERTAIN_CODES: ReadonlySet<string> = new Set([
  'CANCELLED',
  'DEADLINE_EXCEEDED',
  'UNAVAILABLE',
  'ABORTED',
  'UNKNOWN',
  'INTERNAL',
])

/** Codes that a driver returns while it is working on an earlier call or cannot be reached. */
const PENDING_CODES: ReadonlySet<string> = new Set(['CANCELLED', 'DEADLINE_EXCEEDED', 'UNAVAILABLE', 'ABORTED'])

export function createInventory(): Inventory {
  const volumes = new Map<string, VolumeEntry>()
  const unknownCreations = new Map<string, CreateVolumeRequest>()
  const attachments = new Map<string, AttachmentEntry>()
  const staged = new Map<string, PathEntry>()
  const published = new Map<string, PathEntry>()
  /** Entries of calls that have not succeeded yet. */
  const unconfirmed = new Set<object>()
  const maps = { volumes, unknownCreations, attachments, staged, published }

  /** Returns the entry that a successful call adds. */
  const findEntry = (method: DescMethod, request: Message): Entry | undefined => {
    const fields = request as unknown as Record<string, string>
    const { volumeId = '', nodeId = '', stagingTargetPath = '', targetPath = '' } = fields
    if (!volumeId) return undefined
    if (method.name === 'ControllerPublishVolume' && nodeId)
      return { map: attachments, key: `${volumeId} ${nodeId}`, value: { volumeId, nodeId } }
    if (method.name === 'NodeStageVolume' && stagingTargetPath)
      return { map: staged, key: `${volumeId} ${stagingTargetPath}`, value: { volumeId, path: stagingTargetPath } }
    if (method.name === 'NodePublishVolume' && targetPath)
      return { map: published, key: `${volumeId} ${targetPath}`, value: { volumeId, path: targetPath } }
    return undefined
  }

  return {
    ...maps,
    begin(method, request) {
      const { name = '' } = request as unknown as Record<string, string>
      if (method.name === 'CreateVolume' && name) unknownCreations.set(name, request as CreateVolumeRequest)
      const entry = findEntry(method, request)
      if (!entry || entry.map.has(entry.key)) return
      entry.map.set(entry.key, entry.value)
      unconfirmed.add(entry.value)
    },
    succeed(method, request, response) {
      const fields = request as unknown as Record<string, string>
      const { volumeId = '', nodeId = '', stagingTargetPath = '', targetPath = '', name = '' } = fields
      const entry = findEntry(method, request)
      if (entry) {
        unconfirmed.delete(entry.map.get(entry.key) ?? entry.value)
        if (!entry.map.has(entry.key)) entry.map.set(entry.key, entry.value)
      }
      switch (method.name) {
        case 'CreateVolume': {
          unknownCreations.delete(name)
          const createdId = (response as CreateVolumeResponse).volume?.volumeId
          if (createdId) volumes.set(createdId, { volumeId: createdId, name })
          break
        }
        case 'DeleteVolume':
          volumes.delete(volumeId)
          break
        case 'ControllerUnpublishVolume':
          for (const [key, entry] of attachments)
            if (entry.volumeId === volumeId && (nodeId === '' || entry.nodeId === nodeId)) attachments.delete(key)
          break
        case 'NodeUnstageVolume':
          staged.delete(`${volumeId} ${stagingTargetPath}`)
          break
        case 'NodeUnpublishVolume':
          published.delete(`${volumeId} ${targetPath}`)
          break
      }
    },
    fail(method, request, error) {
      if (!(error instanceof CsiError) || UNCERTAIN_CODES.has(error.codeName)) return
      const fields = request as unknown as Record<string, string>
      if (method.name === 'CreateVolume') unknownCreations.delete(fields.name ?? '')
      const entry = findEntry(method, request)
      const value = entry?.map.get(entry.key)
      // Keep the entry of an earlier successful call: a final failure of a repeated call does not undo it.
      if (entry && value && unconfirmed.has(value)) entry.map.delete(entry.key)
    },
    forget: (kind, key) => void maps[kind].delete(key),
    describe: () => [
      ...[...published.values()].map(({ volumeId, path }) => `volume ${volumeId} is published at ${path}`),
      ...[...staged.values()].map(({ volumeId, path }) => `volume ${volumeId} is staged at ${path}`),
      ...[...attachments.values()].map(({ volumeId, nodeId }) => `volume ${volumeId} is attached to node ${nodeId}`),
      ...[...unknownCreations.keys()].map((name) => `the volume named ${name} may exist`),
      ...[...volumes.values()].map(({ volumeId, name }) => `volume ${volumeId} (${name}) exists`),
    ],
  }
}

export interface RemoveDeps {
  readonly csi: CsiDriver
  /** The secrets of DeleteVolume and ControllerUnpublishVolume. */
  readonly deleteSecrets: Readonly<Record<string, string>>
  readonly unpublishSecrets: Readonly<Record<string, string>>
  pause(ms: number): Promise<void>
}

/** A driver may still be working on a cancelled call, and then returns ABORTED. */
const ATTEMPTS_MAX = 4
const RETRY_DELAY_MS = 100

/**
 * Undoes everything in the reverse order of a volume's lifecycle. Returns what could not be removed, with the driver's response.
 */
export async function removeLeftovers(inventory: Inventory, { csi, pause, ...secrets }: RemoveDeps): Promise<string[]> {
  const problems: string[] = []
  const undo = async (problem: string, call: () => Promise<unknown>): Promise<boolean> => {
    for (let attempts = 1; ; attempts++) {
      try {
        await call()
        return true
      } catch (error) {
        if (!(error instanceof CsiError)) throw error
        if (error.codeName === 'NOT_FOUND') return true // the driver no longer has the volume; leftover mounts are found later
        if (attempts < ATTEMPTS_MAX && error.codeName !== 'UNIMPLEMENTED') {
          await pause(RETRY_DELAY_MS * attempts)
          continue
        }
        problems.push(`${problem}: ${error.codeName} (${error.message})`)
        return false
      }
    }
  }
  for (const [key, { volumeId, path }] of inventory.published) {
    await undo(`volume ${volumeId} stays published at ${path}`, () =>
      csi.node.nodeUnpublishVolume({ volumeId, targetPath: path }),
    )
    inventory.forget('published', key)
  }
  for (const [key, { volumeId, path }] of inventory.staged) {
    await undo(`volume ${volumeId} stays staged at ${path}`, () =>
      csi.node.nodeUnstageVolume({ volumeId, stagingTargetPath: path }),
    )
    inventory.forget('staged', key)
  }
  for (const [key, { volumeId, nodeId }] of inventory.attachments) {
    const request = { volumeId, nodeId, secrets: secrets.unpublishSecrets }
    await undo(`volume ${volumeId} stays attached to node ${nodeId}`, () =>
      csi.controller.controllerUnpublishVolume(request),
    )
    inventory.forget('attachments', key)
  }
  // Without its id, a volume can only be found by creating it again.
  for (const [name, request] of inventory.unknownCreations) {
    const isKnown = await undo(`the volume named ${name} may exist`, async () => {
      try {
        await csi.controller.createVolume(request)
      } catch (error) {
        if (!(error instanceof CsiError) || PENDING_CODES.has(error.codeName)) throw error
        inventory.forget('unknownCreations', name) // final failure: the volume does not exist
      }
    })
    if (!isKnown) inventory.forget('unknownCreations', name)
  }
  for (const [volumeId, { name }] of inventory.volumes) {
    await undo(`volume ${volumeId} (${name}) stays`, () =>
      csi.controller.deleteVolume({ volumeId, secrets: secrets.deleteSecrets }),
    )
    inventory.forget('volumes', volumeId)
  }
  return problems
}
