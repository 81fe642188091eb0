// Checks attributes of volumes. Rule `wrong status`: a claim never reports a class or amount that the driver's volume does not
// have. Rule `no intent`: the driver is called only after the claim reports the change and has an undo record.
// Also computes which attributes each volume should have; at-rest/claims.ts compares them with the driver.
import type { ControllerModifyVolumeRequest } from '../../csi/gen/csi_pb.js'
import type { DriverCall } from '../engine/system.ts'
import { assetName, assetOf, type ObjectOf, type View } from '../engine/view.ts'
import { type CheckContext, findDriverVolume, isBound } from './context.ts'

/** Annotation of a claim: the attributes before the change in progress. */
export const UNDO = 'modifying.stowage.dev/undo'
/** Annotation of a volume: the attributes that the driver has confirmed. */
export const ATTRIBUTES = 'modifying.stowage.dev/attributes'

export type Attributes = Readonly<Record<string, string>>
const AMOUNTS = ['iops', 'throughput'] as const
type Amount = (typeof AMOUNTS)[number]
const MEBI = 1024n * 1024n

export interface ClassParameters {
  /** Returns undefined if the class never existed, or was recreated with other parameters: then either set may apply. */
  of(className: string): Attributes | undefined
}

export function followClasses(view: View): ClassParameters {
  const parametersByClass = new Map<string, string>()
  const ambiguousClasses = new Set<string>()
  const record = (name: string, { parameters = {} }: ObjectOf<'attributesClass'>): void => {
    const text = JSON.stringify(parameters)
    if (parametersByClass.has(name) && parametersByClass.get(name) !== text) ambiguousClasses.add(name)
    parametersByClass.set(name, text)
  }
  for (const [name, attributesClass] of view.attributesClasses) record(name, attributesClass)
  view.onCommit((changes) => {
    for (const change of changes) if (change.of === 'attributesClass' && change.next) record(change.key, change.next)
  })
  return {
    of: (name) =>
      ambiguousClasses.has(name) || !parametersByClass.has(name) ? undefined : JSON.parse(parametersByClass.get(name)!),
  }
}

export function checkAttributes({ system, view, exemptions, report }: CheckContext, classes: ClassParameters): void {
  /** By claim uid: every class that its status ever reported. */
  const reportedClasses = new Map<string, Set<string>>()

  view.onCommit((changes) => {
    for (const change of changes) {
      if (change.of === 'event' && change.next) checkEvent(change.next)
      if (change.of !== 'claim' || !change.next) continue
      const { uid = '' } = change.next.metadata
      const className = classInEffect(change.next)
      if (className) reportedClasses.set(uid, (reportedClasses.get(uid) ?? new Set()).add(className))
      if (change.old && isBound(change.next) && isBound(change.old)) checkStatus(change.next, change.old)
    }
  })
  system.onCall((call, phase) => {
    if (phase === 'begins' && call.method === 'ControllerModifyVolume') checkCall(call)
  })

  function checkStatus(claim: ObjectOf<'claim'>, old: ObjectOf<'claim'>): void {
    const currentClass = classInEffect(claim)
    const isNewClass = currentClass !== classInEffect(old)
    const isNewAmount = AMOUNTS.some((key) => reportedAmount(claim, key) !== reportedAmount(old, key))
    if (!isNewClass && !isNewAmount) return
    const key = keyOf(claim)
    if (isNewClass && currentClass === undefined) report('wrong status', `claim ${key} lost its attributes class`)
    const volume = view.volumes.get(claim.spec?.volumeName ?? '')
    const volumeClass = volume?.spec?.volumeAttributesClassName || undefined
    if (isNewClass && volume && volumeClass !== currentClass && !exemptions.hadGatesOff) {
      report(
        'wrong status',
        `claim ${key} reports the class ${currentClass}, but volume ${volume.metadata.name} has ${volumeClass}`,
      )
    }
    const asset = assetOf(volume)
    const driverVolume = asset && findDriverVolume(system, asset)
    if (!driverVolume || exemptions.isLost(asset)) return
    const attributes = reportedAttributes(claim, isNewClass ? classes.of(currentClass ?? '') : {})
    for (const [name, value] of Object.entries(attributes)) {
      const actual = driverVolume.mutableParameters[name]
      if (actual !== value) report('wrong status', `claim ${key} reports ${name}=${value}, but ${asset} has ${actual}`)
    }
  }

  function checkEvent({ involvedObject, message }: ObjectOf<'event'>): void {
    const [, className] = /modified volume \S+ with vac (\S+) successfully/.exec(message ?? '') ?? []
    if (className === undefined || reportedClasses.get(involvedObject?.uid ?? '')?.has(className)) return
    report(
      'wrong status',
      `an event reports that claim ${involvedObject?.name} has the class ${className}, which it never had`,
    )
  }

  function checkCall({ process, driver, volume: handle, request }: DriverCall): void {
    const asset = assetName(driver, handle)
    const { mutableParameters } = request as ControllerModifyVolumeRequest
    const claim = view.claimOfUid(view.volumesOf(driver, handle)[0]?.spec?.claimRef?.uid ?? '')
    const driverVolume = findDriverVolume(system, asset)
    // A deleted claim reports nothing; if the driver lost its state, the previous attributes are unknown.
    if (!claim || !driverVolume || exemptions.isLost(asset) || exemptions.hadGatesOff) return
    // A caller that missed the response repeats the call, although the volume already has the attributes.
    const changedEntries = Object.entries(mutableParameters).filter(
      ([name, value]) => driverVolume.mutableParameters[name] !== value,
    )
    if (changedEntries.length === 0) return
    const key = keyOf(claim)
    const undo = undoOf(claim)
    const isReported =
      claim.status?.modifyVolumeStatus?.status === 'InProgress' ||
      AMOUNTS.some((name) => claim.status?.allocatedResourceStatuses?.[name]?.endsWith('InProgress')) ||
      undo !== undefined
    if (!isReported) {
      const requestText = JSON.stringify(Object.fromEntries(changedEntries))
      report('no intent', `${process} requests ${requestText} of ${asset}, but claim ${key} does not report it`)
    }
    for (const [name, value] of changedEntries) {
      if (undo && Object.hasOwn(undo, name)) continue
      const actual = driverVolume.mutableParameters[name]
      report('no intent', `${name} of ${asset} changes from ${actual} to ${value}, but claim ${key} records no undo`)
    }
  }
}

export interface ExpectedAttributes {
  /** Returns the attributes of a volume that follow from all statuses, and the names of attributes that are uncertain. */
  of(asset: string): { readonly attributes: Attributes; readonly uncertainNames: ReadonlySet<string> }
}

/**
 * Computes the attributes that each driver volume must have if every status is correct: only reported classes and amounts
 * change them.
 */
export function followExpectedAttributes({ view }: CheckContext, classes: ClassParameters): ExpectedAttributes {
  const attributesByAsset = new Map<string, Attributes>()
  /** Attributes whose change was abandoned while the previous value was unknown. */
  const uncertainNamesByAsset = new Map<string, Set<string>>()

  view.onCommit((changes) => {
    for (const change of changes) {
      if (change.of !== 'claim') continue
      const { old, next } = change
      const asset = assetOf(view.volumes.get((next ?? old)?.spec?.volumeName ?? ''))
      if (!asset) continue
      if (old) recordAbandonedChanges(asset, old, next)
      if (next && isBound(next)) addReportedAttributes(asset, next, old && isBound(old) ? old : undefined)
    }
  })

  function recordAbandonedChanges(asset: string, old: ObjectOf<'claim'>, next: ObjectOf<'claim'> | undefined): void {
    const names = uncertainNamesByAsset.get(asset) ?? new Set()
    uncertainNamesByAsset.set(asset, names)
    for (const [name, previousValue] of Object.entries(undoOf(old) ?? {})) {
      const isDropped = !Object.hasOwn((next && undoOf(next)) ?? {}, name)
      if (next === undefined || (previousValue === null && isDropped)) names.add(name)
    }
  }

  function addReportedAttributes(asset: string, claim: ObjectOf<'claim'>, old: ObjectOf<'claim'> | undefined): void {
    const parameters = classes.of(classInEffect(claim) ?? '') ?? {}
    const isNewClass = !old || classInEffect(claim) !== classInEffect(old)
    const newAttributes: Record<string, string> = isNewClass ? { ...parameters } : {}
    for (const name of AMOUNTS) {
      if (old && reportedAmount(claim, name) === reportedAmount(old, name)) continue
      const amount = reportedAmount(claim, name) ?? parameters[name]
      if (amount !== undefined) newAttributes[name] = amount
    }
    attributesByAsset.set(asset, { ...attributesByAsset.get(asset), ...newAttributes })
    for (const name of Object.keys(newAttributes)) uncertainNamesByAsset.get(asset)?.delete(name)
  }

  return {
    of: (asset) => ({
      attributes: attributesByAsset.get(asset) ?? {},
      uncertainNames: uncertainNamesByAsset.get(asset) ?? new Set(),
    }),
  }
}

/**
 * Returns the attributes that a claim's status reports, with the driver's keys. The claim's amounts override the class
 * parameters.
 */
export function reportedAttributes(claim: ObjectOf<'claim'>, parameters: Attributes = {}): Attributes {
  const attributes: Record<string, string> = { ...parameters }
  for (const name of AMOUNTS) {
    const amount = reportedAmount(claim, name)
    if (amount !== undefined) attributes[name] = amount
  }
  return attributes
}

/** Returns a count of operations, or MiB/s rounded up. */
function reportedAmount({ status }: ObjectOf<'claim'>, name: Amount): string | undefined {
  const text = status?.capacity?.[name]
  if (text === undefined) return undefined
  const amount = parseInteger(text)
  return String(name === 'throughput' ? (amount + MEBI - 1n) / MEBI : amount)
}

const FACTORS: Readonly<Record<string, bigint>> = {
  '': 1n,
  k: 1_000n,
  M: 1_000_000n,
  G: 1_000_000_000n,
  Ki: 1n << 10n,
  Mi: 1n << 20n,
  Gi: 1n << 30n,
}

/** Reads an integer; fractions are never provisioned. */
function parseInteger(text: string): bigint {
  const [, digits, suffix = ''] = /^(\d+)(k|M|G|Ki|Mi|Gi)?$/.exec(text) ?? []
  if (digits === undefined) throw new Error(`The checker cannot read the amount "${text}".`)
  return BigInt(digits) * FACTORS[suffix]!
}

export const classInEffect = ({ status }: ObjectOf<'claim'>): string | undefined =>
  status?.currentVolumeAttributesClassName || undefined

export function undoOf({ metadata }: ObjectOf<'claim'>): Readonly<Record<string, string | null>> | undefined {
  const text = metadata.annotations?.[UNDO]
  return text === undefined ? undefined : JSON.parse(text)
}

const keyOf = ({ metadata }: ObjectOf<'claim'>): string => `${metadata.namespace}/${metadata.name}`
