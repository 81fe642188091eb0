// Attributes: a claim is never said to have what the driver's volume has not, and the driver is asked for others only once
// the claim says so and the way back is on record. `classParametersOf` is what each class has ever been.
import type { ControllerModifyVolumeRequest } from '../../../csi/gen/csi_pb.js'
import { UNDO } from '../../checkers/modifying.ts'
import type { StageCall } from '../stage.ts'
import { assetName, assetOf, type Of, type View } from '../view.ts'
import { type Court, heldAt, isBound } from './court.ts'

export type Attributes = Readonly<Record<string, string>>
const AMOUNTS = ['iops', 'throughput'] as const
type Amount = (typeof AMOUNTS)[number]
const MEBI = 1024n * 1024n

export interface ClassParameters {
  /** Undefined: it was never there, or it was made anew with others, so that nobody can say which of them count. */
  of(className: string): Attributes | undefined
}

export function followClasses(view: View): ClassParameters {
  const known = new Map<string, string>()
  const ambiguous = new Set<string>()
  view.onCommit((changes) => {
    for (const change of changes) {
      if (change.of !== 'attributesClass' || !change.next) continue
      const text = JSON.stringify(change.next.parameters ?? {})
      if (known.has(change.key) && known.get(change.key) !== text) ambiguous.add(change.key)
      known.set(change.key, text)
    }
  })
  return {
    of: (name) => (ambiguous.has(name) || !known.has(name) ? undefined : JSON.parse(known.get(name)!)),
  }
}

export function judgeAttributes({ stage, view, past, convict }: Court, classes: ClassParameters): void {
  view.onCommit((changes) => {
    for (const change of changes) {
      if (change.of !== 'claim' || !change.next || !change.old) continue
      if (isBound(change.next) && isBound(change.old)) judgeTold(change.next, change.old)
    }
  })
  stage.onCall((call, phase) => {
    if (phase === 'begins' && call.method === 'ControllerModifyVolume') judgeCall(call)
  })

  function judgeTold(claim: Of<'claim'>, old: Of<'claim'>): void {
    const isNewClass = classInEffect(claim) !== classInEffect(old)
    const isNewAmount = AMOUNTS.some((key) => amountTold(claim, key) !== amountTold(old, key))
    if (!isNewClass && !isNewAmount) return
    const key = `${claim.metadata.namespace}/${claim.metadata.name}`
    if (isNewClass && classInEffect(claim) === undefined) convict('told wrongly', `claim ${key} has lost its class`)
    const asset = assetOf(view.volumes.get(claim.spec?.volumeName ?? ''))
    const held = asset && heldAt(stage, asset)
    if (!held || past.isLost(asset)) return
    const told = toldAttributes(claim, isNewClass ? classes.of(classInEffect(claim) ?? '') : {})
    for (const [name, value] of Object.entries(told)) {
      const has = held.mutableParameters[name]
      if (has !== value) convict('told wrongly', `claim ${key} is said to have ${name}=${value}, ${asset} has ${has}`)
    }
  }

  function judgeCall({ process, driver, volume: handle, request }: StageCall): void {
    const asset = assetName(driver, handle)
    const { mutableParameters } = request as ControllerModifyVolumeRequest
    const claim = view.claimOfUid(view.volumesOf(driver, handle)[0]?.spec?.claimRef?.uid ?? '')
    const held = heldAt(stage, asset)
    // A claim that is gone says nothing any more; of storage that forgot everything nobody knows what is about to change.
    if (!claim || !held || past.isLost(asset) || past.hadGatesOff) return
    // Who did not hear that it was done asks once more, for what is there.
    const changed = Object.entries(mutableParameters).filter(([name, value]) => held.mutableParameters[name] !== value)
    if (changed.length === 0) return
    const key = `${claim.metadata.namespace}/${claim.metadata.name}`
    const undo = undoOf(claim)
    const isSaid =
      claim.status?.modifyVolumeStatus?.status === 'InProgress' ||
      AMOUNTS.some((name) => claim.status?.allocatedResourceStatuses?.[name]?.endsWith('InProgress')) ||
      undo !== undefined
    if (!isSaid) {
      const wanted = JSON.stringify(Object.fromEntries(changed))
      convict('asked without intent', `${process} asks ${asset} for ${wanted}, and claim ${key} does not say so`)
    }
    for (const [name, value] of changed) {
      if (undo && Object.hasOwn(undo, name)) continue
      const has = held.mutableParameters[name]
      convict(
        'asked without intent',
        `${name} of ${asset} is about to be ${value} in place of ${has}, and claim ${key} has no way back on record`,
      )
    }
  }
}

/** What the status of a claim amounts to, by the words of its driver: its own amounts, else those of the class. */
export function toldAttributes(claim: Of<'claim'>, parameters: Attributes = {}): Attributes {
  const told: Record<string, string> = { ...parameters }
  for (const name of AMOUNTS) {
    const amount = amountTold(claim, name)
    if (amount !== undefined) told[name] = amount
  }
  return told
}

/** A count, or whole MiB/s rounded up. */
function amountTold({ status }: Of<'claim'>, name: Amount): string | undefined {
  const text = status?.capacity?.[name]
  if (text === undefined) return undefined
  const amount = wholeOf(text)
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

/** Only whole amounts are ever provisioned. */
function wholeOf(text: string): bigint {
  const [, digits, suffix = ''] = /^(\d+)(k|M|G|Ki|Mi|Gi)?$/.exec(text) ?? []
  if (digits === undefined) throw new Error(`the checker cannot read the amount "${text}"`)
  return BigInt(digits) * FACTORS[suffix]!
}

export const classInEffect = ({ status }: Of<'claim'>): string | undefined =>
  status?.currentVolumeAttributesClassName || undefined

export function undoOf({ metadata }: Of<'claim'>): Readonly<Record<string, string | null>> | undefined {
  const text = metadata.annotations?.[UNDO]
  return text === undefined ? undefined : JSON.parse(text)
}
