// Parses the policy of automatic growth from the annotation of a claim or class, and plans the next size of a claim from
// its measured usage. Pure. controllers/auto-growing applies the plan, and `stowage df --would-grow` prints it.
//
//   stowage.dev/auto-grow: "threshold=80%,step=20%,max=100Gi,cooldown=10m"
import type { PersistentVolumeClaim } from '../api/kinds/claim/claim-schema.ts'
import type { ObjectMeta } from '../api/kinds/shared/meta-schema.ts'
import type { StorageClass } from '../api/kinds/storage-class/storage-class-schema.ts'
import { formatQuantity, isQuantity, quantityFromBytes, quantitySign, quantityToBytes } from '../api/quantity.ts'
import { parseDuration } from '../base/duration.ts'
import { claimCapacity, isLess, requestedStorage } from './sizes.ts'
import type { VolumeUsage } from './volume-usage.ts'

export const AUTO_GROW = 'stowage.dev/auto-grow'
/**
 * Annotation of claims with the last automatic growth: its time, the previous size of the file system in bytes, the requested
 * size and the maximum: `2026-01-01T00:00:00Z 1048576 2Mi 10Mi`. If the driver has rejected the size, the number of consecutive
 * rejections follows.
 */
export const AUTO_GROWN = 'stowage.dev/auto-grown'

export interface AutoGrowPolicy {
  /** Share of used bytes or inodes at which the claim grows, from 0 to 1. */
  readonly threshold: number
  readonly step: { readonly share: number } | { readonly bytes: bigint }
  readonly maxBytes: bigint
  readonly cooldownMs: number
}

export type PolicyResult =
  | { readonly is: 'policy'; readonly policy: AutoGrowPolicy; readonly from: 'claim' | 'class' }
  | { readonly is: 'none' }
  | { readonly is: 'invalid'; readonly message: string }

const DEFAULTS: Omit<AutoGrowPolicy, 'maxBytes'> = { threshold: 0.8, step: { share: 0.2 }, cooldownMs: 600_000 }
const OFF = 'off'

/** Returns the policy of the claim, or that of its class if the claim has none. `off` on a claim disables that of its class. */
export function findPolicy(
  claim: Readonly<PersistentVolumeClaim>,
  storageClass: Readonly<StorageClass> | undefined,
): PolicyResult {
  const [own, inherited] = [readAnnotation(claim.metadata), storageClass && readAnnotation(storageClass.metadata)]
  const text = own ?? inherited
  if (text === undefined || text.trim() === OFF) return { is: 'none' }
  const from = own === undefined ? 'class' : 'claim'
  const place = from === 'claim' ? 'the claim' : `the class "${storageClass!.metadata.name}"`
  const policy = parsePolicy(text)
  if ('problem' in policy)
    return {
      is: 'invalid',
      message: `The annotation ${AUTO_GROW} of ${place} is invalid: ${policy.problem}. The claim does not grow automatically.`,
    }
  return { is: 'policy', policy, from }
}

const readAnnotation = ({ annotations }: Readonly<ObjectMeta>): string | undefined => annotations?.[AUTO_GROW]

export function parsePolicy(text: string): AutoGrowPolicy | { readonly problem: string } {
  const values: Partial<AutoGrowPolicy>[] = []
  const parsedKeys = new Set<string>()
  for (const part of text.split(',')) {
    const [key = '', value, ...rest] = part.split('=').map((piece) => piece.trim())
    if (value === undefined || rest.length > 0) return { problem: `"${part.trim()}" is not KEY=VALUE` }
    if (!Object.hasOwn(READERS, key)) return { problem: `"${key}" is not one of ${Object.keys(READERS).join(', ')}` }
    if (parsedKeys.has(key)) return { problem: `${key} is set twice` }
    parsedKeys.add(key)
    const read = READERS[key as keyof typeof READERS](value)
    if (typeof read === 'string') return { problem: `${key} "${value}" is not ${read}` }
    values.push(read)
  }
  const policy = Object.assign({}, DEFAULTS, ...values) as Partial<AutoGrowPolicy> & typeof DEFAULTS
  const { maxBytes } = policy
  return maxBytes === undefined ? { problem: 'max is missing' } : { ...policy, maxBytes }
}

/** Each function returns a field of the policy, or a description of the valid values. */
const READERS = {
  threshold(text: string): Partial<AutoGrowPolicy> | string {
    const share = parsePercent(text)
    return share !== undefined && share > 0 && share < 1 ? { threshold: share } : 'a percentage from 1% to 99%'
  },
  step(text: string): Partial<AutoGrowPolicy> | string {
    const share = parsePercent(text)
    if (share !== undefined && share > 0 && share <= STEP_SHARE_MAX) return { step: { share } }
    const bytes = parseBytes(text)
    return bytes === undefined ? 'a percentage such as 20%, or a size such as 10Gi' : { step: { bytes } }
  },
  max(text: string): Partial<AutoGrowPolicy> | string {
    const bytes = parseBytes(text)
    return bytes === undefined ? 'a size such as 100Gi' : { maxBytes: bytes }
  },
  cooldown(text: string): Partial<AutoGrowPolicy> | string {
    const cooldownMs = parseDuration(text)
    return cooldownMs === undefined ? 'a duration such as 10m' : { cooldownMs }
  },
}

const STEP_SHARE_MAX = 10

const parsePercent = (text: string): number | undefined =>
  /^\d{1,4}%$/.test(text) ? Number(text.slice(0, -1)) / 100 : undefined
const parseBytes = (text: string): bigint | undefined =>
  isQuantity(text) && quantitySign(text) > 0 ? quantityToBytes(text) : undefined

export type AutoGrowPlan =
  | { readonly do: 'nothing'; readonly message: string }
  /** Wait for a pending expansion, a new measurement, or the end of the cooldown. Only the cooldown sets `afterMs`. */
  | { readonly do: 'wait'; readonly afterMs?: number; readonly message: string }
  /** The claim should grow but cannot. */
  | { readonly do: 'stop'; readonly reason: 'max' | 'class' | 'capacity'; readonly message: string }
  /** The driver rejected the size: lower the request to the capacity, which cancels the expansion. */
  | { readonly do: 'lower'; readonly to: string; readonly record: string; readonly message: string }
  | {
      readonly do: 'grow'
      readonly from: string
      readonly to: string
      readonly record: string
      readonly message: string
    }

export interface AutoGrowSituation {
  readonly claim: Readonly<PersistentVolumeClaim>
  readonly policy: AutoGrowPolicy
  /** Undefined if no node has measured the volume. */
  readonly usage: VolumeUsage | undefined
  readonly allowsExpansion: boolean
  /** Returns a message if the size exceeds the free capacity, or undefined if it fits or the capacity is unknown. */
  shortageFor(target: string): string | undefined
  readonly nowMs: number
}

/** Sizes below the maximum are rounded up to a multiple of this. */
const SIZE_UNIT_BYTES = 1024n ** 2n

export function planAutoGrowth(situation: AutoGrowSituation): AutoGrowPlan {
  const { claim, policy, usage, nowMs } = situation
  const capacity = claimCapacity(claim)
  if (claim.metadata.deletionTimestamp) return { do: 'nothing', message: 'the claim is being deleted' }
  if (claim.status?.phase !== 'Bound') return { do: 'nothing', message: 'the claim is not bound' }
  const last = readRecord(claim)
  const request = requestedStorage(claim)
  if (isLess(capacity, request) || claim.status.allocatedResourceStatuses?.storage) {
    const isRejected = claim.status.allocatedResourceStatuses?.storage === 'ControllerResizeInfeasible'
    if (isRejected && last?.to === request && isLess(capacity, request))
      return planLowering({ capacity, last, cooldownMs: policy.cooldownMs, nowMs })
    return { do: 'wait', message: `an expansion to ${request} is pending` }
  }
  const sizeBytes = sizeOf(usage)
  if (!usage || sizeBytes === undefined) return { do: 'nothing', message: 'the usage of the volume is not known' }
  const rejections = last?.to && isLess(capacity, last.to) ? last.rejections : 0
  // The node may not have measured the larger file system yet.
  if (last && rejections === 0 && sizeBytes <= last.sizeBytes)
    return { do: 'wait', message: 'the usage of the volume was measured before its last growth' }
  const share = usedShare(usage)
  if (share < policy.threshold)
    return { do: 'nothing', message: `${percent(share)} used, below the threshold of ${percent(policy.threshold)}` }
  const remainingMs = last ? last.atMs + growthDelayMs(rejections, policy.cooldownMs) - nowMs : 0
  if (remainingMs > 0)
    return {
      do: 'wait',
      afterMs: remainingMs,
      message: `${percent(share)} used; the cooldown after the last growth of the claim has not ended`,
    }
  return planStep(situation, { capacity, share, sizeBytes, rejections })
}

/**
 * Returns the delay after a growth, which is the cooldown. With each consecutive rejection the delay doubles, from the cooldown
 * (at least a minute) to a day, or to the cooldown if that is longer.
 */
function growthDelayMs(rejections: number, cooldownMs: number): number {
  if (rejections === 0) return cooldownMs
  const firstMs = Math.max(cooldownMs, REJECTION_DELAY_MS_MIN)
  return Math.min(firstMs * 2 ** (rejections - 1), Math.max(cooldownMs, REJECTION_DELAY_MS_MAX))
}

const REJECTION_DELAY_MS_MIN = 60_000
const REJECTION_DELAY_MS_MAX = 86_400_000

/**
 * Lowers a rejected request. Otherwise quota would charge it, and every resync would call the driver again. A request that equals
 * the capacity cancels the expansion (controllers/expanding).
 */
function planLowering({ capacity, last, cooldownMs, nowMs }: LoweringBasis): AutoGrowPlan {
  const rejections = last.rejections + 1
  return {
    do: 'lower',
    to: capacity,
    record: formatRecord({ ...last, atMs: nowMs, rejections }),
    message:
      `the driver rejected an expansion from ${capacity} to ${last.to} with the maximum ${last.max}; ` +
      `the request is lowered to ${capacity}, and tried again after ${Math.ceil(growthDelayMs(rejections, cooldownMs) / 60_000)}m`,
  }
}

interface LoweringBasis {
  readonly capacity: string
  readonly last: GrowthRecord
  readonly cooldownMs: number
  readonly nowMs: number
}

interface StepBasis {
  readonly capacity: string
  readonly share: number
  readonly sizeBytes: number
  /** How often in a row the driver has rejected a larger size. */
  readonly rejections: number
}

function planStep(
  { policy, allowsExpansion, shortageFor, nowMs }: AutoGrowSituation,
  { capacity, share, sizeBytes, rejections }: StepBasis,
): AutoGrowPlan {
  const used = `${percent(share)} of ${capacity} used`
  const capacityBytes = quantityToBytes(capacity)
  if (capacityBytes >= policy.maxBytes)
    return {
      do: 'stop',
      reason: 'max',
      message: `${used}, and the claim has its maximum of ${format(policy.maxBytes)}`,
    }
  if (!allowsExpansion)
    return { do: 'stop', reason: 'class', message: `${used}, and the class of the claim does not allow expansion` }
  const to = format(nextBytes(capacityBytes, policy))
  const shortage = shortageFor(to)
  if (shortage !== undefined) return { do: 'stop', reason: 'capacity', message: `${used}, but ${shortage}` }
  const record = formatRecord({ atMs: nowMs, sizeBytes, to, max: format(policy.maxBytes), rejections })
  return { do: 'grow', from: capacity, to, record, message: `${used}: growing from ${capacity} to ${to}` }
}

/**
 * Adds the step to the capacity, not to the request: the driver may have provided more. Rounds up, but never beyond the maximum.
 * Many drivers round sizes up to whole GiB. If that would exceed the maximum, the last whole GiB up to the maximum is
 * requested first.
 */
function nextBytes(capacityBytes: bigint, { step, maxBytes }: AutoGrowPolicy): bigint {
  const stepBytes = 'bytes' in step ? step.bytes : (capacityBytes * BigInt(Math.round(step.share * 100)) + 99n) / 100n
  const roundedBytes = ((capacityBytes + stepBytes + SIZE_UNIT_BYTES - 1n) / SIZE_UNIT_BYTES) * SIZE_UNIT_BYTES
  if (roundedBytes < maxBytes && roundUp(roundedBytes) <= maxBytes) return roundedBytes
  const wholeBytes = (maxBytes / DRIVER_UNIT_BYTES) * DRIVER_UNIT_BYTES
  if (wholeBytes > capacityBytes) return wholeBytes
  return roundedBytes < maxBytes ? roundedBytes : maxBytes
}

const DRIVER_UNIT_BYTES = 1024n ** 3n
const roundUp = (bytes: bigint): bigint => ((bytes + DRIVER_UNIT_BYTES - 1n) / DRIVER_UNIT_BYTES) * DRIVER_UNIT_BYTES

/**
 * Returns the size beyond which the driver must not expand the volume: the maximum of the policy, if automatic growth has
 * requested this size. Undefined for a size that a user has requested.
 */
export function growthLimitBytes(claim: Readonly<PersistentVolumeClaim>): bigint | undefined {
  const last = readRecord(claim)
  if (!last?.to || !last.max || last.to !== requestedStorage(claim)) return undefined
  return isLess(last.max, last.to) ? undefined : quantityToBytes(last.max)
}

const format = (bytes: bigint): string => formatQuantity(quantityFromBytes(bytes))
const percent = (share: number): string => `${Math.floor(share * 100)}%`

/** Returns the share of used bytes or the share of used inodes, whichever is larger. */
function usedShare({ usedBytes = 0, freeBytes = 0, inodes = 0, inodesUsed = 0 }: VolumeUsage): number {
  const total = usedBytes + freeBytes
  return Math.max(total > 0 ? usedBytes / total : 0, inodes > 0 ? inodesUsed / inodes : 0)
}

const sizeOf = (usage: VolumeUsage | undefined): number | undefined =>
  usage?.usedBytes === undefined || usage.freeBytes === undefined ? undefined : usage.usedBytes + usage.freeBytes

interface GrowthRecord {
  readonly atMs: number
  readonly sizeBytes: number
  /** Absent in records of earlier releases. */
  readonly to?: string
  readonly max?: string
  /** The number of consecutive rejections of a larger size, up to and including this growth. */
  readonly rejections: number
}

const formatRecord = ({ atMs, sizeBytes, to, max, rejections }: GrowthRecord): string =>
  `${new Date(atMs).toISOString()} ${sizeBytes} ${to} ${max}${rejections > 0 ? ` ${rejections}` : ''}`

/** Returns undefined if there is no valid record. If a user has damaged it, the claim may grow during its cooldown. */
function readRecord({ metadata }: Readonly<PersistentVolumeClaim>): GrowthRecord | undefined {
  const [time = '', size = '', to = '', max = '', count = ''] = metadata.annotations?.[AUTO_GROWN]?.split(' ') ?? []
  const [atMs, sizeBytes] = [Date.parse(time), Number(size)]
  if (!Number.isFinite(atMs) || !Number.isFinite(sizeBytes)) return undefined
  const rejections = /^\d{1,2}$/.test(count) ? Number(count) : 0
  return { atMs, sizeBytes, rejections, ...(isQuantity(to) && isQuantity(max) ? { to, max } : {}) }
}
