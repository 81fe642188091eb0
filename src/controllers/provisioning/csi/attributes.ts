// Determines a new volume's attributes: the mutable parameters of CreateVolume, from the claim's attributes class and
// its own requests for iops and throughput, and the IO amounts to record in the volume. Rejects conflicting values for
// one key, and attributes whose feature gate is disabled. A volume's modification composes its parameters here too
// (../../modifying/plan-modification.ts).

import type { FeatureGate, FeatureGates } from '../../../api/feature-gates.ts'
import { volumeAttributesClassKind } from '../../../api/kinds/attributes-class/attributes-class.ts'
import type { VolumeAttributesClass } from '../../../api/kinds/attributes-class/attributes-class-schema.ts'
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import { amountOf } from '../../../api/kinds/shared/provisioned-io.ts'
import {
  formatQuantity,
  isIntegerQuantity,
  isQuantity,
  quantityFromBytes,
  quantitySign,
  quantityToBytes,
} from '../../../api/quantity.ts'
import { ApiError } from '../../../api/status-error.ts'
import { normalizeThroughput } from '../../../api/throughput.ts'
import type { Client } from '../../../client/index.ts'
import type { Cache } from '../../../runtime/index.ts'
import type { Parameters } from './parameters.ts'
import { finalError, infeasibleError, notReadyError } from './preparation-error.ts'

/** The attributes that a claim requests in addition to its size. A disabled feature gate leaves its attributes undefined. */
export interface RequestedAttributes {
  readonly className: string | undefined
  /** Operations per second. */
  readonly iops: string | undefined
  /** In bytes/s. */
  readonly throughput: string | undefined
}

export function requestedAttributes(
  { spec }: Readonly<PersistentVolumeClaim>,
  gates: FeatureGates,
): RequestedAttributes {
  const requests = gates.enabled('VolumeProvisionedIO') ? spec?.resources?.requests : undefined
  const throughput = amountOf(requests, 'throughput')
  return {
    className: (gates.enabled('VolumeAttributesClass') && spec?.volumeAttributesClassName) || undefined,
    iops: amountOf(requests, 'iops'),
    throughput: throughput === undefined ? undefined : normalizeThroughput(throughput),
  }
}

/**
 * Throws a PreparationError if the claim names attributes whose feature gate is disabled: a volume without them would be
 * bound although the claim requests them.
 */
export function checkGates({ spec }: Readonly<PersistentVolumeClaim>, gates: FeatureGates): void {
  const className = spec?.volumeAttributesClassName
  if (className && !gates.enabled('VolumeAttributesClass')) {
    throw gateDisabledError(`the VolumeAttributesClass "${className}"`, 'VolumeAttributesClass')
  }
  const amounts = IO_ATTRIBUTES.flatMap(({ key }) => {
    const amount = amountOf(spec?.resources?.requests, key)
    return amount === undefined ? [] : [`${amount} ${key}`]
  })
  if (amounts.length > 0 && !gates.enabled('VolumeProvisionedIO')) {
    throw gateDisabledError(amounts.join(' and '), 'VolumeProvisionedIO')
  }
}

const gateDisabledError = (requestText: string, gate: FeatureGate) =>
  notReadyError(
    `the claim requests ${requestText}, but the feature gate ${gate} is disabled. No volume is created until the gate is ` +
      'enabled again or the claim is recreated without this request',
  )

export type AttributesClassCache = Pick<Cache<VolumeAttributesClass>, 'get' | 'isServed' | 'lastEventAgeMs'>

export interface AttributesDeps {
  readonly client: Client
  /** Creates the cache when the first claim names a class, because the API server may not serve or allow the kind. */
  attributesClasses(): AttributesClassCache
  readonly driverName: string
}

/** Returns the mutable parameters. Throws a PreparationError if the class cannot be read or used, or a value conflicts. */
export async function readMutableParameters(
  attributes: RequestedAttributes,
  deps: AttributesDeps,
  signal: AbortSignal,
): Promise<Record<string, string>> {
  return composeParameters(
    attributes.className ? await readClassParameters(attributes.className, deps, signal) : {},
    attributes,
  )
}

async function readClassParameters(name: string, deps: AttributesDeps, signal: AbortSignal): Promise<Parameters> {
  const { driverName } = deps
  const attributesClass = cachedClass(name, deps.attributesClasses()) ?? (await readClass(name, deps, signal))
  if (attributesClass.driverName !== driverName) {
    throw finalError(
      `VAC ${name} referenced in PVC is for driver ${attributesClass.driverName} which does not match driver name ${driverName}`,
    )
  }
  return attributesClass.parameters ?? {}
}

/** API servers send a bookmark at least every minute, so a longer silence means that the cache may be behind. */
const WATCH_SILENCE_MS_MAX = 120_000

/**
 * Returns the class from the cache, which is sufficient because a class is immutable and exists while a claim names it.
 * Returns undefined if the cache may be behind or the class is being deleted, because it may have been recreated, and if
 * the server no longer serves the kind.
 */
function cachedClass(name: string, classes: AttributesClassCache): Readonly<VolumeAttributesClass> | undefined {
  if (!classes.isServed || classes.lastEventAgeMs() > WATCH_SILENCE_MS_MAX) return undefined
  const attributesClass = classes.get({ name })
  return attributesClass?.metadata.deletionTimestamp === undefined ? attributesClass : undefined
}

const readClass = (name: string, { client }: AttributesDeps, signal: AbortSignal) =>
  client.get(volumeAttributesClassKind, { name }, { signal }).catch((error) => {
    if (!(error instanceof ApiError)) throw error
    throw notReadyError(`VolumeAttributesClass "${name}" of the claim could not be read: ${error.message}`)
  })

/** Returns the class parameters and the requests of the claim in the units of drivers: a count and whole MiB/s. */
export function composeParameters(
  classParameters: Parameters,
  attributes: Omit<RequestedAttributes, 'className'>,
): Record<string, string> {
  const parameters: Record<string, string> = { ...classParameters }
  for (const attribute of IO_ATTRIBUTES) {
    const requestedAmount = attributes[attribute.key]
    if (requestedAmount === undefined) continue
    if (!isQuantity(requestedAmount) || quantitySign(requestedAmount) <= 0 || !isIntegerQuantity(requestedAmount)) {
      throw infeasibleError(`the claim requests ${requestedAmount} ${attribute.key}: it must be a positive integer`)
    }
    const driverValue = attribute.toDriverUnit(requestedAmount)
    const classValue = Object.hasOwn(classParameters, attribute.key) ? classParameters[attribute.key]! : undefined
    if (classValue === undefined) parameters[attribute.key] = driverValue
    else if (attribute.parseParameter(classValue) !== driverValue) {
      throw infeasibleError(
        `the claim requests ${requestedAmount} ${attribute.key}, but its VolumeAttributesClass specifies ${attribute.key} "${classValue}": ` +
          `remove one of them, or make both the same. Nothing was sent to the driver`,
      )
    }
  }
  const bytes = Object.entries(parameters).reduce(
    (sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value),
    0,
  )
  if (bytes > MAP_BYTES_MAX) {
    throw infeasibleError(
      `the attributes of the volume are ${bytes} bytes, but a CSI driver accepts at most ${MAP_BYTES_MAX}: use a VolumeAttributesClass with fewer parameters`,
    )
  }
  return parameters
}

/** The size limit of the CSI specification for a map. */
const MAP_BYTES_MAX = 4_096
const BYTES_PER_MIB = 1_048_576n

const toMebibytes = (bytesPerSecond: string): string =>
  String((quantityToBytes(bytesPerSecond) + BYTES_PER_MIB - 1n) / BYTES_PER_MIB)

interface IoAttribute {
  readonly key: 'iops' | 'throughput'
  /** Converts a requested quantity to the unit of drivers. */
  toDriverUnit(quantity: string): string
  /** Converts a class parameter to the same unit. Returns undefined if it cannot be parsed. */
  parseParameter(text: string): string | undefined
}

const IO_ATTRIBUTES: readonly IoAttribute[] = [
  {
    key: 'iops',
    toDriverUnit: (quantity) => String(quantityToBytes(quantity)),
    parseParameter: (text) => (isQuantity(text) ? String(quantityToBytes(text)) : undefined),
  },
  {
    key: 'throughput',
    toDriverUnit: toMebibytes,
    // Accepts 100, 100Mi, 100MiB, 100MiB/s and 100 MB/s.
    parseParameter(text) {
      const match = /^\s*([0-9.]+)\s*([kKMGTP]i?)?B?(?:\/s)?\s*$/.exec(text)
      const quantity = match && `${match[1]}${match[2] === 'K' ? 'k' : (match[2] ?? '')}`
      return quantity && isQuantity(quantity) ? toMebibytes(normalizeThroughput(quantity)) : undefined
    },
  },
]

/**
 * Converts an `iops` or `throughput` parameter to the unit of spec.capacity: a count and bytes/s. Returns undefined if the
 * parameter is not a positive amount: zero removes a limit, and the values of other drivers may be names.
 */
export function ioAmountOf(name: IoAttribute['key'], parameter: string): string | undefined {
  const driverValue = IO_ATTRIBUTES.find(({ key }) => key === name)?.parseParameter(parameter)
  if (driverValue === undefined || BigInt(driverValue) <= 0n) return undefined
  if (name === 'iops') return driverValue
  return formatQuantity(quantityFromBytes(BigInt(driverValue) * BYTES_PER_MIB))
}

export type IoAmounts = Pick<RequestedAttributes, 'iops' | 'throughput'>

/**
 * Returns the IO amounts of the new volume: from the requests of the claim, or else from the mutable parameters of its
 * attributes class, or else from its storage class's parameters.
 */
export function providedIo(requestedIo: IoAmounts, mutableParameters: Parameters, parameters: Parameters): IoAmounts {
  const amount = (name: IoAttribute['key']): string | undefined => {
    if (requestedIo[name] !== undefined) return requestedIo[name]
    const parameter =
      ownValue(mutableParameters, name) ?? ownValue(parameters, CREATE_PARAMETERS[name]) ?? ownValue(parameters, name)
    return parameter === undefined ? undefined : ioAmountOf(name, parameter)
  }
  return { iops: amount('iops'), throughput: amount('throughput') }
}

const ownValue = (parameters: Parameters, key: string): string | undefined =>
  Object.hasOwn(parameters, key) ? parameters[key] : undefined

/** Parameters of a storage class for the creation of a volume. Requested attributes override them. */
const CREATE_PARAMETERS = {
  iops: 'provisioned-iops-on-create',
  throughput: 'provisioned-throughput-on-create',
} as const

/**
 * Throws a PreparationError if the attributes class and the storage class set one amount to different values and the claim
 * does not request the amount itself.
 */
export function checkOnCreateAmounts(
  requestedIo: IoAmounts,
  classParameters: Parameters,
  parameters: Parameters,
): void {
  for (const { key, parseParameter } of IO_ATTRIBUTES) {
    const [classValue, createValue] = [ownValue(classParameters, key), ownValue(parameters, CREATE_PARAMETERS[key])]
    if (requestedIo[key] !== undefined || classValue === undefined || createValue === undefined) continue
    const amount = parseParameter(classValue)
    const isEqual = amount === undefined ? classValue === createValue : amount === parseParameter(createValue)
    if (isEqual) continue
    throw infeasibleError(
      `the VolumeAttributesClass of the claim specifies ${key} "${classValue}", but its StorageClass specifies ` +
        `${CREATE_PARAMETERS[key]} "${createValue}": request ${key} in the claim, or use classes that agree. Nothing was sent to the driver`,
    )
  }
}

/** Returns the parameters of a storage class without the on-create amounts that a mutable parameter overrides. */
export function omitOverridden(parameters: Parameters, mutableParameters: Parameters): Record<string, string> {
  const overriddenKeys = IO_ATTRIBUTES.filter(({ key }) => Object.hasOwn(mutableParameters, key)).map(
    ({ key }): string => CREATE_PARAMETERS[key],
  )
  return Object.fromEntries(Object.entries(parameters).filter(([key]) => !overriddenKeys.includes(key)))
}
