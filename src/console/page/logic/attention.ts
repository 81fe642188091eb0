// Lists the problems that need attention: failures before warnings, many objects before few. Claims with the same cause are one
// entry.
import type { NodeRow, OperationRow, QuotaRow } from '../rows/cluster.ts'
import { OUT_OF_SERVICE } from '../rows/cluster.ts'
import type { CapacityRow } from '../rows/storage.ts'
import type { Tone } from './claim-status.ts'
import type { ClaimView } from './claim-view.ts'
import { formatBytes, formatPercent, pluralize } from './format.ts'
import { storageLimits } from './quota-check.ts'
import { linkTo } from './url.ts'

interface AttentionItem {
  readonly key: string
  readonly tone: Tone
  readonly title: string
  readonly cause: string
  readonly href: string
  /** The number of affected objects. */
  readonly count: number
}

interface AttentionSources {
  readonly claims: Iterable<ClaimView>
  readonly nodes: Iterable<NodeRow>
  readonly operations: Iterable<OperationRow>
  readonly quotas: Iterable<QuotaRow>
  readonly capacities: Iterable<CapacityRow>
}

const NEARLY_FULL = 0.9
/** An operation with this many attempts is unlikely to succeed by retrying. */
const ATTEMPTS_MANY = 10

export function listAttentionItems(sources: AttentionSources): AttentionItem[] {
  const items = [
    ...findUnreadyNodes(sources.nodes),
    ...findFailedClaims(sources.claims),
    ...findFullVolumes(sources.claims),
    ...findFailingOperations(sources.operations),
    ...findFullQuotas(sources.quotas),
    ...findExhaustedClasses(sources.capacities),
  ]
  return items.sort((a, b) => SEVERITY[b.tone] - SEVERITY[a.tone] || b.count - a.count)
}

const SEVERITY: Readonly<Record<Tone, number>> = { bad: 3, warn: 2, busy: 1, wait: 0, ok: 0 }

function findUnreadyNodes(nodes: Iterable<NodeRow>): AttentionItem[] {
  const items: AttentionItem[] = []
  for (const { name, ready, readyMessage, readyReason, taints } of nodes) {
    if (ready === 'True') continue
    const isOut = taints.some(({ key }) => key === OUT_OF_SERVICE)
    items.push({
      key: `node ${name}`,
      tone: isOut ? 'warn' : 'bad',
      title: `Node ${name} is not ready`,
      cause: isOut
        ? 'The node is marked as out of service.'
        : (readyMessage ?? readyReason ?? 'The node does not report.'),
      href: linkTo('nodes', { node: name }),
      count: 1,
    })
  }
  return items
}

function findFailedClaims(claims: Iterable<ClaimView>): AttentionItem[] {
  const groups = new Map<string, { first: ClaimView; count: number; namespaces: Set<string> }>()
  for (const claim of claims) {
    if (claim.status.tone !== 'bad') continue
    const key = claim.why?.reason ?? claim.status.word
    const group = groups.get(key)
    if (group) {
      group.count++
      group.namespaces.add(claim.namespace)
    } else groups.set(key, { first: claim, count: 1, namespaces: new Set([claim.namespace]) })
  }
  return [...groups].map(([reason, { first, count, namespaces }]) => ({
    key: `claims ${reason}`,
    tone: 'bad' as const,
    title:
      count === 1
        ? `Claim ${first.namespace}/${first.name}: ${first.status.word}`
        : `${pluralize(count, 'claim')} in ${pluralize(namespaces.size, 'namespace')}: ${reason}`,
    cause: first.why?.message ?? first.status.word,
    href:
      count === 1
        ? linkTo('claims', { claim: `${first.namespace}/${first.name}` })
        : linkTo('claims', first.why ? { q: `why:${reason.toLowerCase()}` } : { status: first.status.word }),
    count,
  }))
}

function findFullVolumes(claims: Iterable<ClaimView>): AttentionItem[] {
  let worst: ClaimView | undefined
  let count = 0
  for (const claim of claims) {
    if (claim.usedShare === undefined || claim.usedShare < NEARLY_FULL) continue
    count++
    if (!worst || claim.usedShare > worst.usedShare!) worst = claim
  }
  if (!worst) return []
  return [
    {
      key: 'full volumes',
      tone: 'warn',
      title: `${pluralize(count, 'volume')} at least ${formatPercent(NEARLY_FULL)} full`,
      cause: `${worst.namespace}/${worst.name} is at ${formatPercent(worst.usedShare!)}.`,
      href: linkTo('claims', { sort: '-used' }),
      count,
    },
  ]
}

function findFailingOperations(operations: Iterable<OperationRow>): AttentionItem[] {
  const failing = [...operations].filter(({ phase, attempts }) => phase === 'Retrying' && attempts >= ATTEMPTS_MANY)
  if (failing.length === 0) return []
  const worst = failing.sort((a, b) => b.attempts - a.attempts)[0]!
  return [
    {
      key: 'operations',
      tone: 'warn',
      title: `${pluralize(failing.length, 'operation')} with ${ATTEMPTS_MANY} attempts or more`,
      cause: `${worst.operation} of ${worst.objectName}: ${worst.message || worst.reason}`,
      href: linkTo('operations', { phase: 'Retrying', sort: '-attempts' }),
      count: failing.length,
    },
  ]
}

function findFullQuotas(quotas: Iterable<QuotaRow>): AttentionItem[] {
  const items: AttentionItem[] = []
  for (const quota of quotas)
    for (const { key, hard, used, namespace, className, unit } of storageLimits(quota)) {
      if (used === undefined || hard === 0 || used / hard < NEARLY_FULL) continue
      const left =
        unit === 'bytes' ? formatBytes(Math.max(0, hard - used)) : pluralize(Math.max(0, hard - used), 'claim')
      items.push({
        key: `quota ${namespace}/${quota.name} ${key}`,
        tone: 'warn',
        title: `Quota of namespace ${namespace} is ${formatPercent(used / hard)} used`,
        cause: `${left} left${className === undefined ? '' : ` of class ${className}`}.`,
        href: linkTo('quotas', { ns: namespace }),
        count: 1,
      })
    }
  return items
}

function findExhaustedClasses(capacities: Iterable<CapacityRow>): AttentionItem[] {
  const byClass = new Map<string, { exhausted: number; total: number }>()
  for (const { className, freeBytes } of capacities) {
    if (freeBytes === undefined) continue
    const entry = byClass.get(className) ?? { exhausted: 0, total: 0 }
    entry.total++
    if (freeBytes === 0) entry.exhausted++
    byClass.set(className, entry)
  }
  return [...byClass]
    .filter(([, { exhausted, total }]) => exhausted === total)
    .map(([className, { total }]) => ({
      key: `capacity ${className}`,
      tone: 'warn' as const,
      title: `No free storage of class ${className}`,
      cause: `${pluralize(total, 'segment')} reported, all full.`,
      href: linkTo('capacity'),
      count: total,
    }))
}
