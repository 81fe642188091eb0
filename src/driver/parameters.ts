// Parameters of a StorageClass and mutable parameters of a VolumeAttributesClass. Unknown keys are rejected, because a
// misspelt limit would otherwise silently be no limit.
import { FILESYSTEM_TYPES, type FilesystemType } from '../host/host.ts'
import { invalid, quote } from './errors.ts'
import { parseIops, parseThroughput, type RateLimits } from './limits/rates.ts'

export interface ClassParameters {
  /** Only if the class specifies one. */
  readonly fsType?: FilesystemType
  readonly provisioning: 'reserved' | 'thin'
  /** Bytes of thin volumes per byte of the pool; 1 for reserved volumes. */
  readonly overcommit: number
  readonly rates: RateLimits
}

type Parameters = Readonly<Record<string, string>>

/** Parameters for the limits of volumes whose claims specify none. */
const ON_CREATE: Readonly<Record<string, string>> = {
  'provisioned-iops-on-create': 'iops',
  'provisioned-throughput-on-create': 'throughput',
}
const CLASS_KEYS = ['fsType', 'provisioning', 'overcommit', 'iops', 'throughput', ...Object.keys(ON_CREATE)]
const MUTABLE_KEYS = ['iops', 'throughput']
/** Added by provisioners and resizers with --extra-create-metadata or --extra-modify-metadata; not used here. */
const IGNORED_KEYS = ['csi.storage.k8s.io/pvc/name', 'csi.storage.k8s.io/pvc/namespace', 'csi.storage.k8s.io/pv/name']

const OVERCOMMIT_MAX = 100

/** Combines both; a key with different values in both is rejected, because one of them is a mistake. */
export function parseParameters(parameters: Parameters, mutable: Parameters): ClassParameters {
  checkKnown(parameters, CLASS_KEYS, 'class parameter')
  const changeable = parseMutableParameters(mutable)
  const fixed = ratesOf(withoutOnCreate(parameters))
  checkConsistent('iops', fixed.iops, changeable.iops, { parameters, mutable })
  checkConsistent('throughput', fixed.throughputBytes, changeable.throughputBytes, { parameters, mutable })

  const provisioning = oneOf(parameters.provisioning ?? 'reserved', ['reserved', 'thin'] as const, 'provisioning')
  return {
    fsType: parameters.fsType === undefined ? undefined : oneOf(parameters.fsType, FILESYSTEM_TYPES, 'fsType'),
    provisioning,
    overcommit: overcommitOf(parameters.overcommit, provisioning),
    rates: withoutZeros({ ...fixed, ...changeable }),
  }
}

const RESERVED_PREFIX = 'csi.storage.k8s.io/'

/** The driver's own parameters of a class. A GetCapacity request also contains those that the sidecars consume. */
export function ownParameters(parameters: Parameters): Parameters {
  const own = Object.fromEntries(Object.entries(parameters).filter(([key]) => !key.startsWith(RESERVED_PREFIX)))
  const fsType = parameters[`${RESERVED_PREFIX}fstype`]
  return fsType ? { fsType, ...own } : own
}

/** Parses the given keys; zero removes a limit. */
export function parseMutableParameters(mutable: Parameters): RateLimits {
  checkKnown(mutable, MUTABLE_KEYS, 'mutable parameter')
  return ratesOf(mutable)
}

/** Applies a change: omitted keys keep their values, zero removes a limit. */
export const changeRates = (rates: RateLimits, change: RateLimits): RateLimits => withoutZeros({ ...rates, ...change })

function checkKnown(given: Parameters, known: readonly string[], what: string): void {
  for (const key of Object.keys(given)) {
    if (known.includes(key) || IGNORED_KEYS.includes(key)) continue
    throw invalid(`Unknown ${what} ${quote(key)}. Supported: ${known.join(', ')}.`)
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

function checkConsistent(
  key: string,
  fixed: number | undefined,
  changeable: number | undefined,
  { parameters, mutable }: { parameters: Parameters; mutable: Parameters },
): void {
  if (fixed === undefined || changeable === undefined || fixed === changeable) return
  const inClass = parameters[key] ?? parameters[`provisioned-${key}-on-create`] ?? ''
  throw invalid(
    `${key} is ${quote(inClass)} in the class parameters and ${quote(mutable[key] ?? '')} in the mutable ones. ` +
      'Set it in only one of them.',
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
    throw invalid('overcommit requires thin provisioning: set provisioning to thin, or remove overcommit.')
  }
  const ratio = /^\d{1,3}(\.\d{1,3})?$/.test(text) ? Number(text) : Number.NaN
  if (!(ratio >= 1 && ratio <= OVERCOMMIT_MAX)) {
    throw invalid(`overcommit ${quote(text)}: expected a ratio from 1 to ${OVERCOMMIT_MAX}, such as 2 or 1.5.`)
  }
  return ratio
}

/** The file system of a capability, if it specifies one. */
export function parseFsType(text: string): FilesystemType | undefined {
  return text === '' ? undefined : oneOf(text, FILESYSTEM_TYPES, 'fs_type')
}
