// Builds the rows of the claims table: a claim with its pods, its measured usage and the reason why it is not ready. Also filters
// and sorts them.
import type { DfClaim, WhyLine } from '../../protocol.ts'
import type { ClaimRow } from '../rows/claim.ts'
import type { PodRow } from '../rows/pod.ts'
import { type StatusWord, statusOfClaim } from './claim-status.ts'
import type { Matcher } from './filter.ts'
import { createMatcher } from './filter.ts'
import type { Identified } from './sorted-view.ts'
import { parseList, type SortOrder } from './url.ts'

export interface ClaimView extends Identified {
  /** namespace/name, also the default sort key. */
  readonly key: string
  readonly namespace: string
  readonly name: string
  readonly claim: ClaimRow
  readonly status: StatusWord
  readonly why: WhyLine | undefined
  readonly usage: DfClaim | undefined
  /** Share of the volume that is used. */
  readonly usedShare: number | undefined
  readonly node: string | undefined
  readonly pods: readonly PodRow[]
  readonly searchText: string
}

export interface ClaimSources {
  readonly why: WhyLine | undefined
  readonly usage: DfClaim | undefined
  readonly pods: readonly PodRow[]
}

export function joinClaim(claim: ClaimRow, { why, usage, pods }: ClaimSources): ClaimView {
  const status = statusOfClaim(claim, why)
  const node = pods.find((pod) => pod.node !== undefined)?.node ?? usage?.node ?? claim.selectedNode
  const total = usage?.capacityBytes ?? claim.capacityBytes
  const used = usage?.usedBytes
  return {
    uid: claim.uid,
    key: `${claim.namespace}/${claim.name}`,
    namespace: claim.namespace,
    name: claim.name,
    claim,
    status,
    why,
    usage,
    usedShare: used === undefined || !total ? undefined : Math.min(1, used / total),
    node,
    pods,
    searchText:
      `${claim.namespace}/${claim.name} ${status.word} ${claim.className ?? ''} ${claim.attributesClass ?? ''} ${node ?? ''} ${claim.volumeName ?? ''} ${why ? `${why.reason} ${why.message}` : ''} ${pods.map(({ name }) => name).join(' ')}`.toLowerCase(),
  }
}

export interface ClaimFilter {
  readonly q?: string
  readonly ns?: string
  readonly status?: string
  readonly class?: string
  readonly node?: string
  /** `1` shows only claims with the tone bad or warn. */
  readonly problems?: string
}

export function matchClaims({ q = '', ns, status, class: className, node, problems }: ClaimFilter): Matcher<ClaimView> {
  const statuses = parseList(status)
  const matchesText = createMatcher<ClaimView>(q, {
    ns: ({ namespace }) => namespace,
    name: ({ name }) => name,
    status: (row) => row.status.word,
    class: ({ claim }) => claim.className,
    attributes: ({ claim }) => claim.attributesClass,
    node: (row) => row.node,
    volume: ({ claim }) => claim.volumeName,
    why: ({ why }) => why?.reason,
  })
  return (row) =>
    (!ns || row.namespace === ns) &&
    (statuses.length === 0 || statuses.includes(row.status.word)) &&
    (!className || row.claim.className === className) &&
    (!node || row.node === node) &&
    (!problems || row.status.tone === 'bad' || row.status.tone === 'warn') &&
    matchesText(row)
}

type Key = string | number | undefined

const SORT_KEYS: Readonly<Record<string, (row: ClaimView) => Key>> = {
  namespace: ({ key }) => key,
  name: ({ name }) => name,
  status: ({ status }) => TONE_ORDER.indexOf(status.tone) + status.word,
  why: ({ why }) => (why ? `${why.reason} ${why.message}` : undefined),
  class: ({ claim }) => claim.className,
  attributes: ({ claim }) => claim.attributesClass,
  size: ({ claim }) => claim.capacityBytes ?? claim.requestBytes,
  used: ({ usedShare }) => usedShare,
  node: ({ node }) => node,
  pods: ({ pods }) => pods.length,
  age: ({ claim }) => claim.createdMs,
}

const TONE_ORDER = ['bad', 'warn', 'busy', 'wait', 'ok']

export const isSortColumn = (column: string): boolean => Object.hasOwn(SORT_KEYS, column)

/** Rows without a value come last in both directions. A larger age is an earlier creation. */
export function compareClaims({ column, isDescending }: SortOrder): (a: ClaimView, b: ClaimView) => number {
  const key = SORT_KEYS[column] ?? SORT_KEYS.namespace!
  const sign = isDescending !== (column === 'age') ? -1 : 1
  return (a, b) => compareKeys(key(a), key(b), sign) || compareKeys(a.name, b.name, 1)
}

export function compareKeys(a: Key, b: Key, sign: 1 | -1): number {
  if (a === b) return 0
  if (a === undefined) return 1
  if (b === undefined) return -1
  return a < b ? -sign : sign
}
