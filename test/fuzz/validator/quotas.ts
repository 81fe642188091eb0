// ResourceQuota and LimitRange: known names, valid amounts, ordered bounds.
import { repeated, type Say, same, show } from './findings.ts'
import { isQualifiedName } from './names.ts'
import { compare, isNegative, isWhole, nanosOf } from './quantity.ts'

const COMPUTE = ['cpu', 'memory', 'limits.cpu', 'limits.memory', 'requests.cpu', 'requests.memory']
const COUNTS = [
  'pods',
  'resourcequotas',
  'services',
  'replicationcontrollers',
  'secrets',
  'persistentvolumeclaims',
  'configmaps',
  'services.nodeports',
  'services.loadbalancers',
]
const IO_QUOTA = ['requests.iops', 'limits.iops', 'requests.throughput', 'limits.throughput']
const QUOTA_NAMES = [
  ...COMPUTE,
  ...COUNTS,
  'ephemeral-storage',
  'requests.storage',
  'requests.ephemeral-storage',
  'limits.ephemeral-storage',
]
const isHugePages = (name: string) => /^(requests\.)?hugepages-/.test(name)
const isStandardQuota = (name: string) => QUOTA_NAMES.includes(name) || isHugePages(name)

const POD_SCOPES = ['Terminating', 'NotTerminating', 'NotBestEffort', 'PriorityClass', 'CrossNamespacePodAffinity']
const SCOPES = [...POD_SCOPES, 'BestEffort', 'VolumeAttributesClass']
/** Scopes that only Exists and DoesNotExist apply to. */
const PLAIN_SCOPES = ['BestEffort', 'NotBestEffort', 'Terminating', 'NotTerminating', 'CrossNamespacePodAffinity']

export function checkQuota({ spec = {}, status = {} }: any, say: Say, old?: any): void {
  checkAmounts(spec.hard ?? {}, 'spec.hard', say)
  checkAmounts(status.hard ?? {}, 'status.hard', say)
  checkAmounts(status.used ?? {}, 'status.used', say)
  const scopes: string[] = spec.scopes ?? []
  const expressions: any[] = spec.scopeSelector?.matchExpressions ?? []
  checkScopes(scopes, Object.keys(spec.hard ?? {}), 'spec.scopes', say)
  const named = expressions.map(({ scopeName }) => scopeName)
  checkScopes(named, Object.keys(spec.hard ?? {}), 'spec.scopeSelector', say)
  for (const { scopeName, operator, values = [] } of expressions) {
    const at = `spec.scopeSelector[${scopeName}]`
    if (!['In', 'NotIn', 'Exists', 'DoesNotExist'].includes(operator)) say(at, `${show(operator)} is no operator`)
    if (PLAIN_SCOPES.includes(scopeName) && operator !== 'Exists') say(at, 'only Exists makes sense')
    if (['In', 'NotIn'].includes(operator) === (values.length === 0)) say(at, 'values and operator do not fit')
  }
  if (old && !same([...new Set(scopes)].sort(), [...new Set<string>(old.spec?.scopes)].sort())) {
    say('spec.scopes', 'cannot change')
  }
}

function checkAmounts(amounts: Record<string, string>, path: string, say: Say): void {
  for (const [name, amount] of Object.entries(amounts)) {
    const at = `${path}[${name}]`
    if (!isQualifiedName(name)) say(at, 'is no resource')
    if (!name.includes('/') && !isStandardQuota(name) && !IO_QUOTA.includes(name)) say(at, 'is not for quotas')
    if (isNegative(amount)) say(at, 'negative')
    const mustBeWhole = COUNTS.includes(name) || isExtended(name) || IO_QUOTA.includes(name)
    if (mustBeWhole && !isWhole(amount)) say(at, `${amount} is no whole number`)
  }
}

const isExtended = (name: string): boolean =>
  name.includes('/') &&
  !name.includes('kubernetes.io/') &&
  !name.startsWith('requests.') &&
  isQualifiedName(`requests.${name}`)

function checkScopes(scopes: readonly string[], names: readonly string[], path: string, say: Say): void {
  for (const scope of scopes) {
    if (!SCOPES.includes(scope)) say(path, `${show(scope)} is no scope`)
    for (const name of names.filter(isStandardQuota))
      if (!suits(scope, name)) say(path, `${scope} says nothing of ${name}`)
  }
  for (const [one, other] of [
    ['BestEffort', 'NotBestEffort'],
    ['Terminating', 'NotTerminating'],
  ]) {
    if (scopes.includes(one!) && scopes.includes(other!)) say(path, `${one} and ${other} exclude each other`)
  }
}

function suits(scope: string, name: string): boolean {
  if (POD_SCOPES.includes(scope)) return name === 'pods' || COMPUTE.includes(name)
  if (scope === 'BestEffort') return name === 'pods'
  if (scope === 'VolumeAttributesClass') return name === 'persistentvolumeclaims' || name === 'requests.storage'
  return true
}

const IO = ['iops', 'throughput']
const CONTAINER_NAMES = ['cpu', 'memory', 'ephemeral-storage']

export function checkLimitRange({ spec = {} }: any, say: Say): void {
  const limits: any[] = spec.limits ?? []
  if (repeated(limits.map(({ type }) => type)).length > 0) say('spec.limits', 'a type twice')
  for (const [i, limit] of limits.entries()) {
    const at = `spec.limits[${i}]`
    if (!isQualifiedName(limit.type)) say(`${at}.type`, `${show(limit.type)} is no type`)
    else if (!limit.type.includes('/') && !['Pod', 'Container', 'PersistentVolumeClaim'].includes(limit.type)) {
      say(`${at}.type`, `${show(limit.type)} is no type`)
    }
    const { max = {}, min = {}, default: byDefault = {}, defaultRequest = {}, maxLimitRequestRatio: ratio = {} } = limit
    const names = [...new Set([max, min, byDefault, defaultRequest, ratio].flatMap((amounts) => Object.keys(amounts)))]
    for (const name of names) checkLimitName(limit.type, name, at, say)
    if (limit.type === 'Pod' && Object.keys({ ...byDefault, ...defaultRequest }).length > 0)
      say(at, 'pods have no defaults')
    if (
      limit.type === 'PersistentVolumeClaim' &&
      !min.storage &&
      !max.storage &&
      !names.some((name) => IO.includes(name))
    ) {
      say(at, 'bounds nothing')
    }
    for (const name of names) {
      const ordered = [min[name], defaultRequest[name], byDefault[name], max[name]].filter(
        (amount) => amount !== undefined,
      )
      for (const [j, amount] of ordered.entries()) {
        if (j > 0 && compare(ordered[j - 1], amount) > 0) say(`${at}[${name}]`, `${ordered.join(' ≤ ')} does not hold`)
      }
      checkRatio({ ratio: ratio[name], min: min[name], max: max[name] }, `${at}.maxLimitRequestRatio[${name}]`, say)
      const overcommits = (!name.includes('/') || name.includes('kubernetes.io/')) && !name.startsWith('hugepages-')
      const differ = byDefault[name] && defaultRequest[name] && compare(byDefault[name], defaultRequest[name]) !== 0
      if (!overcommits && differ) say(`${at}[${name}]`, 'default and defaultRequest must be equal')
    }
  }
}

function checkLimitName(type: string, name: string, at: string, say: Say): void {
  if (!isQualifiedName(name)) say(at, `${show(name)} is no resource`)
  if (name.includes('/')) return
  if (IO.includes(name) && type !== 'Pod') return
  const allowed = ['Pod', 'Container'].includes(type) ? CONTAINER_NAMES : [...QUOTA_NAMES, 'storage']
  if (!allowed.includes(name) && !isHugePages(name)) say(at, `${show(name)} is not for ${type}`)
}

function checkRatio({ ratio, min, max }: { ratio?: string; min?: string; max?: string }, at: string, say: Say): void {
  if (ratio === undefined) return
  if (compare(ratio, '1') < 0) say(at, 'below 1')
  if (min === undefined || max === undefined || nanosOf(min) === 0n) return
  // ratio ≤ max / min, in integers, with a tolerance of a billionth for floating-point division
  const [left, right] = [nanosOf(ratio) * nanosOf(min), nanosOf(max) * 1_000_000_000n]
  if (left > right && left - right > right / 1_000_000_000n) say(at, `${ratio} is more than ${max} / ${min}`)
}
