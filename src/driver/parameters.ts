// What a storage class may say to this driver, and what of it may change later. A key it does not know is refused by
// name rather than ignored: a misspelt limit would otherwise be no limit.

import { FILESYSTEM_TYPES, type FilesystemType } from '../host/host.ts'
import { invalid, quote } from './errors.ts'
import { parseIops, parseThroughput, type RateLimits } from './limits/rates.ts'

export interface ClassParameters {
  /** Only if the class names one. */
  readonly fsType?: FilesystemType
  readonly provisioning: 'reserved' | 'thin'
  /** How many bytes of thin volumes may be promised per byte of the pool; 1 for reserved volumes. */
  readonly overcommit: number
  readonly rates: RateLimits
}

type Parameters = Readonly<Record<string, string>>

/** How a storage class may ask for limits on volumes whose claims ask for none. */
const ON_CREATE: Readonly<Record<string, string>> = {
  'provisioned-iops-on-create': 'iops',
  'provisioned-throughput-on-create': 'throughput',
}
const CLASS_KEYS = ['fsType', 'provisioning', 'overcommit', 'iops', 'throughput', ...Object.keys(ON_CREATE)]
const MUTABLE_KEYS = ['iops', 'throughput']
/** Sent along by provisioners and resizers that were told to; of no meaning here. */
const LET_PASS = ['csi.storage.k8s.io/pvc/name', 'csi.storage.k8s.io/pvc/namespace', 'csi.storage.k8s.io/pv/name']

const OVERCOMMIT_MAX = 100

/** Mutable parameters win; but two values that contradict each other are refused, since one of them is a mistake. */
export function parseParameters(parameters: Parameters, mutable: Parameters): ClassParameters {
  refuseUnknown(parameters, CLASS_KEYS, 'class parameter')
  const changeable = parseMutableParameters(mutable)
  const fixed = ratesOf(withoutOnCreate(parameters))
  refuseContradiction('iops', fixed.iops, changeable.iops, { parameters, mutable })
  refuseContradiction('throughput', fixed.throughputBytes, changeable.throughputBytes, { parameters, mutable })

  const provisioning = oneOf(parameters.provisioning ?? 'reserved', ['reserved', 'thin'] as const, 'provisioning')
  return {
    ...(parameters.fsType === undefined ? {} : { fsType: oneOf(parameters.fsType, FILESYSTEM_TYPES, 'fsType') }),
    provisioning,
    overcommit: overcommitOf(parameters.overcommit, provisioning),
    rates: withoutZeros({ ...fixed, ...changeable }),
  }
}

const RESERVED_PREFIX = 'csi.storage.k8s.io/'

/** Those of a class as it was written: who asks for capacity leaves in what is for the system around the driver. */
export function withoutReserved(parameters: Parameters): Parameters {
  const own = Object.fromEntries(Object.entries(parameters).filter(([key]) => !key.startsWith(RESERVED_PREFIX)))
  const fsType = parameters[`${RESERVED_PREFIX}fstype`]
  return fsType ? { fsType, ...own } : own
}

/** The keys that are there, parsed; zero means that the limit is to be lifted. */
export function parseMutableParameters(mutable: Parameters): RateLimits {
  refuseUnknown(mutable, MUTABLE_KEYS, 'mutable parameter')
  return ratesOf(mutable)
}

/** The rates after a change: keys that are absent stay as they are, zero removes. */
export const changeRates = (rates: RateLimits, change: RateLimits): RateLimits => withoutZeros({ ...rates, ...change })

function refuseUnknown(given: Parameters, known: readonly string[], what: string): void {
  for (const key of Object.keys(given)) {
    if (known.includes(key) || LET_PASS.includes(key)) continue
    throw invalid(`There is no ${what} ${quote(key)}. This driver knows: ${known.join(', ')}.`)
  }
}

function withoutOnCreate(parameters: Parameters): Parameters {
  const rates: Record<string, string> = {}
  for (const key of MUTABLE_KEYS) if (parameters[key] !== undefined) rates[key] = parameters[key]
  for (const [alias, key] of Object.entries(ON_CREATE)) {
    const value = parameters[alias]
    if (value === undefined) continue
    if (rates[key] !== undefined && rates[key] !== value) {
      throw invalid(`Class parameters ${key} ${quote(rates[key])} and ${alias} ${quote(value)} contradict each other.`)
    }
    rates[key] = value
  }
  return rates
}

const ratesOf = ({ iops, throughput }: Parameters): RateLimits => ({
  ...(iops === undefined ? {} : { iops: parseIops(iops) }),
  ...(throughput === undefined ? {} : { throughputBytes: parseThroughput(throughput) }),
})

function withoutZeros({ iops, throughputBytes }: RateLimits): RateLimits {
  return { ...(iops ? { iops } : {}), ...(throughputBytes ? { throughputBytes } : {}) }
}

function refuseContradiction(
  key: string,
  fixed: number | undefined,
  changeable: number | undefined,
  { parameters, mutable }: { parameters: Parameters; mutable: Parameters },
): void {
  if (fixed === undefined || changeable === undefined || fixed === changeable) return
  const inClass = parameters[key] ?? parameters[`provisioned-${key}-on-create`] ?? ''
  throw invalid(
    `${key} is ${quote(inClass)} in the class parameters and ${quote(mutable[key] ?? '')} in the mutable ones. ` +
      'Give it in one of them only.',
  )
}

function oneOf<const T extends string>(value: string, allowed: readonly T[], key: string): T {
  const found = allowed.find((each) => each === value)
  if (found === undefined) throw invalid(`${key} ${quote(value)}: expected ${allowed.join(' or ')}.`)
  return found
}

function overcommitOf(text: string | undefined, provisioning: 'reserved' | 'thin'): number {
  if (text === undefined) return 1
  if (provisioning === 'reserved') {
    throw invalid('overcommit is for thin volumes: set provisioning to thin, or leave overcommit out.')
  }
  const ratio = /^\d{1,3}(\.\d{1,3})?$/.test(text) ? Number(text) : Number.NaN
  if (!(ratio >= 1 && ratio <= OVERCOMMIT_MAX)) {
    throw invalid(`overcommit ${quote(text)}: expected a ratio from 1 to ${OVERCOMMIT_MAX}, such as 2 or 1.5.`)
  }
  return ratio
}

/** The file system a capability asks for, if it asks for one. */
export function parseFsType(text: string): FilesystemType | undefined {
  return text === '' ? undefined : oneOf(text, FILESYSTEM_TYPES, 'fs_type')
}
