// Tracks the effects of calls in the driver: volumes, attachments, staged and published paths. An effect counts from the start
// of its call until a final error code or the opposite call, even if a fault hides the response from the controllers.
// remove-leftovers.ts undoes the effects that a check has left.
import type { DescMethod, Message } from '@bufbuild/protobuf'
import type { CreateVolumeRequest, CreateVolumeResponse } from '../../csi/gen/csi_pb.js'
import { CsiError } from '../../csi/index.ts'

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
  /** Drops an entry after the attempt to undo its effect, so that a failure is reported only once. */
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

/** The effect of a call: an entry, and the map and key for it. */
interface TrackedEffect {
  readonly map: Map<string, object>
  readonly key: string
  readonly entry: object
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

export function createInventory(): Inventory {
  const volumes = new Map<string, VolumeEntry>()
  const unknownCreations = new Map<string, CreateVolumeRequest>()
  const attachments = new Map<string, AttachmentEntry>()
  const staged = new Map<string, PathEntry>()
  const published = new Map<string, PathEntry>()
  /** Entries of calls that have not succeeded yet. */
  const unconfirmed = new Set<object>()
  const maps = { volumes, unknownCreations, attachments, staged, published }

  /** Returns the attachment or path that a call adds. A CreateVolume call has no entry until its response names the volume. */
  const effectOf = (method: DescMethod, request: Message): TrackedEffect | undefined => {
    const fields = request as unknown as Record<string, string>
    const { volumeId = '', nodeId = '', stagingTargetPath = '', targetPath = '' } = fields
    if (!volumeId) return undefined
    if (method.name === 'ControllerPublishVolume' && nodeId)
      return { map: attachments, key: `${volumeId} ${nodeId}`, entry: { volumeId, nodeId } }
    if (method.name === 'NodeStageVolume' && stagingTargetPath)
      return { map: staged, key: `${volumeId} ${stagingTargetPath}`, entry: { volumeId, path: stagingTargetPath } }
    if (method.name === 'NodePublishVolume' && targetPath)
      return { map: published, key: `${volumeId} ${targetPath}`, entry: { volumeId, path: targetPath } }
    return undefined
  }

  return {
    ...maps,
    begin(method, request) {
      const { name = '' } = request as unknown as Record<string, string>
      if (method.name === 'CreateVolume' && name) unknownCreations.set(name, request as CreateVolumeRequest)
      const effect = effectOf(method, request)
      if (!effect || effect.map.has(effect.key)) return
      effect.map.set(effect.key, effect.entry)
      unconfirmed.add(effect.entry)
    },
    succeed(method, request, response) {
      const fields = request as unknown as Record<string, string>
      const { volumeId = '', nodeId = '', stagingTargetPath = '', targetPath = '', name = '' } = fields
      const effect = effectOf(method, request)
      if (effect) {
        unconfirmed.delete(effect.map.get(effect.key) ?? effect.entry)
        if (!effect.map.has(effect.key)) effect.map.set(effect.key, effect.entry)
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
      const effect = effectOf(method, request)
      const entry = effect?.map.get(effect.key)
      // Keep the entry of an earlier successful call: a final failure of a repeated call does not undo it.
      if (effect && entry && unconfirmed.has(entry)) effect.map.delete(effect.key)
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
