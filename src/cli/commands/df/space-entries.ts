// Joins claims, volumes, pods and measured usage: one entry per claim, and one per volume without a claim.

import type { Stored } from '../../../api/kind.ts'
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import { hasTerminated } from '../../../api/kinds/pod/has-terminated.ts'
import { claimClassName, volumeClassName } from '../../../api/kinds/shared/class-names.ts'
import type { PersistentVolume } from '../../../api/kinds/volume/volume-schema.ts'
import { keyOfObject, type ObjectKey } from '../../../client/index.ts'
import { claimsOfPod } from '../../../volumes/claims-of-pod.ts'
import { PROVISIONED_BY } from '../../../volumes/names.ts'
import { attributesClassOf, provisionedIo } from '../../../volumes/provisioned-io.ts'
import type { UsageReport } from '../../../volumes/read-usage.ts'
import type { VolumeUsage } from '../../../volumes/volume-usage.ts'
import { bytesOf } from '../../space/bytes.ts'
import type { SpaceLists } from './cluster-lists.ts'
import { createNodesOfVolume } from './nodes-of-volume.ts'
import { createPoolOfVolume, type Pool } from './pools.ts'

/** Amounts that are not known, or that a claim without a volume does not have, are absent. */
export interface SpaceEntry extends VolumeUsage {
  /** Both absent for a volume without a claim. */
  readonly namespace?: string
  readonly claim?: string
  /** Absent for a claim without a volume. */
  readonly volume?: string
  /** Absent for a claim or volume without a class. */
  readonly class?: string
  readonly driver?: string
  /** The only node that can reach the volume, or the only one whose pods use it. */
  readonly node?: string
  /** The topology segment of the pool. */
  readonly pool?: string
  readonly requestBytes?: number
  readonly capacityBytes?: number
  readonly iopsLimit?: number
  readonly throughputLimitBytes?: number
  /** Why the usage is not known. */
  readonly unknownReason?: string
}

type Claim = Readonly<Stored<PersistentVolumeClaim>>
type Volume = Readonly<Stored<PersistentVolume>>

export interface EntryOptions {
  readonly lists: SpaceLists
  readonly pools: readonly Pool[]
  readonly usage: UsageReport
  /** Whether pods could be listed. */
  readonly hasPods: boolean
  /** The namespace of the lists, or undefined for all. */
  readonly namespace: string | undefined
}

export function createEntries(options: EntryOptions): readonly SpaceEntry[] {
  const { lists, pools, usage, hasPods, namespace } = options
  const nodesOfVolume = createNodesOfVolume(lists.nodes)
  const poolOfVolume = createPoolOfVolume(pools)
  const podNodes = nodesOfPods(lists.pods)
  const volumes = new Map(lists.volumes.map((volume) => [volume.metadata.name, volume]))
  const parameters = new Map(lists.attributesClasses.map(({ metadata, parameters }) => [metadata.name, parameters]))
  const claimUids = new Set(lists.claims.map(({ metadata }) => metadata.uid))

  function describeVolume(volume: Volume | undefined, claim: Claim | undefined) {
    const sources = { claim, volume, parameters: parameters.get(attributesClassOf({ claim, volume }) ?? '') }
    const { iops, throughputBytes } = provisionedIo(sources)
    const driver = volume?.spec?.csi?.driver ?? volume?.metadata.annotations?.[PROVISIONED_BY]
    const nodes = volume && nodesOfVolume(volume)
    const usedOn = claim ? (podNodes.get(keyOfObject(claim)) ?? []) : []
    const node = nodes?.length === 1 ? nodes[0] : usedOn.length === 1 ? usedOn[0] : undefined
    const pool = volume && poolOfVolume(driver, nodes)?.segment
    return withoutUndefined({
      driver,
      node,
      pool,
      capacityBytes: bytesOf(volume?.spec?.capacity?.storage ?? claim?.status?.capacity?.storage),
      iopsLimit: iops,
      throughputLimitBytes: throughputBytes,
    })
  }

  const toClaimEntry = (claim: Claim): SpaceEntry => {
    const key = keyOfObject(claim)
    const volumeName = volumeNameOf(claim)
    const measured = usage.byClaim.get(key)
    const nodes = podNodes.get(key) ?? []
    const isMeasured = measured?.usedBytes !== undefined
    const reason = isMeasured ? undefined : reasonOf(claim, { usage, nodes, hasPods })
    return {
      ...withoutUndefined({
        namespace: claim.metadata.namespace,
        claim: claim.metadata.name,
        volume: volumeName,
        class: claimClassName(claim) || undefined,
        requestBytes: bytesOf(claim.spec?.resources?.requests?.storage),
      }),
      ...describeVolume(volumes.get(volumeName ?? ''), claim),
      ...measured,
      ...withoutUndefined({ unknownReason: reason }),
    }
  }
  const toVolumeEntry = (volume: Volume): SpaceEntry => ({
    ...withoutUndefined({ volume: volume.metadata.name, class: volumeClassName(volume) || undefined }),
    ...describeVolume(volume, undefined),
    unknownReason: 'no claim uses the volume',
  })
  const isWithoutClaim = ({ spec }: Volume) =>
    (namespace === undefined || spec?.claimRef?.namespace === namespace) &&
    (!spec?.claimRef?.uid || !claimUids.has(spec.claimRef.uid))
  return [...lists.claims.map(toClaimEntry), ...lists.volumes.filter(isWithoutClaim).map(toVolumeEntry)]
}

/** Returns the nodes of the pods that use each claim and have not terminated. */
export function nodesOfPods(pods: SpaceLists['pods']): ReadonlyMap<ObjectKey, readonly string[]> {
  const nodesByClaim = new Map<ObjectKey, Set<string>>()
  for (const pod of pods) {
    const nodeName = pod.spec?.nodeName
    if (!nodeName || hasTerminated(pod)) continue
    for (const key of claimsOfPod(pod)) nodesByClaim.set(key, (nodesByClaim.get(key) ?? new Set()).add(nodeName))
  }
  return new Map([...nodesByClaim].map(([key, nodes]) => [key, [...nodes]]))
}

interface ReasonSources extends Pick<EntryOptions, 'usage' | 'hasPods'> {
  /** The nodes of the pods that use the claim. */
  readonly nodes: readonly string[]
}

/** Returns undefined for a claim that is not bound, although it may name the volume that it requests. */
const volumeNameOf = ({ spec, status }: Claim): string | undefined =>
  status?.phase === 'Pending' ? undefined : spec?.volumeName || undefined

/** Returns why the claim's usage is not known. */
function reasonOf(claim: Claim, { usage, nodes, hasPods }: ReasonSources): string {
  const { spec } = claim
  if (volumeNameOf(claim) === undefined) return 'the claim has no volume yet'
  if (spec?.volumeMode === 'Block') return 'a raw block device has no file system'
  if (hasPods && nodes.length === 0) return 'no pod has the volume mounted'
  if (usage.missingRule !== undefined) return `you need permission to ${usage.missingRule}`
  if (usage.problem !== undefined) return usage.problem
  const [problem] = nodes.flatMap((node) => {
    const message = usage.nodeProblems.get(node)
    return message === undefined ? [] : [`node ${node}: ${message}`]
  })
  return problem ?? 'the node has not reported the usage'
}

/** Leaves out undefined fields. */
const withoutUndefined = <T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never
