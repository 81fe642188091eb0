// Decides which operation in progress may own a volume or snapshot that no API object refers to, and whether a volume may be
// that of a lost PV. Pure. A volume or snapshot with such an owner is neither adopted nor deleted; the volume of a lost PV is
// adopted, but not deleted.
//
// CSI does not report which claim a listed volume was created for. The claim is known if the volume's name or handle contains the
// UID of the claim, or if the handle is the one that the local driver derives from it. If the name is not known, every claim that
// the driver may be provisioning could be the owner.
import { isRecord } from '../../../api/decode.ts'
import { annotationOf, claimClassName } from '../../../api/kinds/shared/class-names.ts'
import { parseEntries } from '../../../controllers/provisioning/intent-entries.ts'
import { INTENTS_ANNOTATION } from '../../../controllers/provisioning/intent-journal.ts'
import { isAssigned } from '../../../controllers/provisioning/select-claim.ts'
import { volumeIdOf } from '../../../driver/ids.ts'
import { DRIVER_NAME } from '../../../driver/index.ts'
import { intentLease } from '../../../processes/lease-names.ts'
import { PROVISIONER, PROVISIONER_BETA } from '../../../volumes/names.ts'
import { INTENT_PREFIX } from '../../../volumes/provisioning-intent.ts'
import type { Cluster } from './cluster.ts'

/** A claim for which the driver may be creating a volume. */
export interface ProvisioningClaim {
  readonly uid: string
  /** `shop/orders` */
  readonly name: string
  /** Whether a provisioner has recorded that it may have called the driver. Provisioners other than Stowage's record nothing. */
  readonly hasIntent: boolean
}

export interface Owners {
  readonly claims: readonly ProvisioningClaim[]
  /** Why the claims are not known completely. Any volume may then have an owner. */
  readonly problem?: string
}

export function findProvisioningClaims(driver: string, cluster: Cluster): Owners {
  const claims = new Map<string, ProvisioningClaim>()
  for (const claim of cluster.claims) {
    const { uid, namespace, name, finalizers = [] } = claim.metadata
    const hasIntent = finalizers.some((finalizer) => isIntentOf(driver, finalizer))
    if (hasIntent || isAssigned(claim, driver)) claims.set(uid, { uid, name: `${namespace}/${name}`, hasIntent })
  }
  // The object of an operation may be a deleted claim, whose provisioner still has to delete the volume.
  const others = new Set(
    cluster.claims.filter(({ metadata }) => !claims.has(metadata.uid)).map(({ metadata }) => metadata.uid),
  )
  for (const { object, component } of cluster.operations) {
    const { kind, uid, namespace, name } = object
    if (component !== 'provisioner' || kind !== 'PersistentVolumeClaim' || !uid || others.has(uid)) continue
    claims.set(uid, { uid, name: `${namespace}/${name}`, hasIntent: true })
  }
  try {
    for (const claim of readJournaledClaims(driver, cluster)) claims.set(claim.uid, claim)
  } catch (error) {
    return { claims: [...claims.values()], problem: (error as Error).message }
  }
  const [rule] = cluster.missingOwnerRules
  return rule === undefined
    ? { claims: [...claims.values()] }
    : { claims: [...claims.values()], problem: `you need permission to ${rule}` }
}

const INTENT_CHARACTERS_MAX = 63

/**
 * Returns whether a finalizer is a provisioner's intent for this driver. The finalizer may contain only part of the driver's
 * name.
 */
function isIntentOf(driver: string, finalizer: string): boolean {
  if (!finalizer.startsWith(INTENT_PREFIX)) return false
  const name = finalizer.slice(INTENT_PREFIX.length)
  if (name === driver || name.startsWith(`${driver}.`)) return true
  const separator = name.lastIndexOf('.')
  return name.length === INTENT_CHARACTERS_MAX && driver.startsWith(name.slice(0, separator))
}

function readJournaledClaims(driver: string, { leases }: Cluster): ProvisioningClaim[] {
  const name = intentLease(driver)
  return leases
    .filter(({ metadata }) => metadata.name === name)
    .flatMap(({ metadata }) => {
      const place = `the annotation "${INTENTS_ANNOTATION}" of the lease "${metadata.namespace}/${name}"`
      const entries = parseEntries(metadata.annotations?.[INTENTS_ANNOTATION], place)
      return [...entries.values()].map(({ claim }) => ({
        uid: claim.metadata.uid,
        name: `${claim.metadata.namespace}/${claim.metadata.name}`,
        hasIntent: true,
      }))
    })
}

export interface OwnedVolume {
  readonly driver: string
  readonly handle: string
  /** The name in the request that created the volume, if it is known. */
  readonly name?: string
}

export interface OwnerOptions {
  /** The handles that the user has named. For these, a claim without an intent counts only if it is known to be the owner. */
  readonly namedHandles: ReadonlySet<string>
}

/** Returns why the volume may belong to an operation in progress, or undefined. */
export function explainVolumeOwner(
  volume: OwnedVolume,
  owners: Owners,
  { namedHandles }: OwnerOptions,
): string | undefined {
  for (const claim of owners.claims) {
    const relation = compareOwner(volume, claim.uid)
    if (relation === 'same') return `the volume is being provisioned for the claim ${claim.name}`
    if (relation === 'unknown' && (claim.hasIntent || !namedHandles.has(volume.handle)))
      return `the volume may belong to the claim ${claim.name}, whose provisioning has not ended`
  }
  return owners.problem === undefined ? undefined : `the owner is not known: ${owners.problem}`
}

/** Provisioners may shorten the UID in a volume's name. Fewer characters than this do not identify a claim. */
const UID_CHARACTERS_MIN = 8

/** Returns whether the volume was created for the claim with this UID. */
function compareOwner({ driver, handle, name }: OwnedVolume, uid: string): 'same' | 'other' | 'unknown' {
  if (handle.includes(uid) || name?.includes(uid)) return 'same'
  if (driver === DRIVER_NAME && handle === volumeIdOf(`pvc-${uid}`)) return 'same'
  if (name === undefined) return 'unknown'
  return name.replaceAll('-', '').includes(uid.replaceAll('-', '').slice(0, UID_CHARACTERS_MIN)) ? 'unknown' : 'other'
}

/** A PV that no longer exists, but to which an object still refers. Its volume may be an orphan. */
export interface LostVolume {
  readonly pvName: string
  /** The UID of the claim that is bound to the PV. */
  readonly claimUid?: string
  /** `the claim shop/orders` */
  readonly referrer: string
}

/** Returns the PVs of the driver that claims and attachments refer to and that do not exist. */
export function findLostVolumes(driver: string, { claims, attachments, classes, volumes }: Cluster): LostVolume[] {
  const pvNames = new Set(volumes.map(({ metadata }) => metadata.name))
  const provisionerOf = (claim: Cluster['claims'][number]) =>
    annotationOf(claim, PROVISIONER) ??
    annotationOf(claim, PROVISIONER_BETA) ??
    classes.find(({ metadata }) => metadata.name === claimClassName(claim))?.provisioner
  return [
    ...claims.flatMap((claim): LostVolume[] => {
      const pvName = claim.spec?.volumeName
      if (!pvName || pvNames.has(pvName) || (provisionerOf(claim) ?? driver) !== driver) return []
      const { uid, namespace, name } = claim.metadata
      return [{ pvName, claimUid: uid, referrer: `the claim ${namespace}/${name}` }]
    }),
    ...attachments.flatMap(({ metadata, spec }): LostVolume[] => {
      const pvName = spec.source.persistentVolumeName
      if (spec.attacher !== driver || !pvName || pvNames.has(pvName)) return []
      return [{ pvName, referrer: `the VolumeAttachment ${metadata.name}` }]
    }),
  ]
}

/** Returns why the volume may be that of a lost PV, or undefined. An unknown relation does not count for a named handle. */
export function explainLostOwner(
  volume: OwnedVolume,
  lostVolumes: readonly LostVolume[],
  { namedHandles }: OwnerOptions,
): string | undefined {
  for (const { pvName, claimUid, referrer } of lostVolumes) {
    const isSame =
      volume.name === pvName ||
      volume.handle.includes(pvName) ||
      (volume.driver === DRIVER_NAME && volume.handle === volumeIdOf(pvName))
    const relation = isSame ? 'same' : claimUid ? compareOwner(volume, claimUid) : volume.name ? 'other' : 'unknown'
    const why = `${referrer} refers to the PV ${pvName}, which does not exist`
    if (relation === 'same') return `the volume belongs to a lost PV: ${why}`
    if (relation === 'unknown' && !namedHandles.has(volume.handle)) return `the volume may belong to a lost PV: ${why}`
  }
  return undefined
}

/** Returns why the snapshot may belong to a content whose snapshot is being created, or undefined. */
export function explainSnapshotOwner(
  driver: string,
  { contents = [], missingOwnerRules }: Cluster,
): string | undefined {
  const content = contents.find(({ spec, status }) => spec?.driver === driver && !handleOfContent({ spec, status }))
  if (content)
    return `the snapshot may belong to the VolumeSnapshotContent ${content.metadata.name}, whose snapshot is not created yet`
  const [rule] = missingOwnerRules
  return rule === undefined ? undefined : `the owner is not known: you need permission to ${rule}`
}

/** Returns the handle of a created snapshot, or of an existing one that a user named. */
export function handleOfContent({
  spec,
  status,
}: {
  readonly spec?: object
  readonly status?: { snapshotHandle?: string }
}) {
  const source = isRecord(spec) && isRecord(spec.source) ? spec.source.snapshotHandle : undefined
  return status?.snapshotHandle ?? (typeof source === 'string' ? source : undefined)
}
