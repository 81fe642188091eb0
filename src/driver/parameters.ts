// Parses the parameters of a StorageClass and the mutable parameters of a VolumeAttributesClass. Unknown keys are rejected,
// because a misspelt limit would have no effect.
import { FILESYSTEM_TYPES, type FilesystemType } from '../host/host.ts'
import { invalid, quote } from './errors.ts'
import { parseIops, parseThroughput, type RateLimits } from './limits/rates.ts'

export interface ClassParameters {
  /** Undefined if the class does not specify one. */
  readonly fsType?: FilesystemType
  readonly provisioning: 'reserved' | 'thin'
  /** Bytes of thin volumes per byte of the pool. It is 1 for reserved volumes. */
  readonly overcommit: number
  readonly rates: RateLimits
}

type ParameterMap = Readonly<Record<string, string>>

/** Other names of the parameters `iops` and `throughput`. */
const ON_CREATE_ALIASES: Readonly<Record<string, string>> = {
  'provisioned-iops-on-create': 'iops',
  'provisioned-throughput-on-create': 'throughput',
}
const CLASS_KEYS = ['fsType', 'provisioning', 'overcommit', 'iops', 'throughput', ...Object.keys(ON_CREATE_ALIASES)]
const MUTABLE_KEYS = ['iops', 'throughput']
/** Keys that provisioners and resizers add with --extra-create-metadata or --extra-modify-metadata. */
const IGNORED_KEYS = ['csi.storage.k8s.io/pvc/name', 'csi.storage.k8s.io/pvc/namespace', 'csi.storage.k8s.io/pv/name']

const OVERCOMMIT_MAX = 100

/** Combines both kinds of parameters. A key with different values in both is rejected. */
export function parseParameters(parameters: ParameterMap, mutableParameters: ParameterMap): ClassParameters {
  checkKeys(parameters, CLASS_KEYS, 'class parameter')
  const mutableRates = parseMutableParameters(mutableParameters)
  const classRates = parseRates(resolveOnCreate(parameters))
  checkConsistent('iops', classRates.iops, mutableRates.iops, { parameters, mutableParameters })
  checkConsistent('throughput', classRates.throughputBytes, mutableRates.throughputBytes, {
    parameters,
    mutableParameters,
  })

  const provisioning = parseEnum(parameters.provisioning ?? 'reserved', ['reserved', 'thin'] as const, 'provisioning')
  return {
    fsType: parameters.fsType === undefined ? undefined : parseEnum(parameters.fsType, FILESYSTEM_TYPES, 'fsType'),
    provisioning,
    overcommit: parseOvercommit(parameters.overcommit, provisioning),
    rates: removeZeros({ ...classRates, ...mutableRates }),
  }
}

const RESERVED_PREFIX = 'csi.storage.k8s.io/'

/** Returns the driver's parameters. A GetCapacity request also contains those for the sidecars. */
export function selectDriverParameters(parameters: ParameterMap): ParameterMap {
  const ownEntries = Object.fromEntries(Object.entries(parameters).filter(([key]) => !key.startsWith(RESERVED_PREFIX)))
  const fsType = parameters[`${RESERVED_PREFIX}fstype`]
  return fsType ? { fsType, ...ownEntries } : ownEntries
}

/** Parses mutable parameters. Zero removes a limit. */
export function parseMutableParameters(mutableParameters: ParameterMap): RateLimits {
  checkKeys(mutableParameters, MUTABLE_KEYS, 'mutable parameter')
  return parseRates(mutableParameters)
}

/** Applies a change: omitted keys keep their values, zero removes a limit. */
export const changeRates = (rates: RateLimits, change: RateLimits): RateLimits => removeZeros({ ...rates, ...change })

function checkKeys(parameters: ParameterMap, knownKeys: readonly string[], kind: string): void {
  for (const key of Object.keys(parameters)) {
    if (knownKeys.includes(key) || IGNORED_KEYS.includes(key)) continue
    throw invalid(`Unknown ${kind} ${quote(key)}. Supported: ${knownKeys.join(', ')}.`)
  }
}

function resolveOnCreate(parameters: ParameterMap): ParameterMap {
  const rates: Record<string, string> = {}
  for (const key of MUTABLE_KEYS) if (parameters[key] !== undefined) rates[key] = parameters[key]
  for (const [alias, key] of Object.entries(ON_CREATE_ALIASES)) {
    const value = parameters[alias]
    if (value === undefined) continue
    if (rates[key] !== undefined && rates[key] !== value) {
      throw invalid(`Class parameters ${key} ${quote(rates[key])} and ${alias} ${quote(value)} contradict each other.`)
    }
    rates[key] = value
  }
  return rates
}

const parseRates = ({ iops, throughput }: ParameterMap): RateLimits => ({
  ...(iops === undefined ? {} : { iops: parseIops(iops) }),
  ...(throughput === undefined ? {} : { throughputBytes: parseThroughput(throughput) }),
})

function removeZeros({ iops, throughputBytes }: RateLimits): RateLimits {
  return { ...(iops ? { iops } : {}), ...(throughputBytes ? { throughputBytes } : {}) }
}

function checkConsistent(
  key: string,
  classRate: number | undefined,
  mutableRate: number | undefined,
  { parameters, mutableParameters }: { parameters: ParameterMap; mutableParameters: ParameterMap },
): void {
  if (classRate === undefined || mutableRate === undefined || classRate === mutableRate) return
  const classValue = parameters[key] ?? parameters[`provisioned-${key}-on-create`] ?? ''
  throw invalid(
    `${key} is ${quote(classValue)} in the class parameters and ${quote(mutableParameters[key] ?? '')} in the mutable ones. ` +
      'Set it in only one of them.',
  )
}

function parseEnum<const T extends string>(value: string, values: readonly T[], key: string): T {
  const match = values.find((candidate) => candidate === value)
  if (match === undefined) throw invalid(`${key} ${quote(value)}: expected ${values.join(' or ')}.`)
  return match
}

function parseOvercommit(text: string | undefined, provisioning: 'reserved' | 'thin'): number {
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

/** Returns the file system type of a capability, if it specifies one. */
export function parseFsType(text: string): FilesystemType | undefined {
  return text === '' ? undefined : parseEnum(text, FILESYSTEM_TYPES, 'fs_type')
}
