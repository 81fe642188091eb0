// Performs the user actions of a plan: sends requests that bypass the network, and returns a short name for each outcome.
// Records acknowledged writes for the lost-write checker.
import type { Kind, KubeObject } from '../../api/kind.ts'
import { volumeAttributesClassKind } from '../../api/kinds/attributes-class/attributes-class.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { configMapKind } from '../../api/kinds/config-map/config-map.ts'
import { csiStorageCapacityKind } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity.ts'
import { limitRangeKind } from '../../api/kinds/limit-range/limit-range.ts'
import { namespaceKind } from '../../api/kinds/namespace/namespace.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import { resourceQuotaKind } from '../../api/kinds/resource-quota/resource-quota.ts'
import { statefulSetKind } from '../../api/kinds/stateful-set/stateful-set.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { quantityToBytes } from '../../api/quantity.ts'
import { ApiError } from '../../api/status-error.ts'
import type { Client } from '../../client/index.ts'
import { WriteRejectedError } from '../../store/index.ts'
import { addPremadeVolume } from '../environment/premade-volume.ts'
import { DRIVERS } from '../plan/catalog.ts'
import type { KindName, Manifest, Ref, UserAction } from '../plan/plan.ts'
import { keyOf } from '../workload/draft.ts'
import { isInvalid } from '../workload/invalid-objects.ts'
import type { System } from './system.ts'
import type { View } from './view.ts'

export interface UsersOptions {
  readonly system: Pick<System, 'cluster' | 'drivers' | 'processes' | 'setGate'>
  readonly view: Pick<View, 'claims' | 'volumes'>
  note(line: string): void
}

export interface Users {
  /**
   * Returns an outcome such as `done`, `refused 422` or `over quota`; or `BUG …` for a response that no server may give.
   * Never settles if the server crashes during the request.
   */
  perform(action: UserAction): Promise<string>
  readonly acknowledgedWrites: readonly AcknowledgedWrite[]
}

/** A write that the server acknowledged. */
export interface AcknowledgedWrite {
  readonly atMs: number
  readonly kind: KindName
  /** `namespace/name`, or the name of a cluster-scoped object. */
  readonly key: string
  readonly uid: string
  /** The version of the written object, or the last known version of a deleted one. */
  readonly resourceVersion: string
  readonly isDeleted: boolean
}

const KINDS: Readonly<Record<KindName, Kind>> = {
  claim: persistentVolumeClaimKind,
  pod: podKind,
  volume: persistentVolumeKind,
  'storage class': storageClassKind,
  'attributes class': volumeAttributesClassKind,
  quota: resourceQuotaKind,
  'limit range': limitRangeKind,
  node: nodeKind,
  namespace: namespaceKind,
  'config map': configMapKind,
  capacity: csiStorageCapacityKind,
  'stateful set': statefulSetKind,
}

export function createUsers({ system, view, note }: UsersOptions): Users {
  const { cluster } = system
  const acknowledgedWrites: AcknowledgedWrite[] = []

  function recordWrite(kind: KindName, { metadata }: Readonly<KubeObject>, isDeleted = false): void {
    const { namespace, name = '', uid = '', resourceVersion = '' } = metadata
    const key = keyOf({ ...(namespace ? { namespace } : {}), name })
    acknowledgedWrites.push({ atMs: cluster.simulation.nowMs, kind, key, uid, resourceVersion, isDeleted })
  }

  async function create(client: Client, kind: KindName, object: Manifest, dryRun = false): Promise<string> {
    const createdObject = await client.create(KINDS[kind], object as unknown as KubeObject, dryRun ? { dryRun } : {})
    if (!dryRun) recordWrite(kind, createdObject)
    return isInvalid(object) ? 'BUG an invalid object was stored' : 'done'
  }

  async function createTogether(client: Client, kind: KindName, objects: readonly Manifest[]): Promise<string> {
    const writes = objects.map(
      (object) => ({ do: 'create', kind: KINDS[kind], object: object as unknown as KubeObject }) as const,
    )
    await client.commit(writes)
    return 'done'
  }

  async function edit(client: Client, kind: KindName, ref: Ref, patch: object): Promise<string> {
    const remainingObject = await client.patch(KINDS[kind], ref, { type: 'strategic', body: patch })
    if (remainingObject) recordWrite(kind, remainingObject) // undefined if the edit completed a deletion
    return isInvalid(patch) ? 'BUG an invalid object was stored' : 'done'
  }

  async function remove(client: Client, action: Extract<UserAction, { do: 'delete' }>): Promise<string> {
    const { kind, graceSeconds, propagation } = action
    const ref = kind === 'volume' ? volumeOf(action.ref) : action.ref
    if (!ref) return 'not there'
    const storedObject = await client.get(KINDS[kind], ref)
    // The uid prevents the deletion of another object that got the same name in between.
    const remainingObject = await client.delete(KINDS[kind], ref, {
      uid: storedObject.metadata.uid,
      ...(graceSeconds === undefined ? {} : { gracePeriodSeconds: graceSeconds }),
      ...(propagation ? { propagation } : {}),
    })
    recordWrite(kind, remainingObject ?? storedObject, remainingObject === undefined)
    return 'done'
  }

  /** Returns a volume by its own name, or the current or last volume of a claim. */
  function volumeOf({ namespace, name }: Ref): Ref | undefined {
    if (!namespace) return { name }
    const volumesOfClaim = [...view.volumes.values()].filter(
      ({ spec }) => spec?.claimRef?.namespace === namespace && spec.claimRef.name === name,
    )
    const volume = volumesOfClaim.find(({ status }) => status?.phase === 'Bound') ?? volumesOfClaim.at(-1)
    return volume && { name: volume.metadata.name ?? '' }
  }

  async function editVolume(client: Client, ref: Ref, patch: Manifest): Promise<string> {
    const { claimRef } = (patch.spec ?? {}) as Manifest
    if (claimRef === null) return releaseVolume(client, ref, patch)
    if (claimRef) return reserveVolume(client, ref, patch)
    const volume = volumeOf(ref)
    return volume ? edit(client, 'volume', volume, patch) : 'not there'
  }

  /** Clears the claimRef of a volume if it is Released, at the version in the view. */
  async function releaseVolume(client: Client, ref: Ref, patch: Manifest): Promise<string> {
    const releasedVolume = [...view.volumes.values()].find(({ metadata, spec, status }) => {
      if (status?.phase !== 'Released') return false
      const { namespace, name } = spec?.claimRef ?? {}
      return ref.namespace ? ref.namespace === namespace && ref.name === name : metadata.name === ref.name
    })
    if (!releasedVolume) return 'not there'
    const { name = '', uid, resourceVersion } = releasedVolume.metadata
    return edit(client, 'volume', { name }, { ...patch, metadata: { uid, resourceVersion } })
  }

  /** Reserves a volume if it is free, at the version in the view. */
  async function reserveVolume(client: Client, { name }: Ref, patch: Manifest): Promise<string> {
    const volume = view.volumes.get(name)
    if (!volume || volume.spec?.claimRef) return 'not there'
    const { uid, resourceVersion } = volume.metadata
    return edit(client, 'volume', { name }, { ...patch, metadata: { uid, resourceVersion } })
  }

  async function revert(client: Client, ref: Ref): Promise<string> {
    const claim = view.claims.get(keyOf(ref))
    if (!claim) return 'not there'
    const { capacity, currentVolumeAttributesClassName } = claim.status ?? {}
    const requests = claim.spec?.resources?.requests ?? {}
    const amounts = Object.keys(requests).map((key) => [
      key,
      capacity?.[key] ?? (key === 'storage' ? requests[key] : null),
    ])
    const spec = {
      resources: { requests: Object.fromEntries(amounts) },
      volumeAttributesClassName: currentVolumeAttributesClassName ?? null,
    }
    return edit(client, 'claim', ref, { metadata: { uid: claim.metadata.uid }, spec })
  }

  async function importVolume(client: Client, action: Extract<UserAction, { do: 'import' }>): Promise<string> {
    const { capacity } = (action.object.spec ?? {}) as { readonly capacity?: { readonly storage?: string } }
    addPremadeVolume(
      system.drivers.get(action.driver)!,
      action.name,
      Number(quantityToBytes(capacity?.storage ?? '1Gi')),
    )
    return create(client, 'volume', action.object)
  }

  /** Restarts every process that uses gates; controllers stop before the server, as the operations guide requires. */
  function setGate(gate: string, isOn: boolean): string {
    system.setGate(gate, isOn)
    const servers = [...system.processes].filter(([name]) => name === 'server')
    const otherProcesses = [...system.processes].filter(
      ([name]) =>
        name !== 'server' && !name.startsWith('agent-') && !DRIVERS.some((driver) => name === `driver ${driver}`),
    )
    for (const [, process] of [...otherProcesses, ...servers]) process.crash()
    for (const [, process] of [...servers, ...otherProcesses]) process.start()
    return 'done'
  }

  async function performAction(action: UserAction): Promise<string> {
    if (action.do === 'set gate') return setGate(action.gate, action.isOn)
    const client = cluster.anyDirectClient()
    if (!client) return 'no server'
    switch (action.do) {
      case 'create':
        return create(client, action.kind, action.object, action.dryRun)
      case 'create together':
        return createTogether(client, action.kind, action.objects)
      case 'edit':
        return action.kind === 'volume'
          ? editVolume(client, action.ref, action.patch)
          : edit(client, action.kind, action.ref, action.patch)
      case 'delete':
        return remove(client, action)
      case 'revert':
        return revert(client, action.ref)
      case 'import':
        return importVolume(client, action)
    }
  }

  return {
    acknowledgedWrites,
    async perform(action) {
      try {
        return await performAction(action)
      } catch (error) {
        const outcome = describeOutcome(error)
        if (outcome.startsWith('BUG')) note(`user: ${(error as Error)?.stack ?? error}`)
        return outcome
      }
    },
  }
}

function describeOutcome(error: unknown): string {
  if (!(error instanceof ApiError)) return `BUG ${String(error)}`
  const { code, reason, message, cause } = error
  if (cause instanceof WriteRejectedError) return 'disk refused'
  if (code >= 500 && code !== 503) return `BUG ${code} ${message}`
  if (code === 403 && message.includes('exceeded quota')) return 'over quota'
  if (code === 404) return 'not there'
  if (code === 409) return reason === 'AlreadyExists' ? 'exists' : 'conflict'
  return `refused ${code}`
}
