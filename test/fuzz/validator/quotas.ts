// Checks ResourceQuotas and LimitRanges: names of resources, amounts, scopes, and the order of limits.
import { duplicatesIn, format, isEqualJson, type Report } from './findings.ts'
import { isQualifiedName } from './names.ts'
import { compare, isNegative, isWhole, nanosOf } from './quantity.ts'

const COMPUTE_RESOURCES = ['cpu', 'memory', 'limits.cpu', 'limits.memory', 'requests.cpu', 'requests.memory']
const COUNTED_RESOURCES = [
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
const IO_QUOTA_RESOURCES = ['requests.iops', 'limits.iops', 'requests.throughput', 'limits.throughput']
const QUOTA_RESOURCES = [
  ...COMPUTE_RESOURCES,
  ...COUNTED_RESOURCES,
  'ephemeral-storage',
  'requests.storage',
  'requests.ephemeral-storage',
  'limits.ephemeral-storage',
]
const isHugePages = (name: string) => /^(requests\.)?hugepages-/.test(name)
const isStandardQuota = (name: string) => QUOTA_RESOURCES.includes(name) || isHugePages(name)

const POD_SCOPES = ['Terminating', 'NotTerminating', 'NotBestEffort', 'PriorityClass', 'CrossNamespacePodAffinity']
const SCOPES = [...POD_SCOPES, 'BestEffort', 'VolumeAttributesClass']
/** Scopes for which only the operator Exists is allowed. */
const PLAIN_SCOPES = ['BestEffort', 'NotBestEffort', 'Terminating', 'NotTerminating', 'CrossNamespacePodAffinity']

export function checkQuota({ spec = {}, status = {} }: any, report: Report, old?: any): void {
  checkAmounts(spec.hard ?? {}, 'spec.hard', report)
  checkAmounts(status.hard ?? {}, 'status.hard', report)
  checkAmounts(status.used ?? {}, 'status.used', report)
  const scopes: string[] = spec.scopes ?? []
  const expressions: any[] = spec.scopeSelector?.matchExpressions ?? []
  checkScopes(scopes, Object.keys(spec.hard ?? {}), 'spec.scopes', report)
  const scopeNames = expressions.map(({ scopeName }) => scopeName)
  checkScopes(scopeNames, Object.keys(spec.hard ?? {}), 'spec.scopeSelector', report)
  for (const { scopeName, operator, values = [] } of expressions) {
    const fieldPath = `spec.scopeSelector[${scopeName}]`
    if (!['In', 'NotIn', 'Exists', 'DoesNotExist'].includes(operator))
      report(fieldPath, `${format(operator)} is not a valid operator`)
    if (PLAIN_SCOPES.includes(scopeName) && operator !== 'Exists') report(fieldPath, 'only Exists is allowed')
    if (['In', 'NotIn'].includes(operator) === (values.length === 0))
      report(fieldPath, 'values do not match the operator')
  }
  if (old && !isEqualJson([...new Set(scopes)].sort(), [...new Set<string>(old.spec?.scopes)].sort())) {
    report('spec.scopes', 'cannot change')
  }
}

function checkAmounts(amounts: Record<string, string>, path: string, report: Report): void {
  for (const [name, amount] of Object.entries(amounts)) {
    const fieldPath = `${path}[${name}]`
    if (!isQualifiedName(name)) report(fieldPath, 'is not a valid resource')
    if (!name.includes('/') && !isStandardQuota(name) && !IO_QUOTA_RESOURCES.includes(name))
      report(fieldPath, 'is not allowed for quotas')
    if (isNegative(amount)) report(fieldPath, 'negative')
    const isIntegerResource = COUNTED_RESOURCES.includes(name) || isExtended(name) || IO_QUOTA_RESOURCES.includes(name)
    if (isIntegerResource && !isWhole(amount)) report(fieldPath, `${amount} is not an integer`)
  }
}

const isExtended = (name: string): boolean =>
  name.includes('/') &&
  !name.includes('kubernetes.io/') &&
  !name.startsWith('requests.') &&
  isQualifiedName(`requests.${name}`)

function checkScopes(scopes: readonly string[], names: readonly string[], path: string, report: Report): void {
  for (const scope of scopes) {
    if (!SCOPES.includes(scope)) report(path, `${format(scope)} is not a valid scope`)
    for (const name of names.filter(isStandardQuota))
      if (!appliesTo(scope, name)) report(path, `${scope} does not apply to ${name}`)
  }
  for (const [scope, excludedScope] of [
    ['BestEffort', 'NotBestEffort'],
    ['Terminating', 'NotTerminating'],
  ]) {
    if (scopes.includes(scope!) && scopes.includes(excludedScope!))
      report(path, `${scope} and ${excludedScope} exclude each other`)
  }
}

function appliesTo(scope: string, name: string): boolean {
  if (POD_SCOPES.includes(scope)) return name === 'pods' || COMPUTE_RESOURCES.includes(name)
  if (scope === 'BestEffort') return name === 'pods'
  if (scope === 'VolumeAttributesClass') return name === 'persistentvolumeclaims' || name === 'requests.storage'
  return true
}

const IO_NAMES = ['iops', 'throughput']
const CONTAINER_RESOURCES = ['cpu', 'memory', 'ephemeral-storage']

export function checkLimitRange({ spec = {} }: any, report: Report): void {
  const limits: any[] = spec.limits ?? []
  if (duplicatesIn(limits.map(({ type }) => type)).length > 0) report('spec.limits', 'duplicate type')
  for (const [i, limit] of limits.entries()) {
    const fieldPath = `spec.limits[${i}]`
    if (!isQualifiedName(limit.type)) report(`${fieldPath}.type`, `${format(limit.type)} is not a valid type`)
    else if (!limit.type.includes('/') && !['Pod', 'Container', 'PersistentVolumeClaim'].includes(limit.type)) {
      report(`${fieldPath}.type`, `${format(limit.type)} is not a valid type`)
    }
    const {
      max = {},
      min = {},
      default: defaultLimit = {},
      defaultRequest = {},
      maxLimitRequestRatio: ratio = {},
    } = limit
    const names = [
      ...new Set([max, min, defaultLimit, defaultRequest, ratio].flatMap((amounts) => Object.keys(amounts))),
    ]
    for (const name of names) checkLimitName(limit.type, name, fieldPath, report)
    if (limit.type === 'Pod' && Object.keys({ ...defaultLimit, ...defaultRequest }).length > 0)
      report(fieldPath, 'pods have no defaults')
    if (
      limit.type === 'PersistentVolumeClaim' &&
      !min.storage &&
      !max.storage &&
      !names.some((name) => IO_NAMES.includes(name))
    ) {
      report(fieldPath, 'has no limits')
    }
    for (const name of names) {
      const orderedAmounts = [min[name], defaultRequest[name], defaultLimit[name], max[name]].filter(
        (amount) => amount !== undefined,
      )
      for (const [j, amount] of orderedAmounts.entries()) {
        if (j > 0 && compare(orderedAmounts[j - 1], amount) > 0)
          report(`${fieldPath}[${name}]`, `${orderedAmounts.join(' ≤ ')} does not hold`)
      }
      checkRatio(
        { ratio: ratio[name], min: min[name], max: max[name] },
        `${fieldPath}.maxLimitRequestRatio[${name}]`,
        report,
      )
      const isOvercommitAllowed =
        (!name.includes('/') || name.includes('kubernetes.io/')) && !name.startsWith('hugepages-')
      const hasDifferentDefaults =
        defaultLimit[name] && defaultRequest[name] && compare(defaultLimit[name], defaultRequest[name]) !== 0
      if (!isOvercommitAllowed && hasDifferentDefaults)
        report(`${fieldPath}[${name}]`, 'default and defaultRequest must be equal')
    }
  }
}

function checkLimitName(type: string, name: string, fieldPath: string, report: Report): void {
  if (!isQualifiedName(name)) report(fieldPath, `${format(name)} is not a valid resource`)
  if (name.includes('/')) return
  if (IO_NAMES.includes(name) && type !== 'Pod') return
  const allowedNames = ['Pod', 'Container'].includes(type) ? CONTAINER_RESOURCES : [...QUOTA_RESOURCES, 'storage']
  if (!allowedNames.includes(name) && !isHugePages(name))
    report(fieldPath, `${format(name)} is not allowed for ${type}`)
}

function checkRatio(
  { ratio, min, max }: { ratio?: string; min?: string; max?: string },
  fieldPath: string,
  report: Report,
): void {
  if (ratio === undefined) return
  if (compare(ratio, '1') < 0) report(fieldPath, 'below 1')
  if (min === undefined || max === undefined || nanosOf(min) === 0n) return
  // Checks ratio ≤ max / min in integers, with a tolerance of a billionth for the floating-point division of the server.
  const [scaledRatio, scaledMax] = [nanosOf(ratio) * nanosOf(min), nanosOf(max) * 1_000_000_000n]
  if (scaledRatio > scaledMax && scaledRatio - scaledMax > scaledMax / 1_000_000_000n)
    report(fieldPath, `${ratio} is more than ${max} / ${min}`)
}
